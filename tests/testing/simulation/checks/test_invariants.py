"""Each invariant holds for a correct history, and fails for a wrong one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from aioproducer.errors import (
    BufferExhaustedException,
    IllegalStateException,
    KafkaError,
    Outcome,
    OutOfOrderSequenceException,
    RecordTooLargeException,
    TimeoutException,
)
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.framing import encode_request
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import ProduceRequest
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.simulation.checks.invariants import BatchWatch, WireWatch, check, check_counts, check_end
from aioproducer.testing.simulation.checks.ledger import Entry
from aioproducer.testing.simulation.faults.vanished import Found
from aioproducer.testing.simulation.scenario import Promise
from tests.broker.raw_clients.batches import make_batch
from tests.testing.simulation.histories import NOW_MS, History, failure
from tests.testing.simulation.simulated import World


def found(history: History) -> list[str]:
    """The promises that were broken."""
    check(history.scenario, history.ledger, [history.topic], history.vanished, history.violations)
    return [violation.partition(": ")[0] for violation in history.violations.found]


FAULTS = {"late": 0.1}


@pytest.mark.parametrize("promise", Promise)
@pytest.mark.parametrize("rates", [None, FAULTS])
def test_a_run_as_it_should_be(promise: Promise, rates: dict[str, float] | None) -> None:
    history = History(promise, rates=rates)
    for number in range(10):
        history.delivered(number % 2, key=b"%d" % (number % 2), headers=(("null", None),))
    assert found(history) == []


def test_a_bulk_send_has_no_metadata_and_an_order_of_its_own() -> None:
    history = History()
    entries = [history.delivered(0) for _ in range(3)]
    assert found(history) == []
    entries[2].bulk, entries[2].delivered, entries[2].delivery = object(), True, None
    entries[2].watched = False
    history.topic.partitions[0].log.found.reverse()  # type: ignore[attr-defined]
    broken = found(history)
    assert "records of a partition are in order" in broken
    assert "acknowledged records are in the log" not in broken
    history.topic.partitions[0].log.found.clear()  # type: ignore[attr-defined]
    assert "acknowledged records are in the log" in found(history)


# Ends


def test_a_record_that_does_not_end() -> None:
    history = History()
    history.appended(history.sent())
    assert found(history) == ["every record ends"]


@pytest.mark.parametrize("ends", [0, 2])
def test_a_record_whose_end_is_reported_twice_or_not(ends: int) -> None:
    history = History()
    history.delivered().ends = ends
    assert found(history) == ["every record ends exactly once"]


def test_a_record_that_ends_too_late() -> None:
    history = History(rates=FAULTS)
    entry = history.delivered()
    entry.ended_at = 105.04
    assert found(history) == []
    entry.ended_at = 105.2
    assert found(history) == ["nothing takes longer than its time-out"]


def test_a_parked_record_has_its_max_block_ms_besides() -> None:
    history = History(rates=FAULTS)
    entry = history.delivered()
    entry.parked, entry.accepted_at, entry.ended_at = True, None, 105.9
    assert found(history) == []
    entry.ended_at = 106.2
    assert found(history) == ["nothing takes longer than its time-out"]


# Acknowledged records


def test_an_acknowledged_record_that_is_not_in_the_log() -> None:
    history = History()
    entry = history.sent()
    history.ends(entry, history.metadata(entry, 0))
    assert found(history) == ["acknowledged records are where their metadata says"]


@pytest.mark.parametrize("wrong", ["offset", "partition", "size", "timestamp"])
def test_metadata_that_is_not_true(wrong: str) -> None:
    history = History()
    entry = history.sent()
    offset = history.appended(entry, timestamp_ms=NOW_MS + 1 if wrong == "timestamp" else NOW_MS)
    other = history.sent(value=b"longer") if wrong == "size" else entry
    end = history.metadata(other, offset + (wrong == "offset"), int(wrong == "partition"))
    history.ends(entry, end)
    if other is not entry:
        history.ends(other, history.metadata(other, history.appended(other)))
    assert found(history) == ["acknowledged records are where their metadata says"]


def test_an_offset_that_the_broker_did_not_report() -> None:
    history = History()
    entry = history.sent()
    history.appended(entry)
    history.ends(entry, history.metadata(entry, -1))
    assert found(history) == []


def test_without_acks_a_record_may_be_lost_only_to_faults() -> None:
    for rates, promises in ((FAULTS, []), (None, ["without faults everything is in the log"])):
        history = History(Promise.AT_MOST_ONCE, rates=rates, acks="0")
        entry = history.sent()
        history.ends(entry, history.metadata(entry, -1))
        assert found(history) == promises


# Records in the log


@pytest.mark.parametrize("other", [{"value": b"x"}, {"key": b"x"}, {"headers": (("number", b"0"), ("more", b""))}])
def test_a_record_that_has_become_another(other: dict[str, Any]) -> None:
    history = History()
    entry = history.sent()
    offset = history.appended(entry, **other)
    history.ends(entry, history.metadata(entry, offset))
    assert found(history) == ["records arrive as they were sent"]


def test_a_serializer_makes_another_value_of_the_value() -> None:
    history = History()
    entry = history.delivered(value=b"ab")
    entry.as_it_is = False
    assert found(history) == ["records arrive as they were sent"]
    history.violations.found.clear()
    history.logs[0].found[0] = history.logs[0].found[0]._replace(value=b"ba")
    assert found(history) == []


def test_a_record_in_another_partition_than_it_was_sent_to() -> None:
    history = History()
    entry = history.sent(0)
    history.ends(entry, history.metadata(entry, history.appended(entry, 1), 1))
    assert found(history) == ["records are in the chosen partition"]


def test_a_record_with_another_timestamp_than_it_was_given() -> None:
    history = History()
    history.delivered(timestamp_ms=NOW_MS - 5)
    assert found(history) == ["records keep their timestamps"]


@pytest.mark.parametrize(
    ("promise", "rates", "allowed"),
    [
        (Promise.EXACTLY_ONCE, FAULTS, False),
        (Promise.AT_MOST_ONCE, FAULTS, False),
        (Promise.AT_LEAST_ONCE, FAULTS, True),
        (Promise.AT_LEAST_ONCE, None, False),
    ],
)
def test_a_record_that_is_there_twice(promise: Promise, rates: dict[str, float] | None, allowed: bool) -> None:
    history = History(promise, rates=rates)
    history.appended(history.delivered())
    assert found(history) == ([] if allowed else ["no record is there twice"])


def test_failed_records_in_the_log() -> None:
    history = History(rates=FAULTS)
    for outcome in Outcome:
        entry = history.sent()
        history.ends(entry, failure(TimeoutException("late"), outcome))
        history.appended(entry)
    refused = history.sent()
    history.appended(refused)
    refused.delivery, refused.watched, refused.error = None, False, TimeoutException("no metadata")
    assert found(history) == [
        "records reported as not sent are not in the log",
        "refused records are not in the log",
    ]


# Order


def swapped(promise: Promise, rates: dict[str, float], **config: Any) -> list[str]:
    history = History(promise, rates=rates, **config)
    first, second = history.sent(), history.sent()
    for entry in (second, first):
        history.ends(entry, history.metadata(entry, history.appended(entry)))
    return found(history)


def test_records_out_of_order() -> None:
    assert swapped(Promise.EXACTLY_ONCE, FAULTS) == ["records of a partition are in order"]
    assert swapped(Promise.EXACTLY_ONCE, {"recreate": 0.1}) == ["records of a partition are in order"]
    assert swapped(Promise.AT_LEAST_ONCE, FAULTS) == []
    one_at_a_time = swapped(Promise.AT_LEAST_ONCE, FAULTS, max_in_flight_requests_per_connection=1)
    assert one_at_a_time == ["with one request at a time offsets are in order"]


@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("produce", [12, 13])
def test_no_order_can_be_had_if_brokers_take_topics_by_name_and_these_are_created_anew(
    produce: int, window: int
) -> None:
    for rates in ({"recreate": 0.1}, {"recreate": 0.1, "upgrades": 0.1}, {"upgrades": 0.1}):
        history = History(rates=rates, max_in_flight_requests_per_connection=window)
        history.scenario = replace(history.scenario, release={ApiKey.PRODUCE: produce})
        first, second = history.sent(), history.sent()
        for entry in (second, first):
            history.ends(entry, history.metadata(entry, history.appended(entry)))
        mixed = "recreate" in rates and window > 1 and (produce < 13 or "upgrades" in rates)
        assert found(history) == ([] if mixed else ["records of a partition are in order"])


@pytest.mark.parametrize("epochs", [False, True])
def test_abandoned_batches_precede_later_ones(*, epochs: bool) -> None:
    """The order may break only if the producer id has no epoch left that could fence the late batch."""
    history = History(rates={"epochs": 0.1} if epochs else FAULTS)
    given_up = history.sent()
    history.delivered()
    history.ends(given_up, failure(TimeoutException("late")))
    history.appended(given_up)
    assert found(history) == ([] if epochs else ["records of a partition are in order"])


def test_two_producers_need_no_order_between_them() -> None:
    history = History()
    first, second = history.sent(producer=0), history.sent(producer=1)
    for entry in (second, first):
        history.ends(entry, history.metadata(entry, history.appended(entry)))
    assert found(history) == []


def test_a_key_in_two_partitions() -> None:
    history = History()
    history.delivered(0, key=b"k")
    history.delivered(1, key=b"k")
    assert found(history) == ["records with one key are in one partition"]
    ignoring = History(partitioner_ignore_keys=True)
    ignoring.delivered(0, key=b"k")
    ignoring.delivered(1, key=b"k")
    assert found(ignoring) == []


def cut_off(history: History, entry: Entry) -> None:
    """The last record of the first partition: this one."""
    record = history.logs[0].found.pop()
    history.logs[0].log_end_offset -= 1
    assert dict(record.headers)["number"] == b"%d" % entry.number
    history.vanished.cut_off.append(Found("t", 0, record, history.topic.id))


def test_a_record_that_a_new_leader_lacks_counts_as_appended() -> None:
    history = History(rates={"truncation": 0.1})
    cut_off(history, history.delivered())
    history.delivered()
    assert found(history) == []


def test_a_record_that_a_new_leader_lacks_may_be_sent_again_and_is_no_second_copy() -> None:
    history = History(rates={"truncation": 0.1})
    entry = history.sent()
    history.appended(entry)
    cut_off(history, entry)
    history.delivered()
    history.ends(entry, history.metadata(entry, 1))
    assert found(history) == ["acknowledged records are where their metadata says"]
    history.appended(entry)
    history.violations.found.clear()
    assert found(history) == ["records of a partition are in order"]


@pytest.mark.parametrize("epochs", [False, True])
def test_a_late_copy_of_what_was_cut_off_is_fenced_while_there_are_epochs(*, epochs: bool) -> None:
    history = History(rates={"truncation": 0.1} | ({"epochs": 0.1} if epochs else {}))
    entry = history.delivered()
    cut_off(history, entry)
    history.delivered()
    history.appended(entry)
    assert found(history) == ([] if epochs else ["records of a partition are in order"])


def test_a_record_that_was_cut_off_counts_as_sent() -> None:
    history = History(rates={"truncation": 0.1})
    entry = history.sent()
    history.appended(entry)
    cut_off(history, entry)
    history.ends(entry, failure(TimeoutException("late"), Outcome.NOT_SENT))
    assert found(history) == ["records reported as not sent are not in the log"]


def test_a_record_that_was_deleted_counts_as_a_copy() -> None:
    history = History(rates={"retention": 0.1})
    entry = history.delivered()
    history.vanished.retire([Found("t", 0, history.logs[0].found.pop(), history.topic.id)])
    assert found(history) == []
    history.appended(entry)
    assert found(history) == ["no record is there twice"]


def test_a_gap_that_nothing_made() -> None:
    for cause, promises in (
        ([], ["no batch is lost to a gap without a cause"]),
        ([TimeoutException("late")], []),
    ):
        history = History(rates=FAULTS)
        for error in [*cause, OutOfOrderSequenceException("a gap")]:
            history.ends(history.sent(), failure(error))
        assert found(history) == promises


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.NOT_SENT])
def test_a_log_that_may_not_be_asked_explains_an_unknown_outcome_by_name(by_name: bool, outcome: Outcome) -> None:
    history = History(rates=FAULTS)
    without_read = next(seed for seed in range(100) if not replace(history.scenario, seed=seed).may_read)
    release: dict[int, int] = {ApiKey.PRODUCE: 12} if by_name else {}
    history.scenario = replace(history.scenario, seed=without_read, release=release)
    history.ends(history.sent(), failure(OutOfOrderSequenceException("a gap"), outcome))
    explained = by_name and outcome is Outcome.UNKNOWN
    assert found(history) == ([] if explained else ["no batch is lost to a gap without a cause"])


# Without faults


def test_without_faults_no_awaited_record_is_refused() -> None:
    history = History()
    entry = history.sent()
    entry.awaited = entry.left = True
    history.ends(entry, failure(BufferExhaustedException("no room"), Outcome.NOT_SENT))
    assert found(history) == []
    entry.left = False
    assert found(history) == ["without faults everything is delivered"]


def test_without_faults_nothing_fails_but_what_cannot_be() -> None:
    history = History()
    history.ends(history.sent(), failure(BufferExhaustedException("no memory"), Outcome.NOT_SENT))
    history.ends(history.sent(value=bytes(10_000)), failure(RecordTooLargeException("too large"), Outcome.NOT_SENT))
    beyond = history.sent(partition=2)
    history.ends(beyond, failure(TimeoutException("no such partition"), Outcome.NOT_SENT))
    assert found(history) == []
    history.ends(history.sent(partition=1), failure(TimeoutException("late"), Outcome.NOT_SENT))
    history.ends(history.sent(value=bytes(100)), failure(RecordTooLargeException("in a batch"), Outcome.NOT_SENT))
    assert found(history) == ["without faults everything is delivered"] * 2


@pytest.mark.parametrize(
    ("error", "allowed"),
    [
        (OutOfOrderSequenceException("gap"), False),
        (RecordTooLargeException("too large"), False),
        (TimeoutException("late"), False),
        (IllegalStateException("closed"), True),
    ],
)
@pytest.mark.parametrize("ample", [True, False])
def test_with_ample_time_nothing_fails(error: KafkaError, allowed: bool, ample: bool) -> None:
    history = History(rates=FAULTS)
    history.scenario = replace(history.scenario, ample=ample)
    history.ends(history.sent(), failure(error))
    broken = found(history)
    assert ("nothing fails that could be delivered" in broken) == (ample and not allowed)


@pytest.mark.parametrize("growth", [True, False])
@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_gap_is_unexplained_where_fewer_partitions_look_like_a_new_topic(
    growth: bool, by_name: bool, outcome: Outcome
) -> None:
    history = History(rates=FAULTS | ({"growth": 0.1} if growth else {}))
    release: dict[int, int] = {ApiKey.PRODUCE: 12} if by_name else {}
    history.scenario = replace(history.scenario, ample=True, release=release)
    history.ends(history.sent(), failure(OutOfOrderSequenceException("gap"), outcome))
    allowed = growth and by_name and outcome is Outcome.UNKNOWN
    assert ("nothing fails that could be delivered" in found(history)) == (not allowed)


@pytest.mark.parametrize(
    ("rates", "size", "may_fail"), [({}, 430, True), ({}, 380, False), ({"limits": 0.1}, 380, True)]
)
def test_a_single_record_too_large_fails_before_the_time_out(
    rates: dict[str, float], size: int, may_fail: bool
) -> None:
    history = History(rates={**FAULTS, **rates}, compression_type="none")
    configs = history.scenario.broker_configs | {"message.max.bytes": 500}
    history.scenario = replace(history.scenario, ample=True, broker_configs=configs)
    history.ends(history.sent(value=bytes(size)), failure(RecordTooLargeException("too large")))
    assert (found(history) == []) == may_fail


def test_a_partition_that_a_new_topic_does_not_have_is_waited_for_in_vain() -> None:
    for auto_create in (True, False):
        history = History(rates={"recreate": 0.1})
        configs = history.scenario.broker_configs | {"auto.create.topics.enable": auto_create, "num.partitions": 1}
        history.scenario = replace(history.scenario, ample=True, broker_configs=configs)
        history.ends(history.sent(), failure(TimeoutException("no leader")))
        assert (found(history) == []) == auto_create


def test_without_faults_nothing_takes_long() -> None:
    history = History()
    history.delivered().ended_at = 104.9
    assert found(history) == ["nothing takes longer than its time-out"]


# While it runs


def test_an_acknowledged_record_is_in_the_log_when_it_is_acknowledged() -> None:
    history = History()
    cluster: Any = SimpleNamespace(log=lambda topic, partition: history.logs[partition])
    entry = history.delivered()
    check_end(entry, cluster, history.violations)
    failed = history.sent()
    history.ends(failed, failure(TimeoutException("late")))
    check_end(failed, cluster, history.violations)
    assert history.violations.found == []
    history.ends(entry, history.metadata(entry, 1))
    check_end(entry, cluster, history.violations)
    assert history.violations.found == ["acknowledged records are in the log: record 0 for t (t-0@1) beyond 1"]


def test_metrics_that_count_otherwise() -> None:
    history = History()
    history.delivered()
    history.delivered(producer=1)
    history.ends(history.sent(), failure(TimeoutException("late")))
    withdrawn = history.sent()
    withdrawn.parked = withdrawn.awaited = True
    history.ends(withdrawn, failure(KafkaError("withdrawn")))
    for delivered, errors, wrong in ((1, 1, 0), (1, 2, 0), (2, 2, 0), (0, 1, 1), (1, 0, 1), (1, 3, 1), (3, 3, 2)):
        metrics: Any = {"record-delivered-total": delivered, "record-error-total": errors}
        history.violations.found.clear()
        check_counts(history.ledger, 0, metrics, history.violations)
        assert len(history.violations.found) == wrong, (delivered, errors)


def test_a_retry_with_other_bytes() -> None:
    history = History()
    watch = BatchWatch(history.violations)
    partition = history.topic.partitions[0]
    for epoch, value in ((0, b"a"), (0, b"a"), (1, b"b"), (0, b"c")):
        data = make_batch(value, producer_id=1, producer_epoch=epoch, base_sequence=0)
        watch(partition, RecordBatch(data))
    watch(partition, RecordBatch(make_batch(b"without an id")))
    watch(partition, RecordBatch(make_batch(b"x", b"a whole", producer_id=1, producer_epoch=0, base_sequence=0)))
    assert history.violations.found == ["a retry is byte-identical: t-0 (1, 0, 0, 0) was sent with other bytes"]


def written(watch: WireWatch, world: World, *requests: Any, split: int = 1000) -> Any:
    """A client's end, and the bytes that it has written."""
    end, _ = world.network.pair(1, ("kafka", 9092))
    data = b"".join(
        part for request in requests for part in encode_request(request, version=9, correlation_id=1, client_id="c")
    )
    for start in range(0, len(data), split):
        watch.written(end, memoryview(data[start : start + split]))
    return end


@pytest.mark.parametrize("split", [1, 5, 1000])
def test_more_requests_than_a_connection_may_have(split: int) -> None:
    world = World()
    history = History(max_in_flight_requests_per_connection=2)
    watch = WireWatch(history.scenario, history.violations)
    produce, metadata = ProduceRequest(acks=-1), MetadataRequest()
    end = written(watch, world, produce, metadata, produce, split=split)
    assert history.violations.found == []
    for data in (b"\0\0\0\4", b"\0\0\0\1"):  # the first is answered
        watch.read(end, memoryview(data))
    for part in encode_request(produce, version=9, correlation_id=1, client_id="c"):
        watch.written(end, memoryview(part))
    assert history.violations.found == []
    for part in encode_request(produce, version=9, correlation_id=1, client_id="c"):
        watch.written(end, memoryview(part))
    assert history.violations.found == [
        "max.in.flight.requests.per.connection: 3 unanswered of 2 allowed on <Endpoint 1>>"
    ]
    world.loop.close()


def test_produce_without_acks_has_no_answer() -> None:
    world = World()
    history = History(max_in_flight_requests_per_connection=1, acks="0")
    written(WireWatch(history.scenario, history.violations), world, *[ProduceRequest(acks=0)] * 5)
    assert history.violations.found == []
    world.loop.close()


def test_too_much_that_waits_to_leave() -> None:
    world = World()
    history = History(max_request_size=3000, batch_size=100)
    watch = WireWatch(history.scenario, history.violations)
    end, _ = world.network.pair(1, ("kafka", 9092))
    watch.buffered(end, 10_000)
    assert history.violations.found == []
    watch.buffered(end, 11_000)
    assert [violation.partition(":")[0] for violation in history.violations.found] == [
        "a slow broker costs little memory"
    ]
    world.loop.close()
