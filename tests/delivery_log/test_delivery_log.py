"""The log by itself, and of a whole producer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aioproducer import KafkaProducer, ProducerRecord, RecordMetadata, TopicPartition
from aioproducer.delivery_log import COUNTER_HEADER, SENT_HEADER, STREAM_HEADER, DeliveryLog, TopicSink, read_events
from aioproducer.errors import (
    DeliveryError,
    IllegalArgumentException,
    Outcome,
    RecordTooLargeException,
    TimeoutException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import end_of, make_producer
from tests.support.scripted_broker import ScriptedCluster, error, never
from tests.support.virtual_time import World, virtual

NOW = 1_700_000_000_000


class Lines:
    """A sink that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.closed = 0

    def write(self, line: bytes) -> None:
        self.lines.append(line)

    def close(self) -> None:
        self.closed += 1

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


def stamps(record: ProducerRecord) -> dict[str, bytes | None]:
    return dict(record.headers or ())


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def log(lines: Lines) -> DeliveryLog:
    times = iter(range(NOW, NOW + 1000))
    return DeliveryLog(lines, stream_id="flights", clock_ms=lambda: next(times))


def test_each_record_is_stamped_and_logged_as_sent(log: DeliveryLog, lines: Lines) -> None:
    first = log.on_send(ProducerRecord("t", b"v", headers=[("mine", None)]))
    second = log.on_send(ProducerRecord('a "topic"', b"v", partition=3))
    assert first.headers == (
        ("mine", None),
        (STREAM_HEADER, b"flights"),
        (COUNTER_HEADER, b"1"),
        (SENT_HEADER, b"%d" % NOW),
    )
    assert stamps(second)[COUNTER_HEADER] == b"2"
    assert (first.topic, first.value) == ("t", b"v")
    base = {"schema": 1, "stream": "flights"}
    assert lines.events() == [
        {**base, "event": "open", "time_ms": NOW},
        {**base, "event": "sent", "counter": 1, "time_ms": NOW, "topic": "t", "partition": None},
        {**base, "event": "sent", "counter": 2, "time_ms": NOW + 1, "topic": 'a "topic"', "partition": 3},
    ]
    assert all(b"\n" not in line for line in lines.lines)


def test_a_record_that_is_passed_on_is_stamped_anew(log: DeliveryLog) -> None:
    before = ProducerRecord("t", b"v", headers=[(STREAM_HEADER, b"another"), ("mine", b"1"), (COUNTER_HEADER, b"77")])
    headers = log.on_send(before).headers or ()
    assert [name for name, _ in headers] == ["mine", STREAM_HEADER, COUNTER_HEADER, SENT_HEADER]
    assert dict(headers)[COUNTER_HEADER] == b"1"


@pytest.mark.parametrize(("log_append_time", "kind"), [(False, "CreateTime"), (True, "LogAppendTime")])
def test_an_acknowledgement_has_the_place_of_the_record(
    log: DeliveryLog, lines: Lines, log_append_time: bool, kind: str
) -> None:
    record = log.on_send(ProducerRecord("t", b"v"))
    log.on_acknowledgement(RecordMetadata("t", 5, 42, NOW, log_append_time, -1, 1), None, record.headers or ())
    assert lines.events()[-1] == {
        "schema": 1,
        "event": "acked",
        "stream": "flights",
        "counter": 1,
        "time_ms": NOW + 1,
        "sent_ms": NOW,
        "topic": "t",
        "partition": 5,
        "offset": 42,
        "timestamp_ms": NOW,
        "timestamp_type": kind,
        "key_size": -1,
        "value_size": 1,
    }


@pytest.mark.parametrize("outcome", Outcome)
def test_a_failure_has_its_outcome_and_error(log: DeliveryLog, lines: Lines, outcome: Outcome) -> None:
    record = log.on_send(ProducerRecord("t", b"v"))
    ended = DeliveryError.of(TimeoutException('too "late" \\ … '), outcome, ("t", 5))
    log.on_acknowledgement(RecordMetadata("t", 5, -1, -1, False, -1, -1), ended, record.headers or ())
    assert lines.events()[-1] == {
        "schema": 1,
        "event": "failed",
        "stream": "flights",
        "counter": 1,
        "time_ms": NOW + 1,
        "topic": "t",
        "partition": 5,
        "outcome": outcome.value,
        "error": "TimeoutException",
        "message": 'too "late" \\ … ',
    }


def test_a_record_that_was_never_in_a_batch_is_logged_as_not_sent(log: DeliveryLog, lines: Lines) -> None:
    record = log.on_send(ProducerRecord("t", b"v"))
    log.on_send_error(record, TopicPartition("t", -1), RecordTooLargeException("too large"))
    found = lines.events()[-1]
    assert (found["event"], found["outcome"], found["partition"], found["counter"]) == ("failed", "not_sent", None, 1)
    assert found["error"] == "RecordTooLargeException"


@pytest.mark.parametrize("headers", [(), [(COUNTER_HEADER, None)], [(COUNTER_HEADER, b"none")]])
def test_a_record_whose_stamps_were_taken_away_has_no_counter(log: DeliveryLog, lines: Lines, headers: Any) -> None:
    log.on_acknowledgement(RecordMetadata("t", 5, 42, NOW, False, -1, 1), None, headers)
    assert lines.events()[-1]["counter"] is None


def test_closing_tells_the_counts_and_closes_every_sink(lines: Lines) -> None:
    other = Lines()
    log = DeliveryLog(lines, other, clock_ms=lambda: NOW)
    records = [log.on_send(ProducerRecord("t", b"v")) for _ in range(3)]
    log.on_acknowledgement(RecordMetadata("t", 0, 0, NOW, False, -1, 1), None, records[0].headers or ())
    log.on_send_error(records[1], TopicPartition("t", -1), RecordTooLargeException("too large"))
    log.close()
    assert lines.lines == other.lines
    assert (lines.closed, other.closed) == (1, 1)
    assert lines.events()[-1] == {
        "schema": 1,
        "event": "close",
        "stream": log.stream_id,
        "time_ms": NOW,
        "sent": 3,
        "acked": 1,
        "failed": 1,
    }


def test_a_log_that_was_never_used_says_nothing(lines: Lines) -> None:
    DeliveryLog(lines).close()
    assert (lines.lines, lines.closed) == ([], 1)


def test_streams_differ() -> None:
    assert DeliveryLog(Lines()).stream_id != DeliveryLog(Lines()).stream_id


def test_without_a_sink_it_would_be_of_no_use() -> None:
    with pytest.raises(IllegalArgumentException, match="needs a sink"):
        DeliveryLog()


# Of a producer


@virtual
async def test_the_file_accounts_for_every_record_in_the_log(world: World, tmp_path: Path) -> None:
    """Each counter from 1 on is sent once, ends once, and what is acked is at that offset with its stamps."""
    path = tmp_path / "deliveries.jsonl"
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 2)
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        async with make_producer(
            cluster.bootstrap_servers, interceptor_classes=DeliveryLog(path), max_request_size=1000, max_block_ms=500
        ) as producer:
            await producer.partitions_for("t")
            for number in range(60):
                await end_of(producer.send("t", bytes(2000 if number % 10 == 9 else 10), key=b"%d" % number))
            await end_of(producer.send("t", b"v", partition=9))
            cluster.broker.always(ApiKey.PRODUCE, never())
            _ = producer.send("t", b"v")
            await producer.close(timeout=0.05)
        events = list(read_events(path))
        assert [events[0]["event"], events[-1]["event"]] == ["open", "close"]
        sent = [one["counter"] for one in events if one["event"] == "sent"]
        ended = [one["counter"] for one in events if one["event"] in ("acked", "failed")]
        assert sent == list(range(1, 63))
        assert sorted(ended) == sent
        counts = {name: events[-1][name] for name in ("sent", "acked", "failed")}
        assert counts == {"sent": 62, "acked": 53, "failed": 9}
        acked = {(one["partition"], one["offset"]): one["counter"] for one in events if one["event"] == "acked"}
        found = {}
        for partition in range(2):
            for record in cluster.log("t", partition).records():
                headers = dict(record.headers)
                found[partition, record.offset] = int(headers[COUNTER_HEADER] or b"")
                assert headers[STREAM_HEADER] == events[0]["stream"].encode()
        unknown = [one["counter"] for one in events if one["event"] == "failed" and one["outcome"] == "unknown"]
        assert unknown == [62]
        assert acked == {place: counter for place, counter in found.items() if counter not in unknown}


@pytest.mark.usefixtures("no_leaks")
async def test_to_a_topic_by_way_of_another_producer() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.create_topic("deliveries", 1)
        async with make_producer(cluster.bootstrap_servers) as audit:
            log = DeliveryLog(TopicSink(audit, "deliveries"))
            async with make_producer(cluster.bootstrap_servers, interceptor_classes=log) as producer:
                _ = await producer.send("t", b"v")
        events = [json.loads(value or b"") for value in cluster.values("deliveries")]
        assert [one["event"] for one in events] == ["open", "sent", "acked", "close"]


@pytest.mark.usefixtures("no_leaks")
async def test_to_a_topic_by_way_of_the_very_same_producer_does_not_log_its_own_log() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.create_topic("deliveries", 1)
        producer: KafkaProducer

        class Own(Lines):
            def write(self, line: bytes) -> None:
                _ = producer.send("deliveries", line)

        async with make_producer(cluster.bootstrap_servers, interceptor_classes=DeliveryLog(Own())) as producer:
            _ = await producer.send("t", b"v")
            await producer.flush()
        events = [json.loads(value or b"")["event"] for value in cluster.values("deliveries")]
        assert events == ["open", "sent", "acked"]
