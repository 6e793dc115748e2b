"""The invariants of transactions: a ``read_committed`` consumer sees what was reported to the users."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from aioproducer.broker import EmbeddedCluster, Partition, PartitionLog, Topic
from aioproducer.errors import BufferExhaustedException, RecordTooLargeException, TimeoutException
from aioproducer.records.record import Record
from aioproducer.testing.simulation.checks.ledger import Entry, Ledger, number_of
from aioproducer.testing.simulation.checks.transactions import End, Life, Transaction, TransactionLedger
from aioproducer.testing.simulation.checks.violations import Violations
from aioproducer.testing.simulation.scenario import Scenario


def read_committed(log: PartitionLog) -> Iterator[Record]:
    """The records that a consumer with this isolation level gets. It finds them by the list of aborted transactions in
    the answer to a fetch, and by the markers."""
    aborted = sorted(log.aborted_transactions(0, log.last_stable_offset), key=lambda one: one.first_offset)
    hidden: set[int] = set()
    for batch in log.batches():
        if batch.base_offset >= log.last_stable_offset:
            return
        while aborted and aborted[0].first_offset <= batch.last_offset:
            hidden.add(aborted.pop(0).producer_id)
        if batch.is_control:
            hidden.discard(batch.producer_id)
        elif batch.producer_id not in hidden:
            yield from batch.records()


def check_all_ended(cluster: EmbeddedCluster, violations: Violations) -> None:
    """Checks that no transaction is open after the time-out of every transaction."""
    for partition in _partitions(cluster):
        log = partition.log
        if log.last_stable_offset != log.high_watermark:
            violations.add(
                "no transaction stays open",
                f"{partition} is stable up to {log.last_stable_offset} of {log.high_watermark}",
            )


def check_transactions(
    scenario: Scenario,
    ledger: Ledger,
    transactions: TransactionLedger,
    cluster: EmbeddedCluster,
    deleted: Iterable[Topic],
    violations: Violations,
) -> None:
    """Checks the transactions after the run. Records in a ``deleted`` topic cannot be read, and are not missed."""
    visible: set[int] = set()
    gone = {
        number_of(record.headers)
        for topic in deleted
        for partition in topic.partitions
        for batch in partition.log.batches()
        if not batch.is_control
        for record in batch.records()
    }
    for partition in _partitions(cluster):
        seen = [ledger.entries[number_of(record.headers)] for record in read_committed(partition.log)]
        visible.update(entry.number for entry in seen)
        _check_lives(partition, seen, violations)
    entries: dict[Transaction, list[Entry]] = defaultdict(list)
    for entry in ledger.entries:
        if entry.transaction is not None and not entry.transaction.of_units:
            entries[entry.transaction].append(entry)
    for transaction in (one for one in transactions.transactions if not one.of_units):
        _Judged(transaction, entries[transaction], visible, gone, cluster, violations).check(
            fenced=transactions.fenced(transaction.life, _requested_at(transaction)),
            calm=scenario.calm and scenario.users(transaction.life.transactional_id) < 2,
        )


def _partitions(cluster: EmbeddedCluster) -> Iterator[Partition]:
    for topic in cluster.topics:
        yield from topic.partitions


def _requested_at(transaction: Transaction) -> float:
    return float("inf") if transaction.commit_requested_at is None else transaction.commit_requested_at


def _check_lives(partition: Partition, seen: Iterable[Entry], violations: Violations) -> None:
    """No record of an older producer comes after one of a newer producer."""
    last: dict[str, Life] = {}
    for entry in seen:
        if entry.transaction is None:
            continue
        life = entry.transaction.life
        before = last.setdefault(life.transactional_id, life)
        if before.is_newer_than(life):
            violations.add("a fenced producer writes nothing", f"{entry} of {life} is in {partition} after {before}")
        else:
            last[life.transactional_id] = life


class _Judged:
    """One transaction, and the part of it that a consumer sees."""

    def __init__(
        self,
        transaction: Transaction,
        entries: list[Entry],
        visible: set[int],
        gone: set[int],
        cluster: EmbeddedCluster,
        violations: Violations,
    ) -> None:
        self._transaction = transaction
        self._entries = entries
        self._seen = [entry for entry in entries if entry.number in visible]
        self._missing = [entry for entry in entries if entry.acknowledged() and entry.number not in visible | gone]
        self._offset_there = transaction.offset is not None and transaction.offset in cluster.committed_offsets(
            transaction.group
        )
        self._violations = violations

    def check(self, *, fenced: bool, calm: bool) -> None:
        transaction = self._transaction
        if transaction.end is End.COMMITTED:
            self._check_committed()
        elif transaction.end is End.ABORTED or transaction.commit_requested_at is None or fenced:
            if self._seen or self._offset_there:
                self._add("nothing of a transaction that was not committed is read", self._seen or "its offset")
            if calm and not fenced and transaction.commit_requested_at is not None:
                self._check_calm()
        elif self._seen or self._offset_there:
            self._check_whole()

    def _check_committed(self) -> None:
        self._check_whole()
        forgotten = [entry for entry in self._entries if _accepted(entry) and not entry.settled()]
        if forgotten:
            self._add("a transaction is committed as a whole", f"not ended: {forgotten}")
        failed = [entry for entry in self._entries if _failed(entry)]
        if failed:
            self._add("a transaction with a record that failed is not committed", failed)

    def _check_whole(self) -> None:
        if self._missing:
            self._add("a transaction is committed as a whole", f"missing: {self._missing}")
        if self._transaction.offset_taken and not self._offset_there:
            self._add("a transaction is committed as a whole", "its offset is missing")

    def _check_calm(self) -> None:
        if not any(
            entry.cancelled
            or entry.left  # may have been withdrawn
            or isinstance(entry.failure(), RecordTooLargeException | BufferExhaustedException | TimeoutException)
            for entry in self._entries
        ):
            self._add("without faults transactions are committed", self._entries)

    def _add(self, promise: str, what: object) -> None:
        self._violations.add(promise, f"{self._transaction}: {what}")


def _accepted(entry: Entry) -> bool:
    return entry.delivery is not None


def _failed(entry: Entry) -> bool:
    """The record's delivery reported a failure to its sender, also if the sender had withdrawn the record."""
    reported = entry.delivery is not None or entry.bulk is not None
    return reported and entry.failure() is not None
