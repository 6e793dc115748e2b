"""Clients that do not read their responses, and how much memory these take."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from aioproducer.broker.network.channel import unread_responses
from aioproducer.broker.network.channel.unread_responses import UnreadResponses
from tests.broker.raw_clients.raw_client import RawClient
from tests.broker.raw_clients.served import Served, exchange

METADATA = struct.pack(">ihhih", 10, 3, 2, 1, -1)


class Channel:
    def __init__(self) -> None:
        self.reason = ""

    def close(self, reason: str) -> None:
        self.reason = reason


def test_those_that_have_waited_for_longest_are_closed() -> None:
    unread, channels = UnreadResponses(100), [Channel() for _ in range(6)]

    def add(channel: Any, size: int) -> list[bool]:
        unread.add(channel, size)
        return [bool(one.reason) for one in channels]

    first, second, third, fourth, fifth, last = channels
    assert not any(add(first, 40) + add(second, 30) + add(third, 30))
    unread.remove(second)  # type: ignore[arg-type]
    assert add(fourth, 40) == [True, False, False, False, False, False]
    assert "110 bytes of responses" in first.reason
    # A response of any size may be sent, but not beside others.
    assert add(fifth, 1000) == [True, False, True, True, False, False]
    unread.remove(first)  # type: ignore[arg-type]
    unread.remove(fifth)  # type: ignore[arg-type]
    assert add(last, 100) == [True, False, True, True, False, False]
    assert add(second, 0) == [True, False, True, True, False, False]


async def test_unread_responses_do_not_use_up_the_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of five clients that do not read 10 MB each, only the last two keep their connections; others are served."""
    monkeypatch.setattr(unread_responses.UnreadResponses.__init__, "__defaults__", (25_000_000,))
    async with Served() as served:
        unread = served.server._unread
        clients: list[RawClient] = []
        for _ in range(5):
            client = await served.connect()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await client.send_bytes(METADATA)
            (await served.handler.next()).respond_bytes([bytes(10_000_000)])
            clients.append(client)
            await exchange(served, await served.connect(), METADATA)
        assert unread._total == 20_000_000
        for client in clients:
            client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        whole = []
        for client in clients:
            data = await client.reader.read(10_000_000)
            while chunk := await client.reader.read(10_000_000 - len(data)):
                data += chunk
            whole.append(len(data) == 10_000_000)
        assert whole == [False, False, False, True, True]
        while unread._total:
            await exchange(served, await served.connect(), METADATA)
        await exchange(served, clients[-1], METADATA)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert all("it does not read its response" in line for line in lines)
