"""After any crash every committed change is there, and nothing else; planted mistakes are found."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from aioproducer.broker.coordinators.transaction_coordinator import TransactionCoordinator
from aioproducer.broker.state.transaction_metadata import TransactionMetadata
from aioproducer.broker.storage.cluster_store import ClusterStore
from aioproducer.broker.storage.commit import Commit, Unsynced
from aioproducer.broker.storage.data_directory import DataDirectory
from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.frames import Key, Value
from aioproducer.broker.storage.journal import JournalCopy, JournalWrite
from aioproducer.broker.storage.repair import Cut
from aioproducer.errors import KafkaError
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


class _WithoutSync:
    def __init__(self, files: Files) -> None:
        self._files = files

    def sync(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


@planted
def a_new_journal_is_renamed_before_it_is_synced(patch: pytest.MonkeyPatch) -> None:
    right = JournalCopy._append
    patch.setattr(JournalCopy, "_append", lambda self, files, frames: right(self, _WithoutSync(files), frames))


@planted
def a_new_journal_lacks_what_has_changed_meanwhile(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JournalCopy, "follow", lambda self, changes: None)


@planted
def what_is_gone_meanwhile_is_in_the_new_journal(patch: pytest.MonkeyPatch) -> None:
    def follow(self: JournalCopy, changes: Mapping[Key, Value]) -> None:
        right(self, {key: value for key, value in changes.items() if value is not None})

    right = JournalCopy.follow
    patch.setattr(JournalCopy, "follow", follow)


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


@planted
def markers_that_are_missing_are_not_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionCoordinator, "finish_prepared", lambda self: None)


@planted
def the_decision_is_not_kept_with_the_first_markers(patch: pytest.MonkeyPatch) -> None:
    right = TransactionCoordinator._changed

    def changed(self: TransactionCoordinator, metadata: TransactionMetadata) -> None:
        if not metadata.is_prepared:
            right(self, metadata)

    patch.setattr(TransactionCoordinator, "_changed", changed)


@planted
def what_a_commit_leaves_to_the_next_one_is_acknowledged(patch: pytest.MonkeyPatch) -> None:
    right = DataDirectory.begin

    def begin(self: DataDirectory, *, sync: bool) -> Commit:
        commit = right(self, sync=sync)
        commit.changes = self.changes
        return commit

    patch.setattr(DataDirectory, "begin", begin)


@planted
def where_a_log_begins_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DataDirectory, "log_start_moved", lambda self, batches, log_start_offset: None)


@planted
def what_deleted_batches_said_of_producers_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DataDirectory, "keep_producers", lambda self, key, producer_state: None)


@pytest.mark.once
@pytest.mark.timeout(300)  # some take half a minute of an idle processor
@pytest.mark.parametrize("plant", PLANTED, ids=[plant.__name__ for plant in PLANTED])
def test_a_planted_mistake_is_found(
    plant: Plant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plant(monkeypatch)
    caplog.set_level(logging.CRITICAL, "aioproducer.broker")
    with pytest.raises(BaseException) as found:
        run_state_machine_as_test(
            CrashMachine,
            settings=settings(
                max_examples=1000,
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
    assert "Timeout" not in str(found.value), "time was up, and nothing found"


def crashed_while_records_are_deleted(seed: int, crash_after: int) -> CrashMachine:
    """The log of a partition begins in its third file from now on: the journal says so, then the first two go."""
    machine = CrashMachine()
    machine.start(seed=seed)
    for _ in range(3):
        machine.produce(name="a", index=0, count=4)
    machine.commit_all()
    machine.delete_records(name="a", index=0, back=0)
    machine.begin_commit()
    machine.crash(after=crash_after, again=[], code=None)
    return machine


@pytest.mark.parametrize("crash_after", range(1, 7))
def test_files_go_when_the_journal_says_that_they_may(crash_after: int) -> None:
    for seed in range(20):
        crashed_while_records_are_deleted(seed, crash_after)


def test_files_that_go_too_early_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Commit) -> None:
        for path in self.removals:
            self.files.remove(path)
        right(self)

    right = Commit.run
    monkeypatch.setattr(Commit, "run", run)
    with pytest.raises(AssertionError):
        all(crashed_while_records_are_deleted(seed, 3) for seed in range(20))


def decided(crash_after: int, markers_at_once: int = 2) -> CrashMachine:
    """A transaction in two partitions is committed when the machine crashes, after some of the disk operations for it:
    first the journal is appended to and synced, then the logs that have markers."""
    machine = CrashMachine()
    machine.start(seed=1)
    machine.coordinator.markers_at_once = markers_at_once
    machine.produce_in_transaction(name="a", producer="one", indexes={0, 1})
    machine.commit_all()
    machine.end_transaction(producer="one", committed=True, bump=True)
    machine.begin_commit()
    machine.crash(after=crash_after, again=[], code=None)
    return machine


@pytest.mark.parametrize("markers_at_once", [1, 2])
@pytest.mark.parametrize("crash_after", range(3, 9))
def test_a_decision_is_carried_out_in_every_partition(crash_after: int, markers_at_once: int) -> None:
    (how,) = decided(crash_after, markers_at_once).model.transactions.values()
    assert how == "committed"


def test_a_decision_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClusterStore, "_write_missing_markers", lambda self, state: None)
    with pytest.raises(AssertionError):
        decided(3)


def test_a_marker_that_is_written_before_the_decision_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Commit) -> None:
        if not self.directories:
            for _, writes in self.logs:
                for write in writes:
                    self.files.append(write.path, write.batches)
                    self.files.sync(write.path)
            self.logs.clear()
        right(self)

    right = Commit.run
    monkeypatch.setattr(Commit, "run", run)
    with pytest.raises(AssertionError):
        decided(3)


def torn(seed: int) -> CrashMachine:
    """Three times the machine crashes while the log is written to; the seed says how much of it is left."""
    machine = CrashMachine()
    machine.start(seed=seed)
    for _ in range(3):
        machine.produce(name="a", index=0, count=4)
        machine.commit_all()
        machine.produce(name="a", index=0, count=4)
        machine.begin_commit()
        machine.crash(after=1, again=[], code=None)
    return machine


SEEDS = range(20)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_write_that_was_torn_is_cut_off(seed: int) -> None:
    torn(seed)


def test_bytes_that_should_be_cut_off_but_stay_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cut, "run", lambda self, files: None)
    with pytest.raises((AssertionError, KafkaError, OSError)):
        all(torn(seed) for seed in SEEDS)
