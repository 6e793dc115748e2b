"""GetTelemetrySubscriptions, PushTelemetry and ListConfigResources of the embedded broker."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from aioproducer.protocol.messages.list_config_resources import ListConfigResourcesRequest
from aioproducer.protocol.messages.push_telemetry import PushTelemetryRequest
from aioproducer.protocol.primitives import ZERO_UUID
from tests.broker.raw_clients.raw_client import Connect, RawClient

GZIP = 1


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return int(self.now * 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def cluster(clock: Clock) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(clock=clock, configs={"telemetry.max.bytes": 100_000}) as cluster:
        yield cluster


async def get(client: RawClient, client_instance_id: UUID = ZERO_UUID) -> GetTelemetrySubscriptionsResponse:
    answer: GetTelemetrySubscriptionsResponse = await client.request(
        GetTelemetrySubscriptionsRequest(client_instance_id), 0
    )
    return answer


async def push(
    client: RawClient, to: GetTelemetrySubscriptionsResponse, metrics: bytes = b"metrics", **more: Any
) -> ErrorCode:
    given: dict[str, Any] = {
        "client_instance_id": to.client_instance_id,
        "subscription_id": to.subscription_id,
        "terminating": False,
        "compression_type": 0,
        "metrics": metrics,
    }
    return ErrorCode((await client.request(PushTelemetryRequest(**given | more), 0)).error_code)


async def test_without_subscriptions_nothing_is_wanted(client: RawClient) -> None:
    answer = await get(client)
    assert answer.error_code == ErrorCode.NONE
    assert answer.client_instance_id != ZERO_UUID
    assert (answer.requested_metrics, answer.push_interval_ms) == ([], 300_000)
    assert answer.delta_temporality
    assert answer.telemetry_max_bytes == 100_000
    assert GZIP in answer.accepted_compression_types


async def test_a_push_is_kept(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.alter_client_metrics("all", {"metrics": "b.,a.", "interval.ms": 1000})
    answer = await get(client)
    assert (answer.requested_metrics, answer.push_interval_ms) == (["a.", "b."], 1000)
    assert await push(client, answer, gzip.compress(b"metrics"), compression_type=GZIP) == ErrorCode.NONE
    (kept,) = cluster.telemetry()
    assert (kept.client_instance_id, kept.metrics, kept.codec) == (answer.client_instance_id, b"metrics", "gzip")
    assert (kept.node_id, kept.time_ms, kept.user, kept.address) == (0, 1_000_000, "ANONYMOUS", "127.0.0.1")


async def test_subscriptions_add_up(cluster: EmbeddedCluster, connect: Connect) -> None:
    cluster.alter_client_metrics("a", {"metrics": "a.", "interval.ms": 5000})
    cluster.alter_client_metrics("b", {"metrics": "b.,a.", "interval.ms": 3000})
    cluster.alter_client_metrics("other", {"metrics": "*", "interval.ms": 100, "match": "client_id=nobody"})
    answer = await get(await connect())
    assert (answer.requested_metrics, answer.push_interval_ms) == (["a.", "b."], 3000)
    cluster.alter_client_metrics("c", {"metrics": "*,a."})
    assert (await get(await connect())).requested_metrics == ["*"]
    for name in ("a", "b", "c", "other"):
        cluster.alter_client_metrics(name, {"metrics": None, "interval.ms": None, "match": None})
    assert (await get(await connect())).requested_metrics == []


@pytest.mark.parametrize(
    ("match", "is_wanted"),
    [
        ("client_id=raw", True),
        ("client_id=r.*", True),
        ("client_id=a", False),
        ("client_source_address=127\\.0\\.0\\.[0-9]+", True),
        ("client_source_port=[0-9]+", True),
        ("client_source_port=0", False),
        ("client_instance_id=.{22}", True),
        ("client_software_name=.*", False),  # it has not said
        ("client_id=raw,client_source_port=0", False),
    ],
)
async def test_whom_a_subscription_is_for(
    cluster: EmbeddedCluster, client: RawClient, match: str, is_wanted: bool
) -> None:
    cluster.alter_client_metrics("all", {"metrics": "*", "match": match})
    assert (await get(client)).requested_metrics == (["*"] if is_wanted else [])


async def test_a_client_asks_once_in_an_interval(cluster: EmbeddedCluster, client: RawClient, clock: Clock) -> None:
    cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 1000})
    first = await get(client)
    again = await get(client, first.client_instance_id)
    assert again.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    cluster.alter_client_metrics("all", {"metrics": "a."})
    changed = await get(client, first.client_instance_id)
    assert (changed.error_code, changed.requested_metrics) == (ErrorCode.NONE, ["a."])
    clock.now += 1.0
    assert (await get(client, first.client_instance_id)).error_code == ErrorCode.NONE


async def test_a_client_pushes_once_in_an_interval(cluster: EmbeddedCluster, client: RawClient, clock: Clock) -> None:
    cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 1000})
    answer = await get(client)
    clock.now += 0.1
    assert await push(client, answer) == ErrorCode.NONE
    assert await push(client, answer) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    clock.now += 1.0
    assert await push(client, answer) == ErrorCode.NONE
    assert await push(client, answer, terminating=True) == ErrorCode.NONE
    clock.now += 1.0
    assert await push(client, answer) == ErrorCode.INVALID_REQUEST
    assert [kept.is_terminating for kept in cluster.telemetry()] == [False, False, True]


async def test_pushes_that_are_refused(cluster: EmbeddedCluster, client: RawClient, clock: Clock) -> None:
    cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 100})
    answer = await get(client)
    for more, code in (
        ({"client_instance_id": ZERO_UUID}, ErrorCode.INVALID_REQUEST),
        ({"client_instance_id": UUID(int=1)}, ErrorCode.INVALID_REQUEST),
        ({"subscription_id": answer.subscription_id + 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"x" * 100_001}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"compression_type": GZIP}, ErrorCode.INVALID_RECORD),
        ({"compression_type": GZIP, "metrics": b"x" * 50_000}, ErrorCode.INVALID_RECORD),
        ({"compression_type": GZIP, "metrics": gzip.compress(bytes(100_001))}, ErrorCode.INVALID_RECORD),
    ):
        assert await push(client, answer, **more) == code
        clock.now += 1.0
    assert cluster.telemetry() == []
    assert (await get(client, answer.client_instance_id)).error_code == ErrorCode.NONE


async def test_an_unknown_subscription_may_be_asked_for_at_once(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 1000})
    answer = await get(client)
    assert await push(client, answer, subscription_id=answer.subscription_id + 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert (await get(client, answer.client_instance_id)).error_code == ErrorCode.NONE


async def test_an_empty_push_is_not_kept(cluster: EmbeddedCluster, client: RawClient) -> None:
    assert await push(client, await get(client), b"") == ErrorCode.NONE
    assert cluster.telemetry() == []


async def test_another_node_accepts_the_same_subscription(clock: Clock, connect: Connect) -> None:
    async with EmbeddedCluster(2, clock=clock) as cluster:
        cluster.alter_client_metrics("all", {"metrics": "*"})
        first, second = [RawClient(*await asyncio.open_connection(*cluster.listener(node))) for node in (0, 1)]
        try:
            assert await push(second, await get(first)) == ErrorCode.NONE
            assert [kept.node_id for kept in cluster.telemetry()] == [1]
        finally:
            await first.close()
            await second.close()


async def test_there_are_no_more_instances_than_connections(cluster: EmbeddedCluster, client: RawClient) -> None:
    for number in range(2, 50):
        assert (await get(client, UUID(int=number))).error_code == ErrorCode.NONE
    (server,) = cluster._servers.values()
    assert len(server.context.client_metrics._instances) == 1


async def test_what_has_configs(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    cluster.alter_client_metrics("m", {"metrics": "*"})

    async def listed(version: int, *types: int) -> Any:
        answer = await client.request(ListConfigResourcesRequest(list(types)), version)
        return answer.error_code, [(one.resource_type, one.resource_name) for one in answer.config_resources]

    assert await listed(0) == (ErrorCode.NONE, [(16, "m")])
    assert await listed(1) == (ErrorCode.NONE, [(16, "m"), (8, "0"), (4, "0"), (2, "t")])
    assert await listed(1, 2, 16) == (ErrorCode.NONE, [(16, "m"), (2, "t")])
    assert await listed(1, 77) == (ErrorCode.UNSUPPORTED_VERSION, [])
