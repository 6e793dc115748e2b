"""Compares the journal with a ``read_committed`` reader, which must see exactly the committed transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aioproducer.testing.kafka.kafka_output import ConsumedRecord
from aioproducer.testing.transactions.journal import Journal, Outcome
from aioproducer.testing.transactions.plan import Plan, Transaction, transaction_of


@dataclass(frozen=True)
class Verdict:
    """``resolved`` are the transactions interrupted within their commit that turned out committed."""

    records: int
    resolved: frozenset[Transaction]
    problems: tuple[str, ...]


def judge(plan: Plan, journal: Journal, consumed: Sequence[ConsumedRecord]) -> Verdict:
    """Every committed transaction must be read completely, in the order of the commits. A transaction that was
    interrupted within its commit must be read completely or not at all. Nothing else may be read."""
    read = Counter(transaction_of(record.value) for record in consumed)
    resolved = frozenset(read.keys() & set(journal.with_outcome(Outcome.UNKNOWN)))
    expected = sorted([*journal.with_outcome(Outcome.COMMITTED), *resolved])
    problems = [*_intruders(journal, read), *_differences(plan, expected, consumed)]
    return Verdict(len(consumed), resolved, tuple(problems))


def _intruders(journal: Journal, read: Counter[Transaction]) -> Iterator[str]:
    for transaction, records in sorted(read.items()):
        if journal.outcome(transaction) is Outcome.NOT_COMMITTED:
            last = journal.last.get(transaction)
            ending = "never began" if last is None else f"came to: {last.value}"
            yield f"{records} records of {_name(transaction)} were read, which {ending}"


def _differences(plan: Plan, expected: Sequence[Transaction], consumed: Sequence[ConsumedRecord]) -> Iterator[str]:
    """The first difference of each partition."""
    wanted: dict[int, list[bytes | None]] = {partition: [] for partition in range(plan.partitions)}
    for transaction in expected:
        for partition, value in plan.values(transaction):
            wanted[partition].append(value)
    found: dict[int, list[bytes | None]] = {partition: [] for partition in range(plan.partitions)}
    for record in sorted(consumed, key=lambda record: record.offset):
        found[record.partition].append(record.value)
    for partition, values in wanted.items():
        if found[partition] != values:
            at = _first_difference(values, found[partition])
            yield (
                f"partition {partition}: record {at} of {len(values)} should be {_at(values, at)} and is "
                f"{_at(found[partition], at)} of {len(found[partition])}"
            )


def _first_difference(one: list[bytes | None], other: list[bytes | None]) -> int:
    """The index of the first difference between two lists that differ."""
    both = zip(one, other, strict=False)
    return next((at for at, (this, that) in enumerate(both) if this != that), min(len(one), len(other)))


def _at(values: list[bytes | None], at: int) -> str:
    return repr(values[at]) if at < len(values) else "nothing"


def _name(transaction: Transaction) -> str:
    return f"transaction {transaction.number} of run {transaction.run}"
