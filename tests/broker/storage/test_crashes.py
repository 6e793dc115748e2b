"""Whatever a crash does, what was committed is there, and nothing that never was; and mistakes in that are found."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from aioproducer.broker.producer_state import ProducerSnapshot, ProducerStateManager
from aioproducer.broker.storage import journal
from aioproducer.broker.storage.cluster_store import ClusterStore
from aioproducer.broker.storage.commit import Commit, Unsynced
from aioproducer.broker.storage.data_directory import DataDirectory
from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.journal import JournalWrite, MetadataJournal
from aioproducer.broker.storage.stored_batches import StoredBatches
from tests.broker.storage.crash_machine import CrashMachine

TestCrashes = CrashMachine.TestCase
TestCrashes.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)

Plant = Callable[[pytest.MonkeyPatch], None]
PLANTED: list[Plant] = []


def planted(plant: Plant) -> Plant:
    PLANTED.append(plant)
    return plant


@planted
def nothing_is_synced_before_it_is_acknowledged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Unsynced, "sync", lambda self, files: None)


@planted
def directories_are_not_synced(patch: pytest.MonkeyPatch) -> None:
    def sync(self: Unsynced, files: Files) -> None:
        for path in self.files:
            files.sync(path)

    patch.setattr(Unsynced, "sync", sync)


@planted
def the_journal_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    right = JournalWrite.run
    patch.setattr(JournalWrite, "run", lambda self, files, *, sync: right(self, files, sync=False))


@planted
def nothing_is_cut_off(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoredBatches, "_cut", lambda self, segment, bad, later: None)


@planted
def what_is_cut_off_may_come_back(patch: pytest.MonkeyPatch) -> None:
    right = StoredBatches._cut

    def cut(self: StoredBatches, *args: Any) -> None:
        files, self._files = self._files, _WithoutSync(self._files)
        right(self, *args)
        self._files = files

    patch.setattr(StoredBatches, "_cut", cut)


class _WithoutSync:
    def __init__(self, files: Files) -> None:
        self._files = files

    def sync(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


@planted
def a_new_journal_is_renamed_before_it_is_synced(patch: pytest.MonkeyPatch) -> None:
    def run(self: JournalWrite, files: Files, *, sync: bool) -> int:
        if self.everything is None:
            return right(self, files, sync=sync)
        files.remove(journal._NEW)
        files.append(journal._NEW, [journal.frame(self.everything)])
        files.rename(journal._NEW, journal.JOURNAL)
        files.sync_directory("")
        return files.size(journal.JOURNAL)

    right = JournalWrite.run
    patch.setattr(JournalWrite, "run", run)


@planted
def the_new_name_of_a_journal_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    right = JournalWrite.run
    patch.setattr(
        JournalWrite, "run", lambda self, files, *, sync: right(self, _WithoutDirectorySync(files), sync=sync)
    )


class _WithoutDirectorySync(_WithoutSync):
    def sync(self, path: str) -> None:
        self._files.sync(path)


@planted
def a_torn_journal_is_written_on(patch: pytest.MonkeyPatch) -> None:
    right = MetadataJournal.load

    def load(self: MetadataJournal, files: Files) -> None:
        right(self, files)
        self._limit = 10**9 if self._size else 0

    patch.setattr(MetadataJournal, "load", load)


@planted
def logs_are_written_before_the_journal(patch: pytest.MonkeyPatch) -> None:
    right = Commit.run

    def run(self: Commit) -> None:
        journal_write, self.journal = self.journal, None
        right(self)
        self.journal, self.logs, self.directories, self.renames, self.removals = journal_write, [], {}, [], []
        right(self)

    patch.setattr(Commit, "run", run)


@planted
def files_are_removed_before_the_journal_says_so(patch: pytest.MonkeyPatch) -> None:
    right = Commit.run

    def run(self: Commit) -> None:
        for path in self.removals:
            self.files.remove(path)
        right(self)

    patch.setattr(Commit, "run", run)


@planted
def markers_that_were_lost_are_not_written_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClusterStore, "_write_missing_markers", lambda self, state: None)


@planted
def producers_are_told_of_batches_that_were_lost(patch: pytest.MonkeyPatch) -> None:
    right = ProducerStateManager.restore

    def restore(
        self: ProducerStateManager, snapshot: Iterable[ProducerSnapshot], log_end_offset: int, retain: int
    ) -> None:
        right(self, snapshot, 10**9, retain)

    patch.setattr(ProducerStateManager, "restore", restore)


@planted
def producers_are_forgotten_with_their_records(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStateManager, "restore", lambda self, snapshot, log_end_offset, retain: None)


@planted
def an_error_is_taken_for_success(patch: pytest.MonkeyPatch) -> None:
    right = DataDirectory.end
    patch.setattr(DataDirectory, "end", lambda self, commit, error=None: right(self, commit))


@planted
def directories_of_deleted_topics_stay(patch: pytest.MonkeyPatch) -> None:
    right = DataDirectory.delete_topic

    def delete(self: DataDirectory, *args: Any) -> None:
        right(self, *args)
        self._renames.clear()

    patch.setattr(DataDirectory, "delete_topic", delete)


@pytest.mark.parametrize("plant", PLANTED, ids=[plant.__name__ for plant in PLANTED])
def test_a_planted_mistake_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    logging.getLogger("aioproducer.broker").setLevel(logging.CRITICAL)
    with pytest.raises(BaseException) as found:
        run_state_machine_as_test(
            CrashMachine,
            settings=settings(
                max_examples=2000,
                stateful_step_count=40,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                derandomize=True,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
    assert not isinstance(found.value, KeyboardInterrupt)
