from __future__ import annotations

from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest

from . import RawClient

REQUEST = ApiVersionsRequest("aioproducer", "1.0")


@pytest.mark.parametrize("version", range(5))
async def test_every_version_has_the_same_answer(client: RawClient, version: int) -> None:
    response = await client.request(REQUEST, version)
    assert response.error_code == ErrorCode.NONE
    assert {api.api_key: (api.min_version, api.max_version) for api in response.api_keys} == {
        ApiKey.PRODUCE: (0, 14),
        ApiKey.FETCH: (4, 18),
        ApiKey.LIST_OFFSETS: (1, 11),
        ApiKey.METADATA: (0, 13),
        ApiKey.OFFSET_COMMIT: (2, 10),
        ApiKey.OFFSET_FETCH: (1, 10),
        ApiKey.FIND_COORDINATOR: (0, 6),
        ApiKey.API_VERSIONS: (0, 4),
        ApiKey.CREATE_TOPICS: (2, 7),
        ApiKey.DELETE_TOPICS: (1, 6),
        ApiKey.INIT_PRODUCER_ID: (0, 5),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
        ApiKey.ADD_PARTITIONS_TO_TXN: (0, 3),
        ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
        ApiKey.END_TXN: (0, 5),
        ApiKey.TXN_OFFSET_COMMIT: (0, 5),
        ApiKey.DESCRIBE_CLUSTER: (0, 2),
        ApiKey.DESCRIBE_PRODUCERS: (0, 0),
        ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
        ApiKey.LIST_TRANSACTIONS: (0, 2),
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (0, 0),
        ApiKey.PUSH_TELEMETRY: (0, 0),
        ApiKey.LIST_CONFIG_RESOURCES: (0, 1),
        ApiKey.CREATE_PARTITIONS: (0, 3),
        ApiKey.DELETE_RECORDS: (0, 2),
        ApiKey.JOIN_GROUP: (0, 9),
        ApiKey.SYNC_GROUP: (0, 5),
        ApiKey.HEARTBEAT: (0, 4),
        ApiKey.LEAVE_GROUP: (0, 5),
        ApiKey.DESCRIBE_GROUPS: (0, 6),
        ApiKey.LIST_GROUPS: (0, 5),
        ApiKey.DELETE_GROUPS: (0, 2),
        ApiKey.OFFSET_DELETE: (0, 0),
        ApiKey.DESCRIBE_ACLS: (1, 3),
        ApiKey.CREATE_ACLS: (1, 3),
        ApiKey.DELETE_ACLS: (1, 3),
        ApiKey.DESCRIBE_CONFIGS: (1, 4),
        ApiKey.ALTER_CONFIGS: (0, 2),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
        ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
        ApiKey.SASL_HANDSHAKE: (1, 1),
        ApiKey.SASL_AUTHENTICATE: (0, 2),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    }


async def test_every_version_offered_can_be_read_but_the_produce_ones_for_librdkafka(client: RawClient) -> None:
    response = await client.request(ApiVersionsRequest(), 0)
    for api in response.api_keys:
        first = 3 if api.api_key == ApiKey.PRODUCE else api.min_version
        for version in range(first, api.max_version + 1):
            assert version in APIS[ApiKey(api.api_key)].request.VALID_VERSIONS


async def test_a_newer_version_gets_the_versions_of_this_api_in_version_0(client: RawClient) -> None:
    # Version 99 of an unknown client: header version 2 (with tagged fields), a body that no reader here knows.
    frame = b"\x00\x12\x00\x63\x00\x00\x00\x07\x00\x03new\x00" + b"whatever comes with version 99"
    await client.send_bytes(len(frame).to_bytes(4, "big") + frame)
    correlation_id, response = await client.receive(ApiKey.API_VERSIONS, 0)
    assert correlation_id == 7
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.api_keys == [ApiVersion(ApiKey.API_VERSIONS, 0, 4)]
    # The connection is as good as before.
    assert (await client.request(REQUEST, 4)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("name", ["", "-x", "a b", "x."])
async def test_a_client_has_a_proper_name(client: RawClient, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert (await client.request(request, 3)).error_code == ErrorCode.INVALID_REQUEST


async def test_of_a_long_name_only_the_beginning_is_kept(cluster: EmbeddedCluster, client: RawClient) -> None:
    """It stays as long as the connection."""
    request = ApiVersionsRequest(client_software_name="x" * 32_000, client_software_version="1" * 32_000)
    assert (await client.request(request, 3)).error_code == ErrorCode.NONE
    (server,) = cluster._servers.values()
    (channel,) = [channel for processor in server.sockets.processors for channel in processor.open_channels()]
    assert channel.software == ("x" * 255, "1" * 255)


@pytest.mark.parametrize(
    ("cluster", "finalized"),
    [
        ({}, [("transaction.version", 2, 2)]),
        ({"transaction_version": 1}, [("transaction.version", 1, 1)]),
        ({"transaction_version": 0}, []),
    ],
    indirect=["cluster"],
)
async def test_the_protocol_of_transactions_is_a_feature(client: RawClient, finalized: list[Any]) -> None:
    response = await client.request(REQUEST, 4)
    (supported,) = response.supported_features
    assert (supported.name, supported.min_version, supported.max_version) == ("transaction.version", 0, 2)
    found = [(one.name, one.min_version_level, one.max_version_level) for one in response.finalized_features]
    assert found == finalized
