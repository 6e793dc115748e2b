"""GetTelemetrySubscriptions, PushTelemetry and ListConfigResources: Apache Kafka with a receiver of metrics answers the
same."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from aioproducer.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from aioproducer.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from aioproducer.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest as AlterRequest
from aioproducer.protocol.messages.list_config_resources import ListConfigResourcesRequest
from aioproducer.protocol.messages.push_telemetry import PushTelemetryRequest
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.broker.raw_clients.raw_client import RawClient
from tests.support.java_source import compile_java

from .kafka_comparison import ComparedBroker, same

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]

RECEIVER = Path(__file__).parents[2] / "conformance" / "telemetry" / "TelemetryFiles.java"
SUBSCRIPTION = 16
GZIP = 1
MAX_BYTES = 10_000


@pytest.fixture(scope="module")
def receiving_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    classes, pushes = tmp_path_factory.mktemp("classes"), tmp_path_factory.mktemp("pushes")
    compile_java(RECEIVER, classes)
    configs: dict[str, str | int | float | bool] = {
        "metric.reporters": "TelemetryFiles",
        "telemetry.files": str(pushes),
        "telemetry.max.bytes": MAX_BYTES,
    }
    with running_kafka("4.3.1", configs=configs, classpath=[classes]) as kafka:
        yield kafka


@pytest.fixture
async def servers(receiving_kafka: ApacheKafka) -> AsyncIterator[tuple[str, str]]:
    async with EmbeddedCluster(configs={"telemetry.max.bytes": MAX_BYTES}) as cluster:
        yield cluster.bootstrap_servers, receiving_kafka.bootstrap_servers


@pytest.fixture
async def pair(servers: tuple[str, str]) -> AsyncIterator[tuple[ComparedBroker, ComparedBroker]]:
    embedded, kafka = [ComparedBroker(await RawClient.connect(server)) for server in servers]
    yield embedded, kafka
    for broker in (embedded, kafka):
        await broker.client.close()


async def alter(broker: ComparedBroker, name: str, *, validate_only: bool = False, **configs: str | None) -> str:
    """Alters a subscription, and waits until the broker describes it so."""
    changes = [
        AlterableConfig(key.replace("_", "."), 1 if value is None else 0, value) for key, value in configs.items()
    ]
    request = AlterRequest([AlterConfigsResource(SUBSCRIPTION, name, changes)], validate_only)
    (one,) = (await broker.client.request(request, 1)).responses
    wanted = {key.replace("_", "."): value for key, value in configs.items() if value is not None}
    while not one.error_code and not validate_only:
        answer = await broker.client.request(DescribeConfigsRequest([DescribeConfigsResource(SUBSCRIPTION, name)]), 4)
        own = {config.name: config.value for config in answer.results[0].configs if config.config_source == 7}
        gone = {key.replace("_", ".") for key in configs} - wanted.keys()
        if wanted.items() <= own.items() and not gone & own.keys():
            break
        await asyncio.sleep(0.01)
    return ErrorCode(one.error_code).name


async def get(broker: ComparedBroker, client_instance_id: UUID = ZERO_UUID) -> Any:
    return await broker.client.request(GetTelemetrySubscriptionsRequest(client_instance_id), 0)


def shown(answer: Any) -> Any:
    """What must not differ; the ids do."""
    return (
        ErrorCode(answer.error_code).name,
        answer.client_instance_id == ZERO_UUID,
        sorted(answer.requested_metrics),
        answer.accepted_compression_types,
        answer.push_interval_ms,
        answer.telemetry_max_bytes,
        answer.delta_temporality,
    )


async def push(broker: ComparedBroker, to: Any, metrics: bytes = b"", **more: Any) -> str:
    given: dict[str, Any] = {
        "client_instance_id": to.client_instance_id,
        "subscription_id": to.subscription_id,
        "terminating": False,
        "compression_type": 0,
        "metrics": metrics,
    }
    return ErrorCode((await broker.client.request(PushTelemetryRequest(**given | more), 0)).error_code).name


async def test_a_client_without_subscription(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        first = await get(broker)
        again = await get(broker, first.client_instance_id)
        own = await get(broker, UUID(int=5))
        return shown(first), shown(again), shown(own), own.client_instance_id

    await same(pair, case)


async def test_throttling_and_the_end(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await alter(broker, "throttled", metrics="a.,b.", interval_ms="2000", match="client_id=raw")
        first = await get(broker)
        answers = [shown(first), await push(broker, first, b"m"), await push(broker, first, b"m")]
        answers.append(shown(await get(broker, first.client_instance_id)))
        await asyncio.sleep(2.1)
        answers += [await push(broker, first, b"m"), await push(broker, first, b"m", terminating=True)]
        await asyncio.sleep(2.1)
        answers.append(await push(broker, first, b"m"))
        await alter(broker, "throttled", metrics=None, interval_ms=None, match=None)
        return answers

    await same(pair, case)


async def test_pushes_that_are_refused(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await alter(broker, "refused", metrics="*,a.", interval_ms="100", match="client_source_address=127.*")
        first = await get(broker)
        answers = [shown(first)]
        for more in (
            {"client_instance_id": ZERO_UUID},
            {"client_instance_id": UUID(int=1)},
            {"subscription_id": first.subscription_id + 1},
            {"compression_type": 9},
            {"metrics": b"x" * (MAX_BYTES + 1)},
            {"metrics": b"x" * MAX_BYTES},
            {"compression_type": GZIP, "metrics": b"no gzip"},
            {"compression_type": GZIP, "metrics": gzip.compress(bytes(MAX_BYTES + 1))},
            {"compression_type": GZIP, "metrics": gzip.compress(bytes(MAX_BYTES))},
            {"metrics": b""},
        ):
            answers.append(await push(broker, first, **more))
            await asyncio.sleep(0.15)
        answers.append(await push(broker, first, subscription_id=first.subscription_id + 1))
        answers.append(shown(await get(broker, first.client_instance_id)))
        await alter(broker, "refused", metrics=None, interval_ms=None, match=None)
        return answers

    await same(pair, case)


async def test_a_changed_subscription(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await alter(broker, "changed", metrics="a.")
        first = await get(broker)
        await alter(broker, "changed", metrics="b.", interval_ms="1000")
        answers = [await push(broker, first, b"m")]
        second = await get(broker, first.client_instance_id)
        answers += [shown(second), await push(broker, second, b"m")]
        await alter(broker, "changed", metrics=None, interval_ms=None)
        answers.append(shown(await get(broker, first.client_instance_id)))
        return answers

    await same(pair, case)


async def test_subscriptions_that_are_refused(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        return [
            await alter(broker, name, validate_only=True, **configs)
            for name, configs in (
                ("r", {"match": "client_id"}),
                ("r", {"match": "client_id="}),
                ("r", {"match": "client_id=a=b"}),
                ("r", {"match": "client_id=["}),
                ("r", {"match": "client_id=a,client_id=b"}),
                ("r", {"match": "client_id=a,client_id=a"}),
                ("r", {"metrics": "a.,a."}),
                ("r", {"metrics": ""}),
                ("r", {"match": ""}),
                ("r", {"interval.ms": "3600001"}),
                ("", {"metrics": "a."}),
            )
        ]

    await same(pair, case)


async def test_what_has_configs(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await alter(broker, "listed", metrics="a.")
        await broker.create("listed")

        async def listed(version: int, *types: int) -> Any:
            answer = await broker.client.request(ListConfigResourcesRequest(list(types)), version)
            names = [
                (one.resource_type, one.resource_name if one.resource_type in (2, 16) else "")
                for one in answer.config_resources
            ]
            return ErrorCode(answer.error_code).name, [one for one in names if one[1] in ("listed", "")]

        answers = [await listed(0), await listed(1), await listed(1, 16), await listed(1, 2, 4), await listed(1, 99)]
        await alter(broker, "listed", metrics=None)
        return answers

    await same(pair, case)
