"""``python -m benchmarks outbox``: a turn of each way, small, with an embedded broker."""

from __future__ import annotations

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.postgresql import Postgresql
from benchmarks.outbox import outbox
from benchmarks.outbox.relaying import RELAY, WAYS


@pytest.mark.parametrize("way", WAYS)
async def test_a_turn(postgresql: Postgresql, way: str) -> None:
    options = outbox.parse_arguments(
        ["--rows", "300", "--most-rows", "100", "--rate", "50", "--seconds", "1", "--loop", "asyncio"]
    )
    async with EmbeddedCluster() as cluster:
        done = await outbox.turn(way, 1, postgresql, cluster.bootstrap_servers, options)
    assert (done.way, done.round) == (way, 1)
    assert done.rows_per_s > 0
    assert done.delayed + done.lost == 50
    assert way != RELAY or done.lost == 0
