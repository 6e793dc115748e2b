"""Each invariant of transactions holds for a correct history, and fails for a wrong one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from aioproducer.broker import PartitionLog, Topic
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.errors import InvalidRecordException, KafkaError, ProducerFencedException
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter
from aioproducer.testing.simulation.checks.ledger import NUMBER, Entry
from aioproducer.testing.simulation.checks.transaction_invariants import (
    check_all_ended,
    check_transactions,
    read_committed,
)
from aioproducer.testing.simulation.checks.transactions import End, Life, Transaction, TransactionLedger
from aioproducer.testing.simulation.trace import Trace
from aioproducer.types import TopicPartition
from tests.testing.simulation.histories import NOW_MS, History, failure

FAULTS = {"late": 0.1}
OFFSET = TopicPartition("input", 0)


class Case:
    """A partition, its producers, and what was reported to them."""

    def __init__(self, *, calm: bool = False) -> None:
        self.history = History(rates=None if calm else FAULTS)
        self.log = PartitionLog("t-0", TopicConfig.of({}, BrokerConfig.of({})))
        self.history.topic.partitions[0].log = self.log
        self.history.topic.partitions[1:] = []
        self.transactions = TransactionLedger(Trace())
        self.offsets: dict[TopicPartition, int] = {}
        self.sequences: dict[int, int] = {}
        self.deleted: list[Topic] = []

    def life(self, at: float = 1.0, transactional_id: str = "x") -> Life:
        """A producer that took over at that time."""
        life = Life(transactional_id, len(self.transactions.lives), at, at + 0.1)
        self.transactions.lives.append(life)
        return life

    def transaction(self, life: Life, end: End | None, *, requested_at: float | None = 2.0) -> Transaction:
        transaction = self.transactions.begin(life)
        transaction.end = end
        transaction.commit_requested_at = requested_at
        self.history.ledger.transactions[life.producer] = transaction
        return transaction

    def writes(self, life: Life) -> Entry:
        """A record of the latest transaction, which arrives."""
        entry = self.history.sent(producer=life.producer)
        header = (NUMBER, b"%d" % entry.number)
        sequence = self.sequences.get(life.producer, 0)
        self.sequences[life.producer] = sequence + 1
        writer = RecordWriter()
        writer.append(0, 0, None, b"v", (header,))
        body = writer.freeze()
        batch = encode_batch_header(
            body,
            count=1,
            base_timestamp=NOW_MS,
            max_timestamp=NOW_MS,
            producer_id=life.producer,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        info = self.log.append(RecordBatch(batch + body), leader_epoch=0, now_ms=NOW_MS)
        self.history.ends(entry, self.history.metadata(entry, info.first_offset))
        return entry

    def marker(self, life: Life, *, committed: bool) -> None:
        self.log.append_marker(life.producer, 0, committed=committed, leader_epoch=0, now_ms=NOW_MS)

    def found(self) -> list[str]:
        """The promises that were broken."""
        cluster: Any = SimpleNamespace(topics=[self.history.topic], committed_offsets=lambda group: self.offsets)
        check_transactions(
            self.history.scenario,
            self.history.ledger,
            self.transactions,
            cluster,
            self.deleted,
            self.history.violations,
        )
        check_all_ended(cluster, self.history.violations)
        return [violation.partition(": ")[0] for violation in self.history.violations.found]


NOTHING = "nothing of a transaction that was not committed is read"
WHOLE = "a transaction is committed as a whole"


ENDS = {
    "reported as committed, and is": (End.COMMITTED, 2.0, True, None),
    "reported as committed, and is not": (End.COMMITTED, 2.0, False, WHOLE),
    "reported as aborted, and is": (End.ABORTED, 2.0, False, None),
    "reported as aborted, and is not": (End.ABORTED, 2.0, True, NOTHING),
    "not reported, and committed": (None, 2.0, True, None),
    "not reported, and aborted": (None, 2.0, False, None),
    "never requested, and committed": (None, None, True, NOTHING),
    "never requested, and aborted": (None, None, False, None),
}
"""The reported end, when a commit was requested, whether the log has it, and the broken promise."""


@pytest.mark.parametrize("case_of", ENDS)
@pytest.mark.parametrize("with_offset", [False, True])
def test_committed_reads_agree_with_reported_ends(case_of: str, with_offset: bool) -> None:
    end, requested_at, committed, promise = ENDS[case_of]
    case = Case()
    life = case.life()
    transaction = case.transaction(life, end, requested_at=requested_at)
    if with_offset:
        transaction.group, transaction.offset, transaction.offset_taken = "g", OFFSET, True
        if committed:
            case.offsets[OFFSET] = 0
    case.writes(life)
    case.writes(life)
    case.marker(life, committed=committed)
    assert set(case.found()) == ({promise} if promise else set())


def test_a_part_of_a_transaction_whose_end_was_not_reported() -> None:
    case = Case()
    life = case.life()
    case.transaction(life, None)
    case.writes(life)
    lost = case.history.sent(producer=life.producer)
    case.history.ends(lost, case.history.metadata(lost, 1))
    case.marker(life, committed=True)
    assert case.found() == [WHOLE]


@pytest.mark.parametrize("there", [False, True])
def test_offsets_without_their_records_and_records_without_their_offsets(there: bool) -> None:
    case = Case()
    life = case.life()
    transaction = case.transaction(life, None)
    transaction.group, transaction.offset, transaction.offset_taken = "g", OFFSET, True
    case.writes(life)
    case.marker(life, committed=not there)
    if there:
        case.offsets[OFFSET] = 0
    assert case.found() == [WHOLE]


def test_a_transaction_that_is_committed_although_a_record_failed() -> None:
    case = Case()
    life = case.life()
    case.transaction(life, End.COMMITTED)
    case.writes(life)
    case.history.ends(case.history.sent(producer=life.producer), failure(InvalidRecordException("bad")))
    case.marker(life, committed=True)
    assert case.found() == ["a transaction with a record that failed is not committed"]


def test_a_producer_that_commits_after_it_was_fenced() -> None:
    case = Case()
    older = case.life(1.0)
    case.transaction(older, None, requested_at=4.0)
    case.writes(older)
    case.life(3.0)
    case.marker(older, committed=True)
    assert case.found() == [NOTHING]


def test_an_older_producer_writes_behind_a_newer() -> None:
    case = Case()
    older, newer = case.life(1.0), case.life(3.0)
    for life in (newer, older):
        case.transaction(life, End.COMMITTED, requested_at=2.0)
        case.writes(life)
        case.marker(life, committed=True)
    assert case.found() == ["a fenced producer writes nothing"]


def test_other_transactional_ids_have_nothing_to_do_with_it() -> None:
    case = Case()
    first, second = case.life(1.0, "x"), case.life(3.0, "y")
    for life in (second, first):
        case.transaction(life, End.COMMITTED, requested_at=5.0)
        case.writes(life)
        case.marker(life, committed=True)
    assert case.found() == []


def test_a_transaction_that_stays_open() -> None:
    case = Case()
    life = case.life()
    case.transaction(life, None, requested_at=None)
    case.writes(life)
    assert case.found() == ["no transaction stays open"]


def test_without_faults_what_is_to_be_committed_is() -> None:
    for error, promises in (
        (None, ["without faults transactions are committed"]),
        (ProducerFencedException("a rival"), ["without faults transactions are committed"]),
    ):
        case = Case(calm=True)
        life = case.life()
        case.transaction(life, End.ABORTED)
        case.writes(life)
        if error is not None:
            case.history.ends(case.history.sent(producer=life.producer), failure(error))
        case.marker(life, committed=False)
        assert case.found() == promises


def test_committed_and_aborted_transactions_side_by_side() -> None:
    case = Case()
    first, second = case.life(1.0, "x"), case.life(1.0, "y")
    expected = []
    for number in range(6):
        case.transaction(first, End.COMMITTED if number % 2 else End.ABORTED)
        case.transaction(second, End.ABORTED if number % 2 else End.COMMITTED)
        both = [case.writes(first), case.writes(second)]
        expected.append(both[0 if number % 2 else 1].number)
        case.marker(second, committed=not number % 2)
        case.marker(first, committed=bool(number % 2))
    assert case.found() == []
    assert [int(dict(record.headers)[NUMBER] or b"") for record in read_committed(case.log)] == expected


def test_records_of_a_deleted_topic_are_not_missed() -> None:
    case = Case()
    life = case.life()
    case.transaction(life, End.COMMITTED)
    case.writes(life)
    assert case.found() == [WHOLE, "no transaction stays open"]
    topic = case.history.topic
    case.history.violations.found.clear()
    case.deleted = [replace(topic, partitions=list(topic.partitions))]
    topic.partitions.clear()
    assert case.found() == []


def test_a_committed_transaction_has_every_record_that_it_took() -> None:
    case = Case()
    life = case.life()
    case.transaction(life, End.COMMITTED)
    case.writes(life)
    case.marker(life, committed=True)
    forgotten = case.history.sent(producer=life.producer)
    assert case.found() == [WHOLE]
    case.history.violations.found.clear()
    case.history.ends(forgotten, failure(KafkaError("withdrawn")))
    forgotten.parked = forgotten.awaited = True
    assert case.found() == ["a transaction with a record that failed is not committed"]
