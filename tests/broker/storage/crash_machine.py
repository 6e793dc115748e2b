"""A cluster on files that lose, tear and reorder whatever was not synced, against a model of what it has to keep."""

from __future__ import annotations

import contextlib
import errno
from collections import deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.coordinators.group_offsets import GroupOffsets
from aioproducer.broker.coordinators.transaction_coordinator import NOBODY, TransactionCoordinator
from aioproducer.broker.requests.slices import Slices
from aioproducer.broker.state.cluster_nodes import Node
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.state.committed_offset import OffsetAndMetadata
from aioproducer.broker.state.topic import NewTopic, Partition
from aioproducer.broker.state.transaction_metadata import COMPLETE, TransactionMetadata, TransactionState
from aioproducer.broker.storage.clean_shutdown import write_clean_shutdown
from aioproducer.broker.storage.cluster_store import ClusterStore
from aioproducer.broker.storage.commit import Commit
from aioproducer.broker.storage.data_directory import DataDirectory
from aioproducer.broker.storage.journal import MetadataJournal
from aioproducer.broker.storage.segments.stored_batches import StoredBatches
from aioproducer.errors import ConcurrentTransactionsException, KafkaStorageException
from aioproducer.records.record_batch import RecordBatch
from tests.broker.raw_clients.batches import NOW_MS, make_batch
from tests.broker.storage.faulty_files import Crash, FaultyFiles

SEGMENT_BYTES = 400
"""Some five batches of one record."""
TOPICS = ("a", "b")
PARTITIONS = 2
PRODUCERS = ("one", "two")
GROUP_PARTITION = ("in", 0)
Where = tuple[UUID, int]


class _SmallSegments(StoredBatches):
    def configure(self, config: TopicConfig) -> None:
        self._segment_bytes = SEGMENT_BYTES


class _EagerJournal(MetadataJournal):
    """Is copied again and again, in pieces of a few entries."""

    piece = 1000

    def limit(self, size: int) -> int:
        return size


class _Directory(DataDirectory):
    def __init__(self, files: FaultyFiles) -> None:
        super().__init__(files)
        self.journal = _EagerJournal()
        self.logs_at_once = 2

    def batches(self, topic: str, topic_id: UUID, index: int, config: TopicConfig) -> StoredBatches:
        return _SmallSegments(self.files, f"{topic}-{index}", (topic_id.hex, index), self, config)


class _Coordinator(TransactionCoordinator):
    markers_at_once = 1

    def __init__(self, state: ClusterState, offsets: GroupOffsets, clock: _Clock, journal: ClusterStore) -> None:
        super().__init__(state, offsets, clock, Slices(clock), journal)
        self.finishing: deque[tuple[TransactionMetadata, Iterator[None]]] = deque()

    def _go_on(self, metadata: TransactionMetadata, steps: Iterator[None]) -> None:
        self.finishing.append((metadata, steps))  # the machine says when more markers are written

    def write_markers(self) -> None:
        if self.finishing:
            self._continue(*self.finishing.popleft(), until=0)

    def _start_timer(self, metadata: TransactionMetadata, left_ms: int) -> None:
        pass  # no time passes


class _Clock:
    """Each look is a millisecond: no two transactions begin at the same time."""

    def __init__(self) -> None:
        self._now = NOW_MS

    def monotonic(self) -> float:
        return self.time_ms() / 1000

    def time_ms(self) -> int:
        self._now += 1
        return self._now


@dataclass
class Sent:
    """A record of the model. ``transaction`` is its number, None without one."""

    value: bytes
    offset: int
    transaction: int | None
    batch: bytes
    change: int = 0
    """The number of the change that it was, since the last start."""


@dataclass
class Promised:
    """What there was when a commit began: once that has ended, no crash may take it back."""

    journal: Any
    sent: dict[Where, int]
    """How many records each partition has at least: as many as it had ever got by the last change of the commit."""
    most: dict[Where, int]
    """How many it may have: as many as it had ever got when the commit began."""
    transactions: dict[int, str]
    current: dict[str, int]


@dataclass
class Model:
    """All that was done, in order, since the last restart, and before it what was found then."""

    sent: dict[Where, list[Sent]] = field(default_factory=dict)
    transactions: dict[int, str] = field(default_factory=dict)
    """``open``, ``committed`` or ``aborted``."""
    current: dict[str, int] = field(default_factory=dict)
    """The transaction under way of a producer."""


class CrashMachine(RuleBasedStateMachine):
    """Every rule is something a client may do, or a commit, or a crash; after a crash comes the judgement."""

    @initialize(seed=st.integers(0, 2**32))
    def start(self, seed: int) -> None:
        self.files = FaultyFiles(seed)
        self.model = Model()
        self.counter = 0
        self.in_flight: tuple[Commit, Promised] | None = None
        self.clock, self.random = _Clock(), Random(seed)
        self._boot()
        self.idempotent_id = self.state.allocate_producer_id()
        self.commit_all()

    def _boot(self) -> None:
        """A cluster is made, restored, and what that changed is committed; as ``Storage.open`` does it."""
        self.directory = _Directory(self.files)
        self.store = store = ClusterStore(self.directory)
        self.state = ClusterState([0], BrokerConfig.of({}), self.random, store)
        self.coordinator = _Coordinator(self.state, GroupOffsets(store), self.clock, store)
        store.restore(self.state, self.coordinator, NOW_MS)
        covered = -1
        while covered < self.directory.changes:
            commit = self.directory.begin(sync=True)
            commit.run()
            self.directory.end(commit)
            covered = commit.changes
        self.state.node_started(0, {"PLAINTEXT": Node(0, "localhost", 9092)})

    def _next(self) -> int:
        self.counter += 1
        return self.counter

    def _where(self, partition: Partition) -> Where:
        return self.state.topics[partition.topic].id, partition.index

    def _promise(self, covered: int) -> Promised:
        """What may be found after a commit of the changes up to this number."""
        return Promised(
            self._journaled(),
            {where: sum(one.change <= covered for one in sent) for where, sent in self.model.sent.items()},
            {where: len(sent) for where, sent in self.model.sent.items()},
            dict(self.model.transactions),
            dict(self.model.current),
        )

    def _journaled(self) -> Any:
        """What is kept beside the records, as far as it is there all at once or not at all."""
        offsets = self.coordinator.offsets
        committed, pending = dict(offsets.committed("g")), deepcopy(offsets._pending)
        transactions = {}
        for one in self.coordinator.transactions():
            state, of = one.state, [*one.partitions, *one.groups]
            if one.is_prepared:  # a start finishes it
                groups = pending.pop(one.marked[0], {})
                if state is TransactionState.PREPARE_COMMIT:
                    committed |= groups.get("g", {})
                state, of = COMPLETE[state], []
            transactions[one.transactional_id] = (one.identity, one.previous, state, one.started_ms, of)
        topics = {
            name: (topic.id, dict(topic.configs), [partition.log.log_start_offset for partition in topic.partitions])
            for name, topic in self.state.topics.items()
        }
        return topics, committed, pending, transactions

    # what clients do

    @rule(name=st.sampled_from(TOPICS))
    def create_topic(self, name: str) -> None:
        if name not in self.state.topics:
            topic = self.state.create_topic(NewTopic(name, PARTITIONS))
            for index in range(PARTITIONS):
                self.model.sent[topic.id, index] = []

    @rule(name=st.sampled_from(TOPICS))
    def delete_topic(self, name: str) -> None:
        if name in self.state.topics:
            self.state.delete_topic(name)

    def _partition(self, name: str, index: int) -> Partition:
        self.create_topic(name)
        return self.state.partition(name, index)

    def _append(
        self, partition: Partition, producer_id: int, producer_epoch: int, transaction: int | None = None
    ) -> None:
        entry = partition.log.producer_state.entry(producer_id)
        known = entry is not None and entry.producer_epoch == producer_epoch
        value = b"%d" % self._next()
        batch = make_batch(
            value,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=entry.last_sequence + 1 if entry is not None and known else 0,
            transactional=transaction is not None,
        )
        info = partition.log.append(RecordBatch(batch), leader_epoch=partition.leader_epoch, now_ms=NOW_MS)
        assert not info.duplicate
        sent = Sent(value, info.first_offset, transaction, batch, self.directory.changes)
        self.model.sent[self._where(partition)].append(sent)

    @rule(name=st.sampled_from(TOPICS), index=st.integers(0, PARTITIONS - 1), count=st.integers(1, 4))
    def produce(self, name: str, index: int, count: int) -> None:
        for _ in range(count):
            self._append(self._partition(name, index), self.idempotent_id, 0)

    @rule(
        name=st.sampled_from(TOPICS),
        producer=st.sampled_from(PRODUCERS),
        indexes=st.sets(st.integers(0, PARTITIONS - 1), min_size=1),
    )
    def produce_in_transaction(self, name: str, producer: str, indexes: set[int]) -> None:
        if self.coordinator.transaction(producer) is None:
            self.init_producer_id(producer)
        metadata = self._finished(producer)
        assert metadata is not None
        for index in sorted(indexes):
            partition = self._partition(name, index)
            self.coordinator.add_partitions(producer, metadata.identity, [(name, index)])
            transaction = self._current(producer)
            self._append(partition, *metadata.identity, transaction)

    def _current(self, producer: str) -> int:
        if producer not in self.model.current:
            transaction = self.model.current[producer] = self._next()
            self.model.transactions[transaction] = "open"
        return self.model.current[producer]

    @rule(producer=st.sampled_from(PRODUCERS))
    def init_producer_id(self, producer: str) -> None:
        with contextlib.suppress(ConcurrentTransactionsException):  # it has aborted a transaction
            self.coordinator.init_producer_id(producer, 1000, NOBODY)
        self._ended(producer, "aborted")

    @rule(producer=st.sampled_from(PRODUCERS), committed=st.booleans(), bump=st.booleans())
    def end_transaction(self, producer: str, committed: bool, bump: bool) -> None:
        metadata = self.coordinator.transaction(producer)
        if metadata is not None and metadata.state is TransactionState.ONGOING:
            self._current(producer)
            self.coordinator.end(producer, metadata.identity, committed=committed, bump=bump)
            self._ended(producer, "committed" if committed else "aborted")

    @rule()
    def write_markers(self) -> None:
        self.coordinator.write_markers()

    def _finished(self, producer: str) -> TransactionMetadata | None:
        """The producer has waited until it may go on."""
        metadata = self.coordinator.transaction(producer)
        while metadata is not None and metadata.is_prepared:
            assert self.coordinator.finishing, "a transaction is prepared, and its markers are not being written"
            self.coordinator.write_markers()
        return metadata

    def _ended(self, producer: str, how: str) -> None:
        transaction = self.model.current.pop(producer, None)
        if transaction is not None:
            self.model.transactions[transaction] = how

    @rule(producer=st.sampled_from((*PRODUCERS, None)))
    def commit_offset(self, producer: str | None) -> None:
        offsets = {GROUP_PARTITION: OffsetAndMetadata(self._next(), -1, "", 0)}
        metadata = None if producer is None else self._finished(producer)
        if producer is None or metadata is None:
            self.coordinator.offsets.commit("g", offsets)
        else:
            self.coordinator.add_group(producer, metadata.identity, "g")
            self._current(producer)
            self.coordinator.offsets.commit_in_transaction(metadata.producer_id, "g", offsets)

    @rule(name=st.sampled_from(TOPICS), index=st.integers(0, PARTITIONS - 1), back=st.integers(0, 3))
    def delete_records(self, name: str, index: int, back: int) -> None:
        log = self._partition(name, index).log
        log.delete_records(max(log.log_start_offset, min(log.log_end_offset - back, log.last_stable_offset)))

    # commits, and what comes between

    @precondition(lambda self: self.in_flight is None)
    @rule()
    def begin_commit(self) -> None:
        commit = self.directory.begin(sync=True)
        self.in_flight = commit, self._promise(commit.changes)

    @precondition(lambda self: self.in_flight is not None)
    @rule()
    def end_commit(self) -> None:
        assert self.in_flight is not None
        commit, promise = self.in_flight
        commit.run()
        self.directory.end(commit)
        self.acknowledged, self.in_flight = promise, None
        self._read_everything()
        if self.directory.journal.copy is not None:
            self.directory.journal.copy.advance(self.files)

    @rule()
    def commit_all(self) -> None:
        if self.in_flight is None:
            self.begin_commit()
        self.end_commit()

    def _read_everything(self) -> None:
        for partition in self.state.partitions():
            _check_log(self.model.sent[self._where(partition)], partition)

    @rule(
        after=st.one_of(st.none(), st.integers(1, 12)),
        again=st.lists(st.integers(1, 12), max_size=2),
        code=st.sampled_from((None, errno.ENOSPC, errno.EIO)),
    )
    def crash(self, after: int | None, again: list[int], code: int | None) -> None:
        """Crashes at once, or after some operations of the current commit; a disk error may come first. Then come
        recoveries that crash as well, and one that does not."""
        if self.in_flight is not None and after is not None:
            if code is None:
                self._dies(after, self.in_flight[0].run)
            else:
                self._fails(self.in_flight[0], after, OSError(code, "a fault"))
        self.files.crash()
        for one in again:
            self._dies(one, self._boot)
            self.files.crash()
        self._boot()
        self._judge()

    @rule(after=st.one_of(st.none(), st.integers(1, 6)), again=st.lists(st.integers(1, 12), max_size=2))
    def close(self, after: int | None, again: list[int]) -> None:
        """In good order, unless the machine crashes while that is noted; then starts, and one that does not crash."""
        # The current commit, later changes of all logs, and then the removal of files.
        for _ in range(2 + 2 * len(TOPICS) * PARTITIONS):
            self.commit_all()
        left = self.store.checkpoints(self.state)
        finished = not any(one.is_prepared for one in self.coordinator.transactions())
        if after is None:
            write_clean_shutdown(self.files, left)
            self.directory.close()
        else:
            self._dies(after, lambda: write_clean_shutdown(self.files, left))
            self.files.crash()
        for one in again:
            self._dies(one, self._boot)
            self.files.crash()
        self._boot()
        if after is None and not again and finished:  # else the start has written markers
            assert self.store.checkpoints(self.state) == left
        self._judge()

    def _fails(self, commit: Commit, after: int, error: OSError) -> None:
        """Once: whatever is tried again would succeed."""
        self.files.error_at = {self.files.operations + after: error}
        try:
            commit.run()
        except OSError as caught:
            self.directory.end(commit, caught)
            for partition in self.state.partitions():
                with pytest.raises(KafkaStorageException):
                    partition.log.append_marker(1, 1, committed=True, leader_epoch=0, now_ms=NOW_MS)
        self.files.error_at = {}

    def _dies(self, after: int, act: Callable[[], object]) -> None:
        self.files.crash_at = self.files.operations + after
        with contextlib.suppress(Crash):
            act()
        self.files.crash_at = None

    # the judgement

    def _judge(self) -> None:
        """The found state is the last promised one, or that of the interrupted commit."""
        states = [self.acknowledged] if self.in_flight is None else [self.in_flight[1], self.acknowledged]
        found = self._journaled()
        base = next((one for one in states if one.journal == found), None)
        assert base is not None, f"{found} is none of {[one.journal for one in states]}"
        lost: dict[Where, list[Sent]] = {}
        sent = self.model.sent
        for partition in self.state.partitions():
            where = self._where(partition)
            kept = _check_log(sent[where], partition)
            assert self.acknowledged.sent.get(where, 0) <= kept <= states[0].most[where]
            lost[where] = sent[where][kept:]
            for one in sent[where][:kept]:
                if one.transaction is not None and one.offset >= partition.log.log_start_offset:
                    assert _fate(one, partition) == base.transactions.get(one.transaction, "unknown")
            assert partition.leader_epoch > partition.log.leader_epochs.latest
            used = partition.log.producer_state.entries()
            assert all(producer_id < self.state.allocate_producer_id() for producer_id in used)
        self.in_flight = None
        self.model = Model({where: sent[where][: len(sent[where]) - len(gone)] for where, gone in lost.items()})
        self.model.transactions, self.model.current = dict(base.transactions), dict(base.current)
        for one in chain.from_iterable(self.model.sent.values()):
            one.change = 0
        self.acknowledged = self._promise(0)
        self._retry(sent, lost)

    def _retry(self, sent: dict[Where, list[Sent]], lost: dict[Where, list[Sent]]) -> None:
        """The producer resends its last batch: it is recognised if it is there, and appended if not."""
        for partition in self.state.partitions():
            where = self._where(partition)
            gone = {one.value for one in lost[where]}
            mine = [one for one in sent[where] if RecordBatch(one.batch).producer_id == self.idempotent_id]
            for one in mine[-max(5, sum(one.value in gone for one in mine)) :]:
                again = RecordBatch(one.batch)
                info = partition.log.append(again, leader_epoch=partition.leader_epoch, now_ms=NOW_MS)
                assert info.duplicate == (one.value not in gone)
                if not info.duplicate:
                    changes = self.directory.changes
                    self.model.sent[where].append(Sent(one.value, info.first_offset, None, one.batch, changes))


def _check_log(sent: list[Sent], partition: Partition) -> int:
    """The records are those that were sent, in order, up to some point. How many of them are or were there."""
    start = partition.log.log_start_offset
    deleted = sum(one.offset < start for one in sent)
    found = [(record.value, record.offset) for record in partition.log.records() if record.offset >= start]
    assert found == [(one.value, one.offset) for one in sent[deleted:]][: len(found)]
    return deleted + len(found)


def _fate(sent: Sent, partition: Partition) -> str:
    """What a record of a transaction is to a consumer."""
    producer_id = RecordBatch(sent.batch).producer_id
    log = partition.log
    for one in log.active_producers():
        if one.producer_id == producer_id and 0 <= one.transaction_start_offset <= sent.offset:
            return "open"
    aborted = log.aborted_transactions(sent.offset, sent.offset + 1)
    return "aborted" if any(one.producer_id == producer_id for one in aborted) else "committed"
