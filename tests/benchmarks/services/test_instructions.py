"""The table of instructions, and a client counted once."""

from __future__ import annotations

import pytest

from aioproducer.broker import EmbeddedCluster
from benchmarks.services import callgrind, instructions
from benchmarks.services.instructions import Count, Instructions
from tests.support.leaks import no_leaks as no_leaks


def test_a_clients_own_part_is_what_it_takes_more_than_nothing() -> None:
    table = list(
        Instructions(
            [
                Count(1, "aioproducer", 100, 86_300_000),
                Count(1, "nothing", 100, 83_000_000),
                Count(10, "aioproducer", 100, 99_000_000),
            ]
        ).markdown()
    )
    assert table[-3:] == [
        "| 1 | aioproducer | 863 | 33 |",
        "| 1 | nothing | 830 |  |",
        "| 10 | aioproducer | 990 |  |",
    ]


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.skipif(callgrind.missing() is not None, reason="valgrind is not installed")
async def test_a_client_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("CLIENTS_AT_A_TIME", 3), ("WARM_UP", 0.5), ("COUNTED", 0.5)):
        monkeypatch.setattr(instructions, name, value)
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", 3)
        done = await instructions.count(1, "nothing", cluster.bootstrap_servers)
    assert done.requests > 0
    assert 200_000 < done.per_request < 20_000_000
