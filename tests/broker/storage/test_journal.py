from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from aioproducer.broker.storage.frames import Key, frame
from aioproducer.broker.storage.journal import JOURNAL, PIECE, Damage, MetadataJournal
from aioproducer.protocol.primitives import Buffer
from tests.broker.storage.faulty_files import FaultyFiles


def opened(files: FaultyFiles, synced: Callable[[Key], int] = lambda key: 0) -> MetadataJournal:
    journal = MetadataJournal()
    assert all(found.is_torn for found in journal.load(files, synced))
    return journal


def commit(journal: MetadataJournal, files: FaultyFiles) -> None:
    write, passing = journal.take(0)
    size = 0 if write is None else write.run(files, sync=True)
    journal.written(write, size, passing)


def test_the_last_value_of_a_key_counts() -> None:
    files = FaultyFiles()
    journal = opened(files)
    for value in (1, 2, None, 3):
        journal.put(("offset", "g", "t", 0), value)
        journal.put(("topic", "x"), value)
        commit(journal, files)
    journal.put(("topic", "x"), None)
    commit(journal, files)
    again = opened(files)
    assert (again.get("offset", "g", "t", 0), again.get("topic", "x")) == (3, None)


def test_the_entries_of_a_topic_are_found_by_its_id() -> None:
    files = FaultyFiles()
    journal = opened(files)
    mine: list[Key] = [("topic", "x"), ("leader_epoch", "x", 0), ("log_start", "x", 0), ("producers", "x", 1)]
    other: list[Key] = [("topic", "y"), ("offset", "x", "t", 0), ("deleted", "x")]
    for key in (*mine, *other, mine[1]):
        journal.put(key, 1)
    commit(journal, files)
    for one in (journal, opened(files)):
        assert sorted(map(str, one.of_topic("x"))) == sorted(map(str, mine))
        for key in mine:
            one.put(key, None)
        assert (one.of_topic("x"), one.of_topic("y")) == ([], [("topic", "y")])


@pytest.mark.parametrize("torn", [frame({("a",): 2})[:-1], bytes(8), bytes(100), b"\1"], ids=["cut", "8", "100", "1"])
def test_a_torn_end_is_gone_before_anything_is_written_behind_it(torn: bytes) -> None:
    files = FaultyFiles()
    journal = opened(files)
    journal.put(("a",), 1)
    commit(journal, files)
    files.append(JOURNAL, [torn])
    journal = opened(files)
    assert journal.get("a") == 1
    journal.put(("b",), 2)
    commit(journal, files)
    again = opened(files)
    assert (again.get("a"), again.get("b")) == (1, 2)


def test_a_passing_entry_is_there_until_the_commit_that_it_is_for_has_ended() -> None:
    files = FaultyFiles()
    journal = opened(files)
    journal.put_passing(("markers", 1), {"x": 1}, number=7)
    write, passing = journal.take(7)
    assert write is not None
    size = write.run(files, sync=True)
    assert opened(files).get("markers", 1) == {"x": 1}
    journal.written(write, size, passing)
    assert journal.get("markers", 1) is None


def test_a_passing_entry_stays_until_all_that_it_is_for_is_on_disk() -> None:
    files = FaultyFiles()
    journal = opened(files)
    journal.put_passing(("markers", 1), {"x": 1}, number=7)
    for covered, there in ((6, True), (7, False)):
        write, passing = journal.take(covered)
        size = 0 if write is None else write.run(files, sync=True)
        journal.written(write, size, passing)
        assert (journal.get("markers", 1) is not None) is there


def written(*values: int) -> FaultyFiles:
    """A file with a commit for each value: the first has ten entries, the others one."""
    files = FaultyFiles()
    journal = opened(files)
    for number, value in enumerate(values):
        for key in range(1 if number else 10):
            journal.put(("topic", key), value)
        commit(journal, files)
    return files


def flip(files: FaultyFiles, at: int) -> None:
    content = bytearray(files.read(JOURNAL, 0, 10_000))
    content[at] ^= 1
    files.truncate(JOURNAL, 0)
    files.append(JOURNAL, [content])


@pytest.mark.parametrize("at", range(0, 500, 7))
def test_one_flipped_bit_loses_one_frame_and_is_reported(at: int) -> None:
    files = written(1, 2, 3)
    size = files.size(JOURNAL)
    at %= size
    flip(files, at)
    journal = MetadataJournal()
    (found,) = journal.load(files, lambda key: size)
    assert found.start <= at < found.end
    assert not found.is_torn
    kept = [journal.get("topic", key) for key in range(10)]
    right = [3, *[1] * 9]
    assert sum(one != other for one, other in zip(kept, right, strict=True)) <= 1


def test_a_missing_end_is_reported() -> None:
    files = written(1, 2)
    size = files.size(JOURNAL)
    files.truncate(JOURNAL, size - 3)
    start = MetadataJournal()
    damage = list(start.load(files, lambda key: size if key == start.point else 0))
    assert damage
    assert not any(one.is_torn for one in damage)
    files = written(1, 2)
    files.truncate(JOURNAL, size - len(frame({("topic", 0): 2})))
    assert list(MetadataJournal().load(files, lambda key: size)) == [Damage(files.size(JOURNAL), size)]


def test_each_file_has_a_point_of_its_own() -> None:
    files = written(1)
    first = opened(files)
    first.put(("topic", 0), 2)
    commit(first, files)  # the first after a start writes it anew
    second = opened(files)
    assert first.point == second.point != opened(written(1)).point
    second.follow(99)
    second.put(("topic", 0), 2)
    commit(second, files)
    assert opened(files).point == ("journal", 100)


class _RecordingFiles(FaultyFiles):
    """Knows how much was appended at once, and to what."""

    def __init__(self) -> None:
        super().__init__()
        self.appended: list[tuple[str, int]] = []

    def append(self, path: str, parts: Sequence[Buffer]) -> None:
        self.appended.append((path, sum(map(len, parts))))
        super().append(path, parts)


ENTRY = 50_000


def large_journal(files: FaultyFiles, entries: int) -> MetadataJournal:
    """One that has grown enough to be copied; the copy has just begun."""
    journal = opened(files)
    journal.put(("a",), 0)
    commit(journal, files)
    journal.put(("gone",), "x" * ENTRY)
    commit(journal, files)
    journal.put(("gone",), None)
    for number in range(entries):
        journal.put(("large", number), "x" * ENTRY)
    commit(journal, files)
    journal.put(("begins",), True)
    commit(journal, files)
    assert journal.copy is not None
    return journal


def test_a_journal_is_copied_in_pieces_while_commits_go_on() -> None:
    files = _RecordingFiles()
    journal = large_journal(files, 100)
    before, files.appended = files.size(JOURNAL), []
    journal.put(("large", 1), None)
    commit(journal, files)
    pieces = 0
    while journal.copy is not None:
        if not journal.copy.is_ready:
            journal.copy.advance(files)
        pieces += 1
        journal.put(("large", 2), None)
        journal.put(("new", pieces), pieces)
        commit(journal, files)
    assert 5 <= pieces <= 6
    assert max(size for _, size in files.appended) <= PIECE + 2 * ENTRY
    assert files.size(JOURNAL) < before
    again = opened(files)
    assert again.point == journal.point
    assert again.of_kind("large") == {("large", number): "x" * ENTRY for number in (0, *range(3, 100))}
    assert len(again.of_kind("new")) == pieces
    assert (again.get("a"), again.get("begins")) == (0, True)


def test_a_copy_ends_though_each_commit_adds_more_than_a_piece() -> None:
    files = _RecordingFiles()
    journal = large_journal(files, 400)
    number = commits = 0
    while journal.copy is not None:
        if not journal.copy.is_ready:
            journal.copy.advance(files)
        for _ in range(PIECE // ENTRY * 2):
            number += 1
            journal.put(("large", 1000 + number), "y" * ENTRY)
        commit(journal, files)
        commits += 1
        assert commits < 50
    assert len(opened(files).of_kind("large")) == 400 + number
    assert max(size for _, size in files.appended[-2 * commits :]) < 6 * PIECE


def test_a_copy_that_a_crash_interrupts_is_forgotten() -> None:
    files = FaultyFiles()
    journal = large_journal(files, 100)
    assert journal.copy is not None
    journal.copy.advance(files)
    assert len(files.names("")) == 2
    files.crash()
    again = opened(files)
    assert files.names("") == [JOURNAL]
    assert len(again.of_kind("large")) == 100
