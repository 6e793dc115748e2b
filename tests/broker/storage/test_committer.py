from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Sequence

import pytest

from aioproducer.broker.storage.committer import Committer, FlushPolicy
from aioproducer.broker.storage.data_directory import DataDirectory
from aioproducer.broker.storage.journal import JOURNAL, MetadataJournal
from aioproducer.protocol.primitives import Buffer
from tests.broker.storage.faulty_files import FaultyFiles

PIECE = 1000
NEW = "metadata.journal.new"


class _Journal(MetadataJournal):
    piece = PIECE

    def limit(self, size: int) -> int:
        return size + 20 * PIECE


class _Files(FaultyFiles):
    def __init__(self) -> None:
        super().__init__()
        self.appended: list[str] = []
        self.no_room_for = ""

    def append(self, path: str, parts: Sequence[Buffer]) -> None:
        if path == self.no_room_for:
            raise OSError(errno.ENOSPC, "no room")
        self.appended.append(path)
        super().append(path, parts)


class _Committing:
    def __init__(self) -> None:
        self.files = _Files()
        self.failed = asyncio.Event()
        self.directory = DataDirectory(
            self.files, on_change=lambda: self.committer.changed(), on_failure=self.failed.set
        )
        self.journal = self.directory.journal = _Journal()
        self.committer = Committer(self.directory, FlushPolicy.ALWAYS, 1000)

    async def committed(self, number: int, size: int = 10) -> bool:
        """Changes an entry; whether that is on disk."""
        self.journal.put(("entry", number), "x" * size)
        self.directory.changed()
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.committer.when_committed(done.set_result)
        return await done

    async def idle(self) -> None:
        """Returns when the write that runs has ended, or soon."""
        await self.committer._idle.wait()
        await asyncio.sleep(0)

    async def begin_copy(self) -> None:
        """The copy takes 25 pieces at least."""
        for number in range(26):
            assert await self.committed(number, PIECE)
        assert self.journal.copy is not None
        self.files.appended.clear()


@pytest.fixture
async def committing() -> AsyncIterator[_Committing]:
    committing = _Committing()
    await committing.committer.commit()
    yield committing
    await committing.committer.close()


async def test_a_commit_waits_for_one_piece_of_a_copy(committing: _Committing) -> None:
    await committing.begin_copy()
    waited_for: list[int] = []
    for number in range(10):
        before = committing.files.appended.count(NEW)
        committing.journal.put(("entry", 0), number)
        committing.directory.changed()
        called = asyncio.Event()

        def committed(right: bool, before: int = before, called: asyncio.Event = called) -> None:
            assert right
            waited_for.append(committing.files.appended.count(NEW) - before)
            called.set()

        committing.committer.when_committed(committed)
        await called.wait()
    assert committing.journal.copy is not None, "it has more pieces than there were commits"
    assert max(waited_for) <= 1


async def test_a_copy_ends_without_any_more_commits(committing: _Committing) -> None:
    await committing.begin_copy()
    before = committing.files.size(JOURNAL)
    while committing.journal.copy is not None:
        await committing.idle()
    assert committing.files.names("") == [JOURNAL, "recovery.points"]
    assert committing.files.size(JOURNAL) <= before
    again = MetadataJournal()
    assert not list(again.load(committing.files, lambda key: 0))
    assert again.of_kind("entry") == committing.journal.of_kind("entry")


async def test_a_copy_does_not_outlive_the_committer() -> None:
    committing = _Committing()
    await committing.committer.commit()
    await committing.begin_copy()
    assert await committing.committed(30)
    await committing.committer.close()
    pieces = committing.files.appended.count(NEW)
    assert pieces < 20
    again = MetadataJournal()
    assert not list(again.load(committing.files, lambda key: 0))
    assert again.of_kind("entry") == committing.journal.of_kind("entry")


async def test_a_copy_that_fails_is_a_failure_of_the_directory() -> None:
    committing = _Committing()
    await committing.committer.commit()
    await committing.begin_copy()
    committing.files.no_room_for = NEW
    await committing.failed.wait()
    with pytest.raises(OSError, match="no room"):
        await committing.committer.commit()
    assert not await committing.committed(0)
    assert committing.directory.failure is not None
    await committing.committer.close()


async def test_a_commit_is_urgent_until_it_is_begun_and_when_it_has_run(committing: _Committing) -> None:
    """Slices of long work are deferred meanwhile: requests wait for each of its steps."""
    committer = committing.committer
    assert not committer.is_urgent()
    committing.journal.put(("entry", 1), 1)
    committing.directory.changed()
    assert committer.is_urgent()
    while (running := committer._running) is None:  # noqa: ASYNC110
        await asyncio.sleep(0)
    ended = list[bool]()
    running.add_done_callback(lambda _: ended.append(committer.is_urgent()))
    await committer.commit()
    assert (ended, committer.is_urgent()) == ([False], False), "its own callback came first"
