"""AlterClientQuotas and DescribeClientQuotas."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntryData, OpData
from aioproducer.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
)

from . import Connect, RawClient

Ops = dict[str, float | None]


def altered(entity: dict[str, str | None], ops: Ops) -> EntryData:
    parts = [EntityData(kind, name) for kind, name in entity.items()]
    return EntryData(parts, [OpData(key, value or 0.0, value is None) for key, value in ops.items()])


async def alter(client: RawClient, *entries: EntryData, version: int = 1, validate_only: bool = False) -> list[Any]:
    response = await client.request(AlterClientQuotasRequest(list(entries), validate_only), version)
    # As in Kafka, an entity that is there twice is answered once.
    entities = {frozenset((part.entity_type, part.entity_name) for part in entry.entity) for entry in entries}
    assert len(response.entries) == len(entities)
    return [ErrorCode(entry.error_code) for entry in response.entries]


async def describe(client: RawClient, *components: ComponentData, version: int = 1, strict: bool = False) -> Any:
    response = await client.request(DescribeClientQuotasRequest(list(components), strict), version)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in response.entries
    ]


@pytest.mark.parametrize("version", [0, 1])
async def test_quotas_that_are_set_are_described(client: RawClient, version: int) -> None:
    assert await alter(
        client,
        altered({"user": "a", "client-id": None}, {"producer_byte_rate": 1000, "request_percentage": 12.5}),
        altered({"ip": "127.0.0.9"}, {"connection_creation_rate": 7}),
        version=version,
    ) == [ErrorCode.NONE, ErrorCode.NONE]
    assert await describe(client, version=version) == [
        ({"client-id": None, "user": "a"}, {"producer_byte_rate": 1000, "request_percentage": 12.5}),
        ({"ip": "127.0.0.9"}, {"connection_creation_rate": 7}),
    ]
    await alter(client, altered({"ip": "127.0.0.9"}, {"connection_creation_rate": None}), version=version)
    assert await describe(client, ComponentData("ip", 2, None), version=version) == []


@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
async def test_all_nodes_agree(cluster: EmbeddedCluster, connect: Connect) -> None:
    first, second = await connect(0), await connect(1)
    await alter(first, altered({"user": None}, {"consumer_byte_rate": 5}))
    assert await describe(second) == [({"user": None}, {"consumer_byte_rate": 5})]


async def test_a_refused_quota_hinders_no_other(client: RawClient) -> None:
    assert await alter(
        client,
        altered({"user": "a"}, {"producer_byte_rate": -1}),
        altered({"user": "b"}, {"producer_byte_rate": 1}),
        altered({"user": "c", "client-id": "x"}, {"producer_byte_rate": 1}),
        altered({"client-id": "x", "user": "c"}, {"consumer_byte_rate": 1}),
        altered({}, {}),
    ) == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    assert await describe(client) == [({"user": "b"}, {"producer_byte_rate": 1})]


async def test_only_checked(client: RawClient) -> None:
    assert await alter(client, altered({"user": "a"}, {"producer_byte_rate": 1}), validate_only=True) == [
        ErrorCode.NONE
    ]
    assert await describe(client) == []


async def test_a_filter_that_is_none(client: RawClient) -> None:
    response = await client.request(DescribeClientQuotasRequest([ComponentData("user", 0, None)]), 1)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.entries is None


async def test_listeners_hear_of_a_request_once(cluster: EmbeddedCluster, client: RawClient) -> None:
    """Each looks at all quotas, so to call them for each of thousands of entities would take minutes."""
    heard: list[int] = []
    quotas = cluster._state.client_quotas
    quotas.listeners.add(lambda: heard.append(len(quotas.ip_rates()[1])))
    entries = [altered({"ip": f"10.0.0.{number}"}, {"connection_creation_rate": 5}) for number in range(200)]
    assert set(await alter(client, *entries)) == {ErrorCode.NONE}
    assert heard == [200]
    await alter(client, *entries, validate_only=True)
    assert heard == [200]
    assert len(await describe(client)) == 200
