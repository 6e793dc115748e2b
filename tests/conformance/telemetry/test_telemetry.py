"""KIP-714: this producer pushes to real Kafka, whose plugin keeps what it gets; Kafka's producer and librdkafka push to
the embedded broker."""

from __future__ import annotations

import asyncio
import base64
import math
import runpy
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from aioproducer import KafkaProducer, MetricName
from aioproducer.admin import ConfigResource, KafkaAdmin
from aioproducer.broker import ClientPush, EmbeddedCluster
from aioproducer.errors import TimeoutException
from aioproducer.telemetry.metric_key import OWN, metric_key
from aioproducer.telemetry.otlp_payload import otlp_library
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.support.java_source import compile_java, java_command

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
DOCUMENTED = runpy.run_path(str(HERE.parents[2] / "scripts" / "metrics.py"))
OTLP = otlp_library()
SENT = "org.apache.kafka.producer.record.send.total"


class Kind(NamedTuple):
    """What a metric is, apart from its value."""

    kind: str
    is_delta: bool
    labels: frozenset[str]


def kinds(data: Any) -> dict[str, Kind]:
    found = {}
    for metric in metrics_of(data):
        kind = metric.WhichOneof("data")
        points = getattr(metric, kind)
        is_delta = kind != "gauge" and points.aggregation_temporality == OTLP.AGGREGATION_TEMPORALITY_DELTA
        labels = frozenset(label.key for point in points.data_points for label in point.attributes)
        found[metric.name] = Kind(kind, is_delta, labels)
    return found


def metrics_of(data: Any) -> Iterator[Any]:
    for of in data.resource_metrics:
        for scope in of.scope_metrics:
            yield from scope.metrics


def resources(data: Any) -> set[tuple[tuple[str, str], ...]]:
    return {
        tuple((label.key, label.value.string_value) for label in of.resource.attributes) for of in data.resource_metrics
    }


def total(data: Any, name: str) -> float:
    return float(
        sum(point.as_double for metric in metrics_of(data) if metric.name == name for point in metric.sum.data_points)
    )


class KafkaPush(NamedTuple):
    client_id: str
    client_instance_id: UUID
    is_terminating: bool
    data: Any


class Receiver:
    """Real Kafka with the plugin, and what it has got."""

    def __init__(self, kafka: ApacheKafka, directory: Path) -> None:
        self.kafka = kafka
        self._directory = directory

    def pushes(self, client_id: str) -> list[KafkaPush]:
        found = []
        for file in sorted(self._directory.glob(f"{client_id} *")):
            _, _, instance, last = file.name.split(" ")
            raw = base64.urlsafe_b64decode(instance + "==")
            found.append(
                KafkaPush(client_id, UUID(bytes=raw), last == "true", OTLP.MetricsData.FromString(file.read_bytes()))
            )
        return found

    @asynccontextmanager
    async def subscribed(self, name: str, **configs: str) -> AsyncIterator[None]:
        """A subscription, in force in the broker."""
        resource = ConfigResource.client_metrics(name)
        async with KafkaAdmin(bootstrap_servers=self.kafka.bootstrap_servers) as admin:
            await admin.alter_configs(resource, {key.replace("_", "."): value for key, value in configs.items()})
            while not any(entry.value for entry in (await admin.describe_configs(resource)).values()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            try:
                yield
            finally:
                await admin.alter_configs(resource, dict.fromkeys((key.replace("_", ".") for key in configs), None))


@pytest.fixture(scope="module", params=["4.3.1", "3.9.2"])
def receiver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    classes, pushes = tmp_path_factory.mktemp("classes"), tmp_path_factory.mktemp("pushes")
    compile_java(HERE / "TelemetryFiles.java", classes)
    configs = {"metric.reporters": "TelemetryFiles", "telemetry.files": str(pushes)}
    with running_kafka(request.param, configs=configs, classpath=[classes]) as kafka:
        yield Receiver(kafka, pushes)


async def until(receiver: Receiver, client_id: str, count: int) -> list[KafkaPush]:
    while len(pushes := receiver.pushes(client_id)) < count:  # noqa: ASYNC110 - another process writes them
        await asyncio.sleep(0.02)
    return pushes


async def test_the_producer_pushes_to_kafka(receiver: Receiver) -> None:
    servers = receiver.kafka.bootstrap_servers
    async with (
        receiver.subscribed("all", metrics="*", interval_ms="300", match="client_id=ours.*"),
        KafkaProducer(bootstrap_servers=servers, client_id="ours", client_rack="r1") as producer,
    ):
        for _ in range(3):
            _ = await producer.send("t", b"value")
        client_instance_id = await producer.client_instance_id(30)
        await until(receiver, "ours", 2)
        for _ in range(4):
            _ = await producer.send("t", b"value")
    pushes = await until(receiver, "ours", 3)
    assert {push.client_instance_id for push in pushes} == {client_instance_id}
    assert [push.is_terminating for push in pushes] == [False] * (len(pushes) - 1) + [True]
    assert sum(total(push.data, SENT) for push in pushes) == 7.0  # deltas, none lost and none twice
    assert resources(pushes[-1].data) == {(("client_rack", "r1"),)}


async def test_only_what_is_wanted_of_whom_it_is_wanted(receiver: Receiver) -> None:
    servers = receiver.kafka.bootstrap_servers
    prefix = "org.apache.kafka.producer.record.send."
    async with receiver.subscribed(
        "some", metrics=prefix, interval_ms="200", match="client_software_name=aioproducer,client_id=some"
    ):
        async with (
            KafkaProducer(bootstrap_servers=servers, client_id="some") as some,
            KafkaProducer(bootstrap_servers=servers, client_id="other") as other,
        ):
            assert await some.client_instance_id(30) != await other.client_instance_id(30)
            pushes = await until(receiver, "some", 2)
        assert receiver.pushes("other") == []
    assert set(kinds(pushes[0].data)) == {f"{prefix}rate", SENT}


async def test_a_changed_subscription_is_followed(receiver: Receiver) -> None:
    """Kafka answers UNKNOWN_SUBSCRIPTION_ID, and the client asks again."""
    servers = receiver.kafka.bootstrap_servers
    async with (
        KafkaProducer(bootstrap_servers=servers, client_id="changing") as producer,
        receiver.subscribed(
            "first", metrics="org.apache.kafka.producer.", interval_ms="200", match="client_id=changing"
        ),
    ):
        client_instance_id = await producer.client_instance_id(30)
        first = await until(receiver, "changing", 1)
        async with receiver.subscribed("second", metrics="aioproducer.", interval_ms="100", match="client_id=changing"):
            seen = len(receiver.pushes("changing"))
            while not any(name.startswith(OWN) for name in kinds((await until(receiver, "changing", seen))[-1].data)):
                seen += 1
    assert not any(name.startswith(OWN) for name in kinds(first[0].data))
    assert {push.client_instance_id for push in receiver.pushes("changing")} == {client_instance_id}


async def test_kafka_without_a_receiver(kafka: ApacheKafka) -> None:
    """It does not offer the APIs: nothing is asked, and the producer works."""
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        _ = await producer.send("t", b"value")
        with pytest.raises(TimeoutException, match="does not speak GET_TELEMETRY_SUBSCRIPTIONS"):
            await producer.client_instance_id(0.5)


async def test_kafkas_producer_pushes_to_the_embedded_broker() -> None:
    """And its metrics have the names, kinds and labels that ours have."""
    async with EmbeddedCluster() as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 500})
        command = java_command(HERE / "PushingProducer.java", cluster.bootstrap_servers, "3000")
        pipe = asyncio.subprocess.PIPE
        java = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
        out, err = await java.communicate()
        assert java.returncode == 0, err.decode()
        theirs = [push for push in cluster.telemetry() if push.client_id == "java"]
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, client_rack="r1") as producer:
            _ = await producer.send("t", b"value")
            client_instance_id = await producer.client_instance_id(30)
            while cluster.telemetry()[-1].client_instance_id != client_instance_id:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        ours = cluster.telemetry()[-1]
    (line,) = [line for line in out.decode().splitlines() if line.startswith("id ")]
    raw = base64.urlsafe_b64decode(line.removeprefix("id ") + "==")
    assert {push.client_instance_id for push in theirs} == {UUID(bytes=raw)}
    # Kafka's producer may be closed before its last push has left.
    assert not any(push.is_terminating for push in theirs[:-1])
    assert theirs[0].software.startswith("apache-kafka-java ")
    assert sum(total(push.metrics_data(), SENT) for push in theirs) == 1.0
    assert resources(theirs[-1].metrics_data()) == resources(ours.metrics_data()) == {(("client_rack", "r1"),)}
    # What has no value yet is NaN there, and left out here.
    kafkas = {name: kind for name, kind in kinds(theirs[-1].metrics_data()).items() if name not in empty(theirs[-1])}
    own = {name: kind for name, kind in kinds(ours.metrics_data()).items() if not name.startswith(OWN)}
    absent = {
        metric_key(MetricName(name, group), own=False) for names, _ in DOCUMENTED["ABSENT"] for group, name in names
    }
    assert kafkas.keys() - own.keys() == {name for name in absent if "app.info" not in name}
    assert own == {name: kind for name, kind in kafkas.items() if name in own}


def empty(push: ClientPush) -> set[str]:
    """The metrics none of whose points has a value. Kafka's producer has each point in a metric of its own."""
    metrics = list(metrics_of(push.metrics_data()))
    some = {one.name for one in metrics for point in one.gauge.data_points if not math.isnan(point.as_double)}
    return {one.name for one in metrics if one.HasField("gauge")} - some


async def test_librdkafka_pushes_to_the_embedded_broker() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    async with EmbeddedCluster() as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 300})
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "client.id": "c"})
        producer.produce("t", b"value")
        while not any(push.client_id == "c" for push in cluster.telemetry()):
            await asyncio.to_thread(producer.poll, 0.1)
        await asyncio.to_thread(producer.flush)
        (first, *_) = cluster.telemetry()
    assert first.software.startswith("confluent-kafka-python ")
    assert "org.apache.kafka.producer.connection.creation.total" in kinds(first.metrics_data())
