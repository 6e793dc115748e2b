from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from aioproducer import KafkaProducer, MetricName, MetricsSnapshot, metrics_topic
from aioproducer.errors import IllegalArgumentException, IllegalStateException
from aioproducer.metrics_topic import MetricsTopicReporter, report
from aioproducer.protocol.api_key import ApiKey
from tests.support.inside import parts_of
from tests.support.manual_clock import ManualClock
from tests.support.producing import make_producer
from tests.support.scripted_broker import Exchange, ScriptedCluster, answer, never
from tests.support.virtual_time import World, virtual

TOPIC = "aioproducer-metrics"


def reports(cluster: ScriptedCluster) -> list[dict[str, Any]]:
    return [json.loads(value or b"") for value in cluster.values(TOPIC)]


@virtual
async def test_a_report_at_each_interval_and_a_last_one(world: World) -> None:
    async with ScriptedCluster() as cluster:
        reporter = MetricsTopicReporter(interval=10, clock=ManualClock(time_ms=5))
        async with make_producer(cluster.bootstrap_servers, client_id="me", metric_reporters=[reporter]) as producer:
            _ = await producer.send("t", b"v")
            await asyncio.sleep(35)
            _ = await producer.send("t", b"w")
        found = reports(cluster)
        record = next(iter(cluster.log(TOPIC, 0).records()))
    assert (record.key, record.headers) == (b"me", ())
    assert [(each["number"], each["last"]) for each in found] == [(0, False), (1, False), (2, False), (3, True)]
    first, last = found[0], found[-1]
    assert {name: first[name] for name in ("schema", "client_id", "time_ms", "interval_ms", "topics_left_out")} == {
        "schema": 1,
        "client_id": "me",
        "time_ms": 5,
        "interval_ms": 10000,
        "topics_left_out": 0,
    }
    assert first["health"] == []
    assert len({each["instance"] for each in found}) == 1
    assert first["metrics"]["producer-metrics"]["record-send-total"] == 1
    assert last["metrics"]["producer-metrics"]["record-delivered-total"] == 2
    assert list(last["metrics"]["producer-topic-metrics"]) == ["t"]  # the reports have no part in it
    assert last["metrics"]["producer-node-metrics"]["node--1"]["request-latency-avg"] is None


@virtual
async def test_nothing_piles_up_while_no_broker_can_be_reached(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    carriers: list[KafkaProducer] = []

    class Carrier(KafkaProducer):
        def __init__(self, **config: Any) -> None:
            super().__init__(**config)
            carriers.append(self)

    monkeypatch.setattr(metrics_topic, "KafkaProducer", Carrier)
    async with ScriptedCluster() as cluster:
        config = {"delivery_timeout_ms": 40_000, "request_timeout_ms": 20_000, "max_block_ms": 60_000}
        config |= {"reconnect_backoff_ms": 1000, "reconnect_backoff_max_ms": 1000}
        reporter = MetricsTopicReporter(interval=1)
        async with make_producer(cluster.bootstrap_servers, metric_reporters=[reporter], **config):
            await asyncio.sleep(1.5)
            await cluster.stop_node(0)
            await asyncio.sleep(10)
            (carrier,) = carriers
            assert carrier.metrics()["parked-records"] + len(parts_of(carrier).completer.incomplete) == 1
            with caplog.at_level(logging.WARNING, "aioproducer.metrics_topic"):
                await asyncio.sleep(600)
            await cluster.start_node(0)
            await asyncio.sleep(10)
        found = reports(cluster)
    found_lines = [line for line in caplog.messages if "metrics could not be written" in line]
    assert len(found_lines) == 1, caplog.messages
    numbers = [each["number"] for each in found]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0
    assert numbers[-1] >= 615  # those that were due in between are counted
    assert len(numbers) < 25
    assert found[-1]["last"]


@virtual
async def test_a_producer_in_trouble_is_reported_all_the_same(world: World) -> None:
    async def answers_reports_alone(exchange: Exchange) -> None:
        await (answer if str(exchange.header.client_id).endswith("-metrics") else never())(exchange)

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, answers_reports_alone)
        config = {"buffer_memory": 20_000, "max_block_ms": 3000, "metric_reporters": [MetricsTopicReporter(interval=4)]}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            deliveries = [producer.send("t", bytes(5000)) for _ in range(10)]
            await asyncio.sleep(9)
            await producer.close(timeout=1)
        assert all(delivery.done() for delivery in deliveries)
        found = reports(cluster)
    metrics = {finding["metric"] for finding in found[1]["health"]}
    assert {"buffer-exhausted-rate", "record-error-rate"} <= metrics
    assert found[1]["health"][0]["severity"] == "CRITICAL"


@virtual
async def test_closing_in_time_whatever_becomes_of_the_last_report(world: World) -> None:
    loop = asyncio.get_running_loop()
    async with ScriptedCluster() as cluster:
        for timeout in (None, 2.0, 0.0):
            reporter = MetricsTopicReporter(interval=1)
            producer = make_producer(cluster.bootstrap_servers, metric_reporters=[reporter])
            await producer.start()
            await asyncio.sleep(1.5)
            await cluster.stop_node(0)
            began = loop.time()
            await producer.close(timeout)
            assert loop.time() - began <= (5.0 if timeout is None else timeout) + 0.01
            await cluster.start_node(0)


async def test_misuse() -> None:
    with pytest.raises(IllegalArgumentException, match="interval is 0"):
        MetricsTopicReporter(interval=0)
    never_begun = MetricsTopicReporter()
    await never_begun.close()
    reporter = MetricsTopicReporter("m")
    async with (
        ScriptedCluster() as cluster,
        make_producer(cluster.bootstrap_servers, metric_reporters=[reporter]) as producer,
    ):
        with pytest.raises(IllegalStateException, match="another producer's metrics already"):
            reporter.init(producer)


def test_a_report_that_would_be_too_large_comes_without_topics() -> None:
    values = {MetricName("request-rate", "producer-metrics"): 1.0}
    for number in range(100):
        values[MetricName("byte-rate", "producer-topic-metrics", (("topic", f"t{number}"),))] = 1.0
    found = MetricsSnapshot(values)
    whole = report({"schema": 1}, found, 10_000)
    assert json.loads(whole)["metrics"] == found.as_dict()
    assert report({"schema": 1}, found, len(whole)) == whole
    small = json.loads(report({"schema": 1}, found, len(whole) - 1))
    assert small == {"schema": 1, "topics_left_out": 100, "metrics": {"producer-metrics": {"request-rate": 1.0}}}


async def test_named_in_a_properties_file() -> None:
    async with ScriptedCluster() as cluster:
        reporters = "metric.reporters=aioproducer.metrics_topic.MetricsTopicReporter"
        async with KafkaProducer.from_config(f"bootstrap.servers={cluster.bootstrap_servers}\n{reporters}"):
            pass
        (only,) = reports(cluster)
        assert only["last"]
