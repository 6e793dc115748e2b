"""Invariants of units: each of them is there as a whole, once, or not at all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from aioproducer.broker import EmbeddedCluster, Topic
from aioproducer.errors import RecordTooLargeException
from aioproducer.testing.simulation.checks.invariants import may_be_too_large
from aioproducer.testing.simulation.checks.ledger import Entry, Ledger, number_of
from aioproducer.testing.simulation.checks.transaction_invariants import read_committed
from aioproducer.testing.simulation.checks.transactions import End, Transaction, TransactionLedger
from aioproducer.testing.simulation.checks.violations import Violations
from aioproducer.testing.simulation.scenario import Scenario
from aioproducer.testing.simulation.users.unit_work import of_units


def check_units(
    scenario: Scenario,
    ledger: Ledger,
    transactions: TransactionLedger,
    cluster: EmbeddedCluster,
    deleted: Iterable[Topic],
    violations: Violations,
) -> None:
    """Checks the units after the run, as a ``read_committed`` consumer sees them. Records in a ``deleted`` topic cannot
    be read, and are not missed."""
    gone = Counter(number for topic in deleted for number in _numbers(topic))
    visible: Counter[int] = Counter()
    for topic in cluster.topics:
        for partition in topic.partitions:
            seen = [ledger.entries[number_of(record.headers)] for record in read_committed(partition.log)]
            visible.update(entry.number for entry in seen)
            _check_order(str(partition), seen, violations)
    entries: dict[Transaction, list[Entry]] = defaultdict(list)
    for entry in ledger.entries:
        if entry.transaction is not None and entry.transaction.of_units and entry.error is None:
            entries[entry.transaction].append(entry)
    for unit in of_units(transactions.transactions):
        offset_there = unit.offset is not None and unit.offset in cluster.committed_offsets(unit.group)
        _check_unit(unit, entries[unit], visible, gone, offset_there=offset_there, violations=violations)
        _check_reason(scenario, unit, entries[unit], violations)
        if scenario.calm and scenario.users(unit.life.transactional_id) < 2:
            _check_calm(scenario, unit, entries[unit], violations)


def _numbers(topic: Topic) -> Iterable[int]:
    for partition in topic.partitions:
        for batch in partition.log.batches():
            if not batch.is_control:
                yield from (number_of(record.headers) for record in batch.records())


def _check_unit(
    unit: Transaction,
    entries: list[Entry],
    visible: Counter[int],
    gone: Counter[int],
    *,
    offset_there: bool,
    violations: Violations,
) -> None:
    seen = [entry for entry in entries if visible[entry.number]]
    twice = [entry for entry in entries if visible[entry.number] > 1]
    missing = [entry for entry in entries if not visible[entry.number] and not gone[entry.number]]
    if twice:
        violations.add("a unit is there once", f"{unit}: {twice}")
    if unit.end is End.COMMITTED:
        if missing or (unit.offset_taken and not offset_there):
            violations.add("a unit reported as committed is there", f"{unit}: {missing or 'its offset'} is missing")
    elif unit.end is End.ABORTED or unit.commit_requested_at is None:
        if seen or offset_there:
            violations.add("nothing of a unit that was not sent is read", f"{unit}: {seen or 'its offset'}")
    elif (seen or offset_there) and (missing or (unit.offset_taken and not offset_there)):
        violations.add("a unit is there as a whole or not at all", f"{unit}: {seen}, not {missing or 'its offset'}")


def _check_order(where: str, seen: Iterable[Entry], violations: Violations) -> None:
    """The records of a producer's units are in the order in which the units ended, and within a unit as sent."""
    last: dict[int, tuple[int, int]] = {}
    for entry in seen:
        unit = entry.transaction
        if unit is None or not unit.of_units:
            continue
        place = unit.ended, entry.number
        if last.get(entry.producer, place) > place:
            violations.add(
                "units are in the order of their ends", f"{entry} of {unit} is in {where} behind {last[entry.producer]}"
            )
        last[entry.producer] = place


def _check_reason(scenario: Scenario, unit: Transaction, entries: list[Entry], violations: Violations) -> None:
    """No fault makes a unit fail with the error of another unit's record."""
    if not isinstance(unit.failure, RecordTooLargeException) or unit.commit_requested_at is None:
        return
    if not any(may_be_too_large(scenario, entry) for entry in entries):
        violations.add("a unit fails with an error of its own", f"{unit}: {unit.failure!r}")


def _check_calm(scenario: Scenario, unit: Transaction, entries: list[Entry], violations: Violations) -> None:
    """Without faults a unit fails only for a reason of its own: another one's record never makes it fail."""
    if unit.end is End.COMMITTED or unit.commit_requested_at is None or unit.cancelled or unit.doomed:
        return
    if not any(may_be_too_large(scenario, entry) for entry in entries):
        violations.add("without faults units are committed", f"{unit}: {unit.failure!r}")
