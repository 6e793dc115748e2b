from __future__ import annotations

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest

from . import Connect, RawClient


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


@pytest.mark.parametrize("cluster", [{"nodes": 3}], indirect=True)
async def test_coordinators_are_spread_and_move_when_their_node_stops(
    cluster: EmbeddedCluster, connect: Connect
) -> None:
    client = await connect(1)
    keys = [f"group {number}" for number in range(20)]
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=keys)
    before = [found.node_id for found in (await client.request(request, 6)).coordinators]
    assert set(before) == {0, 1, 2}
    await cluster.stop_node(0)
    after = [found.node_id for found in (await client.request(request, 6)).coordinators]
    assert [new for old, new in zip(before, after, strict=True) if old != 0] == [old for old in before if old != 0]
    assert 0 not in after
