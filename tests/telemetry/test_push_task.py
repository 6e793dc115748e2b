"""A producer and its pushes, with the embedded broker."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import ClientPush, EmbeddedCluster
from aioproducer.errors import IllegalArgumentException, IllegalStateException, TimeoutException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.producer import core_of
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.push_telemetry import PushTelemetryResponse
from aioproducer.telemetry import push_task
from aioproducer.telemetry.otlp_payload import otlp_library
from aioproducer.telemetry.push_task import LAST_PUSH, PushTask
from aioproducer.telemetry.telemetry_state import TelemetryState
from tests.support.scripted_broker import ScriptedCluster, edited, never
from tests.support.virtual_time import World, virtual

SENT = "org.apache.kafka.producer.record.send.total"
otlp_library()  # imported here, so that no test pays for it


def task_of(producer: KafkaProducer[Any, Any]) -> PushTask:
    task = core_of(producer).telemetry
    assert task is not None
    return task


def values(push: ClientPush) -> dict[str, float]:
    """The sum of each metric's points, of those that are counted or measured."""
    found = {}
    for of in push.metrics_data().resource_metrics:
        for metric in of.scope_metrics[0].metrics:
            kind = metric.WhichOneof("data")
            if kind != "histogram":
                found[metric.name] = sum(point.as_double for point in getattr(metric, kind).data_points)
    return found


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - there is no event to await
        await asyncio.sleep(0)


async def pushed(cluster: EmbeddedCluster, count: int) -> list[ClientPush]:
    await until(lambda: len(cluster.telemetry()) >= count)
    return cluster.telemetry()


async def test_pushes_have_what_was_sent_since_the_last_one() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 100})
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, client_id="me", client_rack="r1", transactional_id="tx"
        )
        async with producer:
            await producer.init_transactions()
            async with producer.transaction():
                _ = await producer.send("t", b"value")
            client_instance_id = await producer.client_instance_id(10)
            await pushed(cluster, 2)
            async with producer.transaction():
                _ = await producer.send("t", b"value")
        pushes = cluster.telemetry()
    assert {(push.client_instance_id, push.client_id) for push in pushes} == {(client_instance_id, "me")}
    assert [push.is_terminating for push in pushes] == [False] * (len(pushes) - 1) + [True]
    assert sum(values(push).get(SENT, 0.0) for push in pushes) == 2.0
    (of,) = pushes[0].metrics_data().resource_metrics
    labels = {one.key: one.value.string_value for one in of.resource.attributes}
    assert labels == {"transactional_id": "tx", "client_rack": "r1"}


async def test_secrets_are_in_no_push() -> None:
    configs = {
        "listeners": "SASL_PLAINTEXT://:0",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="opensesame";'
        ),
    }
    async with EmbeddedCluster(configs=configs) as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 100})
        async with KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="alice",
            sasl_plain_password="opensesame",
        ) as producer:
            _ = await producer.send("t", b"value")
            await producer.client_instance_id(10)
        (push, *_) = cluster.telemetry()
    assert push.user == "alice"
    assert b"opensesame" not in push.metrics
    assert b"alice" not in push.metrics


async def test_a_broker_that_wants_nothing_is_asked_once() -> None:
    async with ScriptedCluster() as cluster:
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"value")
            first = await producer.client_instance_id(10)
            assert first == await producer.client_instance_id(0)
            assert task_of(producer).state is TelemetryState.SUBSCRIPTION_NEEDED
        assert cluster.broker.count(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS) == 1
        assert cluster.telemetry() == []


async def test_no_metrics_are_pushed_if_it_is_not_configured() -> None:
    async with ScriptedCluster() as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 100})
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, enable_metrics_push=False) as producer:
            _ = await producer.send("t", b"value")
            with pytest.raises(IllegalStateException, match=r"enable\.metrics\.push is false"):
                await producer.client_instance_id(1)
        assert cluster.broker.count(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS) == 0


async def test_an_older_broker_is_not_asked() -> None:
    older: dict[int, int] = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: -1, ApiKey.PUSH_TELEMETRY: -1}
    async with (
        EmbeddedCluster(newest_versions=older) as cluster,
        KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer,
    ):
        _ = await producer.send("t", b"value")
        with pytest.raises(TimeoutException, match="does not speak GET_TELEMETRY_SUBSCRIPTIONS"):
            await producer.client_instance_id(0.05)


async def test_a_caller_that_wants_the_id_makes_the_producer_connect() -> None:
    async with EmbeddedCluster() as cluster, KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        assert await producer.client_instance_id(10) is not None


async def test_the_id_is_not_known_in_time() -> None:
    async with KafkaProducer(bootstrap_servers="127.0.0.1:1") as producer:
        with pytest.raises(TimeoutException, match=r"not known after 0 s: no broker has answered yet"):
            await producer.client_instance_id(0)
        for timeout in (-1, float("nan")):
            with pytest.raises(IllegalArgumentException, match="time-out"):
                await producer.client_instance_id(timeout)
    with pytest.raises(TimeoutException, match="the client is closed"):
        await producer.client_instance_id(10)


async def test_without_the_library_it_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "aioproducer.telemetry")
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.metrics.v1.metrics_pb2", None)
    async with EmbeddedCluster() as cluster:
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.client_instance_id(10)
        assert caplog.messages == []  # nothing is wanted
        cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 100})
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.client_instance_id(10)
            await until(lambda: task_of(producer).state is TelemetryState.TERMINATED)
            _ = await producer.send("t", b"value")
        assert cluster.telemetry() == []
    (message,) = caplog.messages
    assert "pip install 'aioproducer[telemetry]'" in message


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE])
async def test_a_refused_push_is_repeated_with_a_new_subscription(code: ErrorCode) -> None:
    def refused(answer: PushTelemetryResponse) -> None:
        answer.error_code = code

    async with ScriptedCluster() as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 100})
        cluster.broker.script(ApiKey.PUSH_TELEMETRY, edited(refused))
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"value")
            await until(lambda: cluster.broker.count(ApiKey.PUSH_TELEMETRY) >= 2)
        assert cluster.broker.count(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS) >= 2


@virtual
async def test_a_broker_that_does_not_answer_the_last_push_delays_the_close_a_little(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*"})
        cluster.broker.always(ApiKey.PUSH_TELEMETRY, never())
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
        async with producer:
            _ = await producer.send("t", b"value")
            await producer.client_instance_id(10)
            await asyncio.sleep(1)
            closes_at = asyncio.get_running_loop().time()
        assert LAST_PUSH <= asyncio.get_running_loop().time() - closes_at < LAST_PUSH + 0.1
        assert cluster.broker.count(ApiKey.PUSH_TELEMETRY) == 1
        assert task_of(producer).state is TelemetryState.TERMINATED


async def test_a_close_without_time_pushes_nothing() -> None:
    async with ScriptedCluster() as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*"})
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.client_instance_id(10)
            await producer.close(0)
        assert cluster.broker.count(ApiKey.PUSH_TELEMETRY) == 0


async def test_what_does_not_fit_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aioproducer.telemetry")
    async with EmbeddedCluster(configs={"telemetry.max.bytes": 1500}) as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 100})
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"value")
            first, *_ = await pushed(cluster, 3)
    assert 0 < len(first.metrics) <= 1500
    (message,) = caplog.messages
    assert "are not pushed: the brokers take 1500 bytes (telemetry.max.bytes)" in message


async def test_an_error_in_the_task_does_not_affect_the_producer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*given: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(push_task, "OtlpPayload", broken)
    async with EmbeddedCluster() as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 100})
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"value")
            await until(lambda: task_of(producer).state is TelemetryState.TERMINATED)
            assert (await producer.send("t", b"value")).offset == 1
    assert "metrics are not pushed to the brokers any more" in caplog.text


async def test_the_producer_works_on_while_the_broker_answers_nothing() -> None:
    async with ScriptedCluster() as cluster:
        cluster.broker.always(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, never())
        async with KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, request_timeout_ms=100, delivery_timeout_ms=10_000
        ) as producer:
            for _ in range(3):
                _ = await producer.send("t", b"value")
            with pytest.raises(TimeoutException):
                await producer.client_instance_id(0.3)
            _ = await producer.send("t", b"value")


@virtual
@pytest.mark.parametrize("metrics", ["", "*"])
async def test_only_a_push_makes_an_idle_producer_connect(world: World, metrics: str) -> None:
    async with ScriptedCluster() as cluster:
        cluster.alter_client_metrics("all", {"metrics": metrics, "interval.ms": 600_000})
        configs: dict[str, Any] = {"connections_max_idle_ms": 60_000, "metadata_max_age_ms": 100 * 3600_000}
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **configs) as producer:
            _ = await producer.send("t", b"value")
            await asyncio.sleep(300)
            attempts = world.attempts
            await asyncio.sleep(3600)
            assert (world.attempts > attempts) is bool(metrics)
            _ = await producer.send("t", b"value")
            await asyncio.sleep(10)
            assert cluster.broker.count(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS) == (1 if metrics else 2)
