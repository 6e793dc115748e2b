from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import IllegalStateException
from aioproducer.integrations.prometheus import PrometheusReporter
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import make_producer

pytestmark = pytest.mark.usefixtures("no_leaks")


def scraped(registry: CollectorRegistry) -> dict[str, Any]:
    """Families by name, as Prometheus reads them."""
    families = list(text_string_to_metric_families(generate_latest(registry).decode()))
    assert len({family.name for family in families}) == len(families)
    return {family.name: family for family in families}


def sample(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


async def test_a_scrape_has_kafkas_metrics_by_client_topic_and_node() -> None:
    registry = CollectorRegistry()
    async with EmbeddedCluster() as cluster:
        reporter = PrometheusReporter(registry)
        async with make_producer(cluster.bootstrap_servers, client_id="me", metric_reporters=[reporter]) as producer:
            for number in range(3):
                await producer.send("orders", b"%d" % number)
            assert sample(registry, "kafka_producer_record_delivered_total", client_id="me") == 3
            labels = {"client_id": "me", "topic": "orders"}
            assert sample(registry, "kafka_producer_topic_record_send_total", **labels) == 3
            assert sample(registry, "kafka_producer_node_request_total", client_id="me", node_id="node-0")
            families = scraped(registry)
            assert families["kafka_producer_record_delivered"].type == "counter"
            assert families["kafka_producer_buffer_available_bytes"].type == "gauge"
            assert families["kafka_producer_record_delivered"].documentation.startswith("in all: records delivered")
            assert "kafka_producer_produce_throttle_time_avg" in families
            # Nothing was compressed by more than one batch size, nothing lingered by pipeline=auto: no values.
            assert "kafka_producer_batch_linger_avg" not in families
        assert scraped(registry) == {}


async def test_producers_share_families() -> None:
    registry = CollectorRegistry()
    async with EmbeddedCluster() as cluster:
        one, other = (
            make_producer(cluster.bootstrap_servers, client_id=name, metric_reporters=[PrometheusReporter(registry)])
            for name in ("one", "other")
        )
        async with one, other:
            await one.send("t", b"value")
            assert sample(registry, "kafka_producer_record_delivered_total", client_id="one") == 1
            assert sample(registry, "kafka_producer_record_delivered_total", client_id="other") == 0
            scraped(registry)
            await one.close()
            assert sample(registry, "kafka_producer_record_delivered_total", client_id="one") is None
            assert sample(registry, "kafka_producer_record_delivered_total", client_id="other") == 0


async def test_any_thread_may_scrape_while_topics_come_and_records_wait() -> None:
    registry = CollectorRegistry()
    reporter = PrometheusReporter(registry)
    async with (
        EmbeddedCluster() as cluster,
        make_producer(cluster.bootstrap_servers, metric_reporters=[reporter], buffer_memory=200_000) as producer,
    ):

        async def send(topic: str) -> None:
            for _ in range(20):
                await producer.send(topic, bytes(1000))

        sending = [asyncio.create_task(send(f"t{number}")) for number in range(20)]
        scrapes = 0
        while not all(task.done() for task in sending):
            await asyncio.to_thread(generate_latest, registry)
            scrapes += 1
        await asyncio.gather(*sending)
        assert scrapes > 0
        assert sample(registry, "kafka_producer_record_delivered_total", client_id=producer.config.client_id) == 400


async def test_histograms_add_up_over_producers_and_instances() -> None:
    registries = [CollectorRegistry(), CollectorRegistry()]
    async with EmbeddedCluster() as cluster, AsyncExitStack() as producers:
        for number in range(3):
            config: dict[str, Any] = {"metric_reporters": [PrometheusReporter(registries[number % 2])]}
            producer = make_producer(cluster.bootstrap_servers, client_id=f"c{number}", **config)
            await producers.enter_async_context(producer)
            for _ in range(number + 1):
                await producer.send("t", bytes(1000))
        for name, unit in (
            ("kafka_producer_batch_acknowledgement_seconds", 120),
            ("kafka_producer_batch_bytes", 4096),
        ):
            families = [scraped(registry)[name] for registry in registries]
            assert {family.type for family in families} == {"histogram"}
            samples = [sample for family in families for sample in family.samples]
            counts = {
                suffix: sum(sample.value for sample in samples if sample.name == f"{name}_{suffix}")
                for suffix in ("count", "sum")
            }
            assert counts["count"] == 1 + 2 + 3, "each batch once"
            assert 0 < counts["sum"] < 6 * unit
            assert sum(s.value for s in samples if s.labels.get("le") == "+Inf") == 6
            assert sum(s.value for s in samples if s.labels.get("le") == f"{unit:.1f}") == 6
            assert {tuple(sorted(s.labels)) for s in samples} == {("client_id",), ("client_id", "le")}
        text = generate_latest(registries[0]).decode()
        assert text.count("# TYPE kafka_producer_batch_bytes histogram") == 1


async def test_a_reporter_is_one_producers() -> None:
    reporter = PrometheusReporter(CollectorRegistry())
    async with EmbeddedCluster() as cluster, make_producer(cluster.bootstrap_servers) as producer:
        reporter.init(producer)
        with pytest.raises(IllegalStateException, match="one for each"):
            reporter.init(producer)
        await reporter.close()


async def test_two_producers_of_one_client_id_are_not_mixed(caplog: pytest.LogCaptureFixture) -> None:
    """Prometheus would refuse the scrape, or take one's figures for the other's."""
    registry = CollectorRegistry()
    async with EmbeddedCluster() as cluster:
        one, other = (
            make_producer(cluster.bootstrap_servers, client_id="me", metric_reporters=[PrometheusReporter(registry)])
            for _ in range(2)
        )
        async with one, other:
            await one.send("t", b"value")
            assert sample(registry, "kafka_producer_record_delivered_total", client_id="me") == 1
            text = generate_latest(registry).decode()
            assert text.count('kafka_producer_record_delivered_total{client_id="me"}') == 1
        assert scraped(registry) == {}
    assert "client_id='me', too: give each its own" in caplog.text


async def test_producers_without_a_client_id_are_distinguished(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    async with EmbeddedCluster() as cluster:
        one, other = (
            make_producer(cluster.bootstrap_servers, metric_reporters=[PrometheusReporter(registry)]) for _ in range(2)
        )
        async with one, other:
            await one.send("t", b"value")
            for producer, delivered in ((one, 1), (other, 0)):
                name = producer.config.client_id
                assert sample(registry, "kafka_producer_record_delivered_total", client_id=name) == delivered
    assert "give each its own" not in caplog.text


def test_a_relay_of_an_outbox_is_reported() -> None:
    """Before it has a producer, too; its figures have the name of the outbox."""
    from aioproducer.outbox import OutboxRelay

    registry = CollectorRegistry()
    relay = OutboxRelay("postgresql://127.0.0.1/x", bootstrap_servers="127.0.0.1:9092", name="orders")
    PrometheusReporter(registry).init(relay)
    assert registry.get_sample_value("kafka_outbox_lag_age", {"outbox": "orders"}) == 0
    assert registry.get_sample_value("kafka_outbox_row_relayed_total", {"outbox": "orders"}) == 0
    assert registry.get_sample_value("kafka_outbox_rows_per_commit_avg", {"outbox": "orders"}) is None
