"""The judge finds every difference between the journal and the records that were read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from aioproducer.testing.kafka.kafka_output import ConsumedRecord
from aioproducer.testing.transactions.journal import Entry, Journal
from aioproducer.testing.transactions.judge import judge
from aioproducer.testing.transactions.plan import Plan, Step, Transaction
from aioproducer.types import TimestampType

PLAN = Plan(transactions=10, records=6, partitions=3, kills=0, stops=0, bounces=0)

ABORTED, COMMITTED, INTERRUPTED, FENCED = (Transaction(0, number) for number in range(4))
LATER = Transaction(1, 4)


@pytest.fixture
def journal() -> Journal:
    journal = Journal()
    for transaction, steps in {
        ABORTED: [Step.INITIALIZE, Step.BEGIN, Step.ABORT, Step.ABORTED],
        COMMITTED: [Step.BEGIN, Step.COMMIT, Step.COMMITTED],
        INTERRUPTED: [Step.BEGIN, Step.COMMIT],
        FENCED: [Step.BEGIN, Step.COMMIT, Step.FAILED, Step.FENCED],
        LATER: [Step.INITIALIZE, Step.BEGIN, Step.COMMIT, Step.COMMITTED],
    }.items():
        for step in steps:
            journal.add(Entry(step, transaction))
    return journal


def read(*transactions: Transaction) -> list[ConsumedRecord]:
    offsets = [0] * PLAN.partitions
    records = []
    for transaction in transactions:
        for partition, value in PLAN.values(transaction):
            create = TimestampType.CREATE_TIME
            records.append(ConsumedRecord("t", partition, offsets[partition], 0, create, None, value))
            offsets[partition] += 1
        offsets = [offset + 1 for offset in offsets]  # a marker takes an offset
    return records


def problems(journal: Journal, consumed: Iterable[ConsumedRecord]) -> list[str]:
    return [*judge(PLAN, journal, [*consumed]).problems]


def test_exactly_the_committed_ones(journal: Journal) -> None:
    verdict = judge(PLAN, journal, read(COMMITTED, LATER))
    assert (verdict.problems, verdict.records, verdict.resolved) == ((), 12, frozenset())


def test_a_transaction_interrupted_within_its_commit_may_be_read(journal: Journal) -> None:
    verdict = judge(PLAN, journal, read(COMMITTED, INTERRUPTED, LATER))
    assert not verdict.problems
    assert verdict.resolved == {INTERRUPTED}


def test_partitions_may_come_in_any_order(journal: Journal) -> None:
    assert not problems(journal, sorted(read(COMMITTED, LATER), key=lambda record: -record.partition))


@pytest.mark.parametrize("partition", range(PLAN.partitions))
def test_an_interrupted_transaction_is_read_whole_or_not_at_all(journal: Journal, partition: int) -> None:
    consumed = read(COMMITTED, INTERRUPTED, LATER)
    consumed = [r for r in consumed if not (r.partition == partition and (r.value or b"").startswith(b"0 2 "))]
    (problem,) = problems(journal, consumed)
    assert problem.startswith(f"partition {partition}: record 2 of 6 should be b'0 2 ")


@pytest.mark.parametrize(
    ("transaction", "ending"),
    [(ABORTED, "came to: aborted"), (FENCED, "came to: failed"), (Transaction(7, 7), "never began")],
)
def test_nothing_else_is_read(journal: Journal, transaction: Transaction, ending: str) -> None:
    found = problems(journal, read(COMMITTED, transaction, LATER))
    assert (
        found[0] == f"6 records of transaction {transaction.number} of run {transaction.run} were read, which {ending}"
    )


def test_a_single_record_of_one_aborted_is_too_many(journal: Journal) -> None:
    consumed = [*read(COMMITTED, LATER), read(COMMITTED, LATER, ABORTED)[-1]]
    assert problems(journal, consumed) == [
        "1 records of transaction 0 of run 0 were read, which came to: aborted",
        "partition 2: record 4 of 4 should be nothing and is b'0 0 5' of 5",
    ]


def test_a_committed_one_is_missing(journal: Journal) -> None:
    assert len(problems(journal, read(LATER))) == PLAN.partitions


@pytest.mark.parametrize("at", range(12))
def test_a_record_is_lost_or_doubled(journal: Journal, at: int) -> None:
    consumed = read(COMMITTED, LATER)
    assert len(problems(journal, consumed[:at] + consumed[at + 1 :])) == 1
    assert len(problems(journal, [*consumed, consumed[at]])) == 1


def test_the_order_of_commits_and_within_them(journal: Journal) -> None:
    assert len(problems(journal, read(LATER, COMMITTED))) == PLAN.partitions
    consumed = read(COMMITTED, LATER)
    swapped = [replace(record, offset={0: 1, 1: 0}.get(record.offset, record.offset)) for record in consumed]
    assert len(problems(journal, swapped)) == PLAN.partitions
