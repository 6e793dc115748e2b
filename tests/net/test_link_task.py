"""The end of a link by itself; ``test_broker_link.py`` has links and their tasks against brokers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer.errors import NetworkException
from aioproducer.net.addresses import Address
from aioproducer.net.broker_link import BrokerLink, LinkState
from aioproducer.net.link_task import close

from .connection.test_connection import Scene, Transport


class Stuck(Transport):
    def close(self) -> None:
        pass  # bytes are left that the other side does not read


def connected(scene: Scene) -> BrokerLink:
    link = BrokerLink(0, Address("broker", 1), 5, on_change=lambda link: None)
    link.connection = scene.connection
    return link


async def test_written_requests_leave_before_the_connection_closes() -> None:
    scene = Scene()
    link = connected(scene)
    results: list[Any] = []
    scene.send(results)
    await close(link, 0.005)
    assert (link.state, scene.transport.closed) == (LinkState.CLOSED, "close")
    assert isinstance(results[0][1], NetworkException)
    await close(link, 10)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_close_that_takes_too_long_or_is_cancelled_aborts_the_connection(cancelled: bool) -> None:
    scene = Scene(connected=False)
    scene.transport = Stuck(scene.connection)
    scene.connect()
    closing = asyncio.ensure_future(close(connected(scene), 100 if cancelled else 0.005))
    await asyncio.sleep(0)
    if cancelled:
        closing.cancel()
    await asyncio.wait([closing])
    assert closing.cancelled() == cancelled
    assert scene.transport.closed == "abort"


async def test_without_a_connection_there_is_nothing_to_wait_for() -> None:
    link = BrokerLink(0, Address("broker", 1), 5, on_change=lambda link: None)
    await close(link, 10)
    assert link.state is LinkState.CLOSED
