from __future__ import annotations

import pytest

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest

from . import Connect, RawClient


@pytest.mark.parametrize("version", range(6))
async def test_every_version_gives_a_new_id(client: RawClient, version: int) -> None:
    ids = set()
    for _ in range(3):
        response = await client.request(InitProducerIdRequest(None), version)
        assert (response.error_code, response.producer_epoch) == (ErrorCode.NONE, 0)
        ids.add(response.producer_id)
    assert len(ids) == 3


@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
async def test_nodes_do_not_give_out_the_same(connect: Connect) -> None:
    ids = {(await (await connect(node)).request(InitProducerIdRequest(None), 5)).producer_id for node in (0, 1, 0)}
    assert len(ids) == 3
