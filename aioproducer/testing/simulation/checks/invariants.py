"""The invariants of a run: compares the reports of the producers with the logs."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import chain
from uuid import UUID

from aioproducer.broker import EmbeddedCluster, Partition, PartitionLog, Topic
from aioproducer.errors import (
    BufferExhaustedException,
    DeliveryError,
    IllegalStateException,
    InvalidRecordException,
    KafkaError,
    Outcome,
    OutOfOrderSequenceException,
    ProducerFencedException,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
    UnknownProducerIdException,
)
from aioproducer.metrics import MetricsSnapshot
from aioproducer.protocol.api_key import ApiKey
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_writer import record_size_upper_bound
from aioproducer.testing.simulation.checks.ledger import Entry, Ledger, number_of
from aioproducer.testing.simulation.checks.violations import Violations
from aioproducer.testing.simulation.faults.vanished import Found, Vanished
from aioproducer.testing.simulation.network.endpoint import Endpoint
from aioproducer.testing.simulation.network.network import Watch
from aioproducer.testing.simulation.scenario import LARGE, LIMITS, NEVER_CREATED, Promise, Scenario
from aioproducer.types import TimestampType

FORGETTING = ("codes", "recreate", "windows", "limits", "truncation", "retention", "expiry")
"""Faults after which brokers may miss sequences, or not recognise batches, although no batch was given up."""


class BatchWatch:
    """A retry has the same bytes as the first attempt, unless the batch was split, which changes its length."""

    def __init__(self, violations: Violations) -> None:
        self._violations = violations
        self._seen: dict[tuple[PartitionLog, int, int, int, int], bytes] = {}

    def __call__(self, partition: Partition, batch: RecordBatch) -> None:
        if batch.producer_id < 0:
            return
        sequences = (batch.base_sequence, batch.last_sequence)
        identity = (partition.log, batch.producer_id, batch.producer_epoch, *sequences)
        data = bytes(batch.data)
        if self._seen.setdefault(identity, data) != data:
            self._violations.add("a retry is byte-identical", f"{partition} {identity[1:]} was sent with other bytes")


class WireWatch(Watch):
    """No connection has more unanswered produce requests than allowed, nor more bytes waiting for the socket than its
    high-water mark and one more request."""

    def __init__(self, scenario: Scenario, violations: Violations) -> None:
        config = scenario.config
        self._allowed = config["max_in_flight_requests_per_connection"]
        largest = max(config["max_request_size"], config["batch_size"] + LARGE) + 4096
        self._most_buffered = config["max_request_size"] + largest
        self._answered = scenario.config.get("acks") != "0"
        self._violations = violations
        self._requests: dict[Endpoint, _Frames] = defaultdict(_Frames)
        self._responses: dict[Endpoint, _Frames] = defaultdict(_Frames)
        self._unanswered: dict[Endpoint, deque[int]] = defaultdict(deque)

    def written(self, end: Endpoint, data: memoryview) -> None:
        unanswered = self._unanswered[end]
        for api_key in self._requests[end].feed(data):
            if api_key == ApiKey.PRODUCE and not self._answered:
                continue
            unanswered.append(api_key)
            count = unanswered.count(ApiKey.PRODUCE)
            if count > self._allowed:
                self._violations.add(
                    "max.in.flight.requests.per.connection", f"{count} unanswered of {self._allowed} allowed on {end}"
                )

    def buffered(self, end: Endpoint, size: int) -> None:
        if size > self._most_buffered:
            self._violations.add("a slow broker costs little memory", f"{size} bytes wait to leave by {end}")

    def read(self, end: Endpoint, data: memoryview) -> None:
        unanswered = self._unanswered[end]
        for _ in self._responses[end].feed(data):
            if unanswered:  # otherwise the answer is garbage
                unanswered.popleft()


class _Frames:
    """Follows a stream of frames: yields the first two bytes of each (a request's API key) when it is complete."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._missing = 0

    def feed(self, data: memoryview) -> Iterator[int]:
        while data and self._missing >= 0:  # a negative size ends the stream of frames
            begun = self._begun
            take = 6 - len(begun) if len(begun) < 6 else self._missing
            part, data = data[:take], data[take:]
            if len(begun) < 6:
                begun += part
                if len(begun) == 6:
                    self._missing = int.from_bytes(begun[:4], "big") - 2
            else:
                self._missing -= len(part)
            if len(begun) == 6 and not self._missing:
                yield int.from_bytes(begun[4:], "big")
                begun.clear()


def check_end(entry: Entry, cluster: EmbeddedCluster, violations: Violations) -> None:
    """Checks a record as soon as it has ended: an acknowledged record is in the log by now."""
    metadata = entry.metadata()
    if metadata is None or metadata.offset < 0:
        return
    log = cluster.log(metadata.topic, metadata.partition)
    if metadata.offset >= log.log_end_offset:
        violations.add("acknowledged records are in the log", f"{entry} beyond {log.log_end_offset}")


def check_counts(ledger: Ledger, producer: int, metrics: MetricsSnapshot, violations: Violations) -> None:
    """When a producer is closed, its metrics agree with the outcomes of its records.

    A record that was withdrawn because its caller stopped waiting may count as failed or not.
    """
    acknowledged = failed = either = 0
    if any(entry.producer == producer and _in_unit(entry) for entry in ledger.entries):
        return  # each attempt to commit a unit counts its records
    for entry in ledger.entries:
        refused = entry.bulk is None and isinstance(entry.failure(), IllegalStateException)
        if entry.producer != producer or refused:
            continue  # the producer never took the record
        if entry.acknowledged():
            acknowledged += 1
        elif entry.delivery is None and isinstance(entry.failure(), ProducerFencedException):
            either += 1  # refused, or failed while it waited for its place
        elif entry.cancelled or (entry.parked and entry.awaited) or entry.bulk is not None:
            either += 1  # a record of a bulk send that was never tried counts, unless the call was refused
        else:
            failed += 1
    for name, count in (("record-delivered-total", acknowledged), ("record-error-total", failed)):
        if not count <= metrics[name] <= count + either:
            violations.add(
                "metrics count every record", f"{name} of producer {producer} is {metrics[name]}, not {count}"
            )


def check(
    scenario: Scenario, ledger: Ledger, topics: Iterable[Topic], vanished: Vanished, violations: Violations
) -> None:
    """Checks the logs after the run. ``topics`` are all that ever existed, also deleted ones."""
    logs = [vanished.whole(topic, partition) for topic in topics for partition in topic.partitions]
    copies, lost = _by_number(chain.from_iterable(logs)), _by_number(vanished.cut_off)
    late = _with_time_outs(ledger.entries)
    slow = _with_time_outs(entry for entry in ledger.entries if _may_be_too_slow(scenario, entry))
    for entry in ledger.entries:
        _check_ends(scenario, entry, late, slow, violations)
        _check_copies(scenario, entry, copies[entry.number], lost[entry.number], violations)
    if scenario.promise is Promise.EXACTLY_ONCE:
        for log in () if scenario.mixes_logs else logs:
            _check_order(scenario, ledger, log, violations)
        _check_gaps(scenario, ledger, violations)
    elif not scenario.reuses_offsets and scenario.config["max_in_flight_requests_per_connection"] == 1:
        _check_order_of_offsets(ledger, violations)
    by_key = not scenario.config["partitioner_ignore_keys"] and "partitioner_class" not in scenario.config
    if by_key:
        _check_keys(scenario, ledger, copies, violations)


def _by_number(found: Iterable[Found]) -> dict[int, list[Found]]:
    numbered: dict[int, list[Found]] = defaultdict(list)
    for one in found:
        numbered[number_of(one.record.headers)].append(one)
    return numbered


def _with_time_outs(entries: Iterable[Entry]) -> set[object]:
    """The partitions of the records that expired; these may still be under way."""
    failures = [entry.failure() for entry in entries]
    return {
        one.topic_partition for one in failures if isinstance(one, TimeoutException) and isinstance(one, DeliveryError)
    }


def _check_ends(scenario: Scenario, entry: Entry, late: set[object], slow: set[object], violations: Violations) -> None:
    if not entry.settled():
        violations.add("every record ends", entry)
        return
    if entry.watched and entry.ends != 1:
        violations.add("every record ends exactly once", f"{entry} ended {entry.ends} times")
    if entry.ended_at is not None:
        limit = entry.time_limit or scenario.milliseconds("delivery_timeout_ms")
        if entry.accepted_at is None:
            limit += scenario.milliseconds("max_block_ms")
        violations.in_time(repr(entry), entry.accepted_at or entry.sent_at, entry.ended_at, limit)
    if scenario.calm:
        _check_calm(scenario, entry, violations)
    elif scenario.ample and not (
        _may_fail(scenario, entry)
        or _behind(entry, slow, TimeoutException)
        # A batch that may still arrive behind an expired one is never sent under another epoch.
        or _behind(entry, late, OutOfOrderSequenceException)
    ):
        violations.add("nothing fails that could be delivered", f"{entry}: {entry.failure()}")


def _check_calm(scenario: Scenario, entry: Entry, violations: Violations) -> None:
    failure = entry.failure()
    if failure is not None:
        if entry.transaction is None and not _may_fail(scenario, entry):
            violations.add("without faults everything is delivered", f"{entry}: {failure}")
    elif entry.accepted_at is not None and entry.ended_at is not None:
        # The limit assumes one partition, and for each record its own request and one for a batch that was split.
        records = sum(work.records for work in scenario.work)
        each = 8 * scenario.conditions.latency + (0.01 if scenario.slow else 0.001)
        limit = 1 + scenario.milliseconds("linger_ms") + records * each
        if "socket.request.max.bytes" in scenario.broker_configs:
            # Records with timestamps of days ago wait until a request that was cut off cannot arrive any more.
            limit += scenario.milliseconds("request_timeout_ms")
        if _may_refuse_silently(scenario):
            limit += records * scenario.milliseconds("reconnect_backoff_max_ms")
        violations.in_time(f"without faults {entry}", entry.accepted_at, entry.ended_at, limit)


def _may_fail(scenario: Scenario, entry: Entry) -> bool:
    """Whether the record has not failed, or has failed for a reason of its own."""
    failure = entry.failure()
    if failure is None:
        return True
    if isinstance(failure, BufferExhaustedException):
        return not entry.awaited or entry.left  # with ample time a task that awaits a record only waits longer
    if isinstance(failure, IllegalStateException | SerializationException):
        return True
    if isinstance(failure, InvalidRecordException):
        return scenario.compacts and entry.record.key is None
    if isinstance(failure, RecordTooLargeException):
        return may_be_too_large(scenario, entry)  # otherwise its batch would have been split
    if entry.cancelled or (entry.parked and entry.awaited):
        return True  # withdrawn if the task that awaited it was cancelled
    if isinstance(failure, TimeoutException) and scenario.faults_until > scenario.milliseconds("delivery_timeout_ms"):
        return True  # faults last longer than the record
    if isinstance(failure, UnknownProducerIdException):
        return True  # a broker before 2.5 has forgotten it: its batch may have been appended, read and deleted
    if scenario.hides_new_topics and isinstance(failure, OutOfOrderSequenceException):
        # Nothing shows whether the log that has the batches behind it is the one that it was sent to.
        return isinstance(failure, DeliveryError) and failure.outcome is Outcome.UNKNOWN
    plan = {plan.name: plan for plan in scenario.topics}[entry.record.topic]
    beyond = entry.record.partition is not None and entry.record.partition >= plan.partitions
    smaller = "recreate" in scenario.rates and scenario.may_change_its_size(plan)
    return isinstance(failure, TimeoutException) and (beyond or smaller or plan.created_at == NEVER_CREATED)


def _behind(entry: Entry, partitions: set[object], error: type[KafkaError]) -> bool:
    """Whether the record failed with this error in one of these partitions."""
    failure = entry.failure()
    return isinstance(failure, error) and isinstance(failure, DeliveryError) and failure.topic_partition in partitions


def _size_alone(entry: Entry) -> int:
    """The largest size in bytes of an uncompressed batch with this record alone."""
    key, value = entry.record.key, entry.record.value
    return BATCH_OVERHEAD + record_size_upper_bound(
        -1 if key is None else len(key), -1 if value is None else len(value), entry.record.headers
    )


def _may_be_too_slow(scenario: Scenario, entry: Entry) -> bool:
    """Whether the record, alone in its batch, may take longer to cross the line than the time-out of its request."""
    return _size_alone(entry) * 3 > scenario.conditions.bandwidth * scenario.milliseconds("request_timeout_ms")


def may_be_too_large(scenario: Scenario, entry: Entry) -> bool:
    """Whether the record may be too large even alone in its batch."""
    size = _size_alone(entry)
    # Incompressible data becomes a little larger, and a batch also takes memory for its bookkeeping.
    more = 0 if scenario.config["compression_type"] == "none" else 64
    by_brokers = min(LIMITS) if "limits" in scenario.rates else scenario.largest_batch
    return (
        size + more > min(by_brokers, scenario.largest_batch)
        or size > scenario.config["max_request_size"]
        or size + 512 > scenario.config["buffer_memory"]
    )


def _may_refuse_silently(scenario: Scenario) -> bool:
    """Whether batches may be too large for the brokers of a producer with acks=0: they close the connection."""
    if scenario.config.get("acks") != "0":
        return False
    largest: int = scenario.config["batch_size"] + LARGE + 4096
    return scenario.largest_batch <= largest


def _check_copies(
    scenario: Scenario, entry: Entry, copies: list[Found], lost: list[Found], violations: Violations
) -> None:
    """``lost`` are copies that a log no longer has. One of them may be the acknowledged one; none is a duplicate."""
    record = entry.record
    for found in (*copies, *lost):
        if (found.topic, found.record.key, found.record.value) != (record.topic, record.key, entry.value) or (
            tuple(record.headers or ()) != found.record.headers
        ):
            violations.add("records arrive as they were sent", f"{entry} is {found.record} at {found}")
        if record.partition not in (None, found.partition):
            violations.add("records are in the chosen partition", f"{entry} is at {found}")
        given = None if scenario.log_append_time else record.timestamp_ms
        if given not in (None, found.record.timestamp_ms):
            violations.add("records keep their timestamps", f"{entry} has {found.record.timestamp_ms} at {found}")
    metadata = entry.metadata()
    different = {found.topic_id for found in copies}  # a topic that was created anew may have a copy in each log
    once = scenario.calm or (scenario.promise is not Promise.AT_LEAST_ONCE and not scenario.forgets_with_records)
    once &= not _in_unit(entry)  # a unit may be committed anew, after an aborted attempt
    if len(copies) > len(different) and once:
        violations.add("no record is there twice", f"{entry} is at {copies}")
    if metadata is not None:
        if scenario.config.get("acks") == "0":
            if scenario.calm and not copies and not _may_refuse_silently(scenario):
                violations.add("without faults everything is in the log", entry)
        elif not any(_fits(scenario, entry, found) for found in (*copies, *lost)):
            violations.add("acknowledged records are where their metadata says", f"{entry} is at {copies}")
    elif entry.delivered:
        if not (copies or lost) and scenario.config.get("acks") != "0":
            violations.add("acknowledged records are in the log", entry)
    elif copies or lost:
        failure, where = entry.failure(), copies or lost
        if isinstance(failure, DeliveryError) and failure.outcome is Outcome.NOT_SENT:
            violations.add("records reported as not sent are not in the log", f"{entry} is at {where}: {failure}")
        elif failure is not None and not isinstance(failure, DeliveryError):
            violations.add("refused records are not in the log", f"{entry} is at {where}: {failure}")


def _fits(scenario: Scenario, entry: Entry, found: Found) -> bool:
    """Whether the metadata describes this record of the log."""
    metadata = entry.metadata()
    assert metadata is not None
    if (metadata.topic, metadata.partition) != (found.topic, found.partition):
        return False
    if metadata.offset < 0:
        return True
    key, value = entry.record.key, entry.record.value
    sizes = (-1 if key is None else len(key), -1 if value is None else len(value))
    if (metadata.offset, metadata.serialized_key_size, metadata.serialized_value_size) != (found.record.offset, *sizes):
        return False
    if scenario.log_append_time and metadata.timestamp_type is TimestampType.CREATE_TIME:
        return True  # appended in the millisecond of its last record, which looks like the answer to a duplicate
    return metadata.timestamp_ms == found.record.timestamp_ms


def _check_order(scenario: Scenario, ledger: Ledger, log: list[Found], violations: Violations) -> None:
    """A log has the records of a producer in the order of sending. The records of a bulk send have their own order,
    because other records may be sent between them. A topic that was created anew has new logs.

    A producer without epochs left continues with another id, which does not fence batches under way with the former
    one: an expired batch, or a copy of an appended one. A log that is cut off before the batch takes the copy. Where
    brokers forget producers with their records, a batch may be there twice.
    """
    last: dict[object, Found] = {}
    seen: set[int] = set()
    for found in log:
        entry = ledger.entries[number_of(found.record.headers)]
        if _in_unit(entry):
            continue  # in the order of the ends of units
        if "epochs" in scenario.rates and (not entry.acknowledged() or _is_late_copy(scenario, entry, found)):
            continue
        if scenario.forgets_with_records and entry.number in seen:
            continue
        seen.add(entry.number)
        sender = entry.producer if entry.bulk is None else entry.bulk
        before = last.get(sender)
        if before is not None and number_of(before.record.headers) > entry.number:
            violations.add(
                "records of a partition are in order",
                f"{entry} is at {found}, behind record {number_of(before.record.headers)} at {before}",
            )
        last[sender] = found


def _in_unit(entry: Entry) -> bool:
    return entry.transaction is not None and entry.transaction.of_units


def _is_late_copy(scenario: Scenario, entry: Entry, found: Found) -> bool:
    """Whether this is an earlier attempt of a record whose acknowledged copy was cut off."""
    metadata = entry.metadata()
    return "truncation" in scenario.rates and metadata is not None and metadata.offset != found.record.offset


def _check_gaps(scenario: Scenario, ledger: Ledger, violations: Violations) -> None:
    """Brokers miss sequences only after a batch was given up, or if a fault makes them report a gap.

    Where retries are limited, a batch may fail because of a gap that an earlier one leaves for a time. A broker that
    was restarted recognises only the last batch that it has; where the log cannot be asked, and topics are named by
    name, the outcome of the others stays unknown.
    """
    if "retries" in scenario.config or not scenario.rates.keys().isdisjoint(FORGETTING):
        return
    failures: dict[tuple[str, int] | None, list[Entry]] = defaultdict(list)
    for entry in ledger.entries:
        failure = entry.failure()
        if isinstance(failure, DeliveryError):
            failures[failure.topic_partition].append(entry)
    for entries in failures.values():
        found = [entry.failure() for entry in entries]
        forgotten = any(isinstance(failure, UnknownProducerIdException) for failure in found)  # by a broker before 2.5
        if forgotten or not all(isinstance(failure, OutOfOrderSequenceException) for failure in found):
            continue
        may_be_there = all(
            isinstance(failure, DeliveryError) and failure.outcome is Outcome.UNKNOWN for failure in found
        )
        if not (may_be_there and scenario.by_name and not scenario.may_read):
            violations.add("no batch is lost to a gap without a cause", entries)


def _check_order_of_offsets(ledger: Ledger, violations: Violations) -> None:
    last: dict[tuple[int, str, int], tuple[int, Entry]] = {}
    for entry in ledger.entries:
        metadata = entry.metadata()
        if metadata is None or metadata.offset < 0:
            continue
        where = (entry.producer, metadata.topic, metadata.partition)
        if where in last and last[where][0] >= metadata.offset:
            violations.add("with one request at a time offsets are in order", f"{entry} after {last[where][1]}")
        last[where] = (metadata.offset, entry)


def _check_keys(scenario: Scenario, ledger: Ledger, copies: dict[int, list[Found]], violations: Violations) -> None:
    """The records of a key are in one partition, as long as the topic keeps its number of partitions."""
    fixed = {plan.name for plan in scenario.topics if not scenario.may_change_its_size(plan)}
    partitions: dict[tuple[UUID, bytes], tuple[int, Entry]] = {}
    for entry in ledger.entries:
        record = entry.record
        if record.key is None or record.partition is not None or record.topic not in fixed:
            continue
        for found in copies[entry.number]:
            first = partitions.setdefault((found.topic_id, record.key), (found.partition, entry))
            if first[0] != found.partition:
                violations.add("records with one key are in one partition", f"{entry} is at {found}, unlike {first[1]}")
