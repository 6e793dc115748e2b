from __future__ import annotations

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.error_code import ErrorCode
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest

from . import RawClient


@pytest.mark.parametrize("version", range(4))
async def test_one_key(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    response = await client.request(FindCoordinatorRequest("group"), version)
    assert (response.error_code, response.node_id) == (ErrorCode.NONE, 0)
    assert f"{response.host}:{response.port}" == cluster.bootstrap_servers


@pytest.mark.parametrize("version", [4, 5, 6])
async def test_several_keys(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["a", "b"])
    response = await client.request(request, version)
    assert [(found.key, found.error_code, found.node_id) for found in response.coordinators] == [
        ("a", ErrorCode.NONE, 0),
        ("b", ErrorCode.NONE, 0),
    ]


async def test_another_kind_of_key(client: RawClient) -> None:
    response = await client.request(FindCoordinatorRequest(key_type=2, coordinator_keys=["a"]), 6)
    assert [found.error_code for found in response.coordinators] == [ErrorCode.INVALID_REQUEST]
