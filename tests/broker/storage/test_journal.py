from __future__ import annotations

import pytest

from aioproducer.broker.storage.journal import JOURNAL, MetadataJournal, frame
from tests.broker.storage.faulty_files import FaultyFiles


def opened(files: FaultyFiles) -> MetadataJournal:
    journal = MetadataJournal()
    journal.load(files)
    return journal


def commit(journal: MetadataJournal, files: FaultyFiles) -> None:
    write, passing = journal.take()
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
    journal.put_passing(("markers", 1), {"x": 1})
    write, passing = journal.take()
    assert write is not None
    size = write.run(files, sync=True)
    assert opened(files).get("markers", 1) == {"x": 1}
    journal.written(write, size, passing)
    assert journal.get("markers", 1) is None
