"""The report on connections, and what storms the broker."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.broker.connections import Report, Storm, begin_storm, end_of_storm
from benchmarks.harness.environment import Environment

QUIET = {"p50": 0.5, "p99": 1.0}


def report(idle_ms: float, storm_ms: float, storm: Storm) -> Report:
    environment = Environment.now(loop="asyncio", broker="embedded")
    return Report(environment, 4, [QUIET], [{**QUIET, "p99": idle_ms}], [{**QUIET, "p99": storm_ms}], [1536], [storm])


@pytest.mark.parametrize(
    ("idle_ms", "storm_ms", "storm", "problems"),
    [
        (1.5, 1.5, Storm(4000, 3900), []),
        (1.6, 1.0, Storm(4000, 3900), ["p99 beside idle connections ÷ quiet ≤ 1.5: it is 1.60"]),
        (1.0, 2.5, Storm(4000, 3900), ["p99 beside a storm ÷ quiet ≤ 1.5: it is 2.50"]),
        (1.0, 1.0, Storm(400, 390), ["that was no storm: 400 connections in 4 s"]),
        (1.0, 1.0, Storm(4000, 10), ["3990 connections of the storm were not closed, with a quota of 10 a second"]),
    ],
)
def test_the_claims(idle_ms: float, storm_ms: float, storm: Storm, problems: list[str]) -> None:
    made = report(idle_ms, storm_ms, storm)
    assert made.problems() == problems
    assert all(f"- {problem}" in made.markdown() for problem in problems)


async def test_a_storm() -> None:
    arrived = 0

    def arrive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived
        arrived += 1
        writer.close()

    async with await asyncio.start_server(arrive, "127.0.0.1") as server:
        storm = await end_of_storm(await begin_storm(server.sockets[0].getsockname()[1], 0.1))
    assert 0 < storm.closed <= storm.made <= arrived + 100
