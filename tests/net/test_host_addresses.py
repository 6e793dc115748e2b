from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.net.addresses import Address
from aioproducer.net.host_addresses import canonical, in_turn, resolve

ROUND_ROBIN = Address("kafka.example", 9092)


def resolver(**hosts: list[str]) -> Any:
    """A ``getaddrinfo`` that knows these hosts (dots are underscores in their names)."""

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        try:
            found = hosts[host.replace(".", "_")]
        except KeyError:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    return getaddrinfo


async def test_every_address_once_in_the_order_the_system_gives_them(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "getaddrinfo", resolver(kafka_example=["10.0.0.2", "10.0.0.1", "10.0.0.2"]))
    assert await resolve(ROUND_ROBIN) == ["10.0.0.2", "10.0.0.1"]


async def test_a_name_without_any_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver(kafka_example=[]))
    with pytest.raises(OSError, match=r"kafka\.example has no address"):
        await resolve(ROUND_ROBIN)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_an_address_needs_no_resolver(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver())
    assert await resolve(Address(host, 1)) == [host]


@given(found=st.lists(st.sampled_from("abcdef"), min_size=1, unique=True), last=st.sampled_from("abcdefg"))
def test_the_one_lost_last_comes_after_all_others(found: list[str], last: str) -> None:
    order = in_turn(found, last)
    assert sorted(order) == sorted(found)
    if last in found:
        assert order[-1] == last
    else:
        assert order == found


async def test_addresses_are_tried_in_their_order_at_first() -> None:
    assert in_turn(["a", "b"], None) == ["a", "b"]


async def test_a_canonical_name_for_every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"10.0.0.1": "b1.example", "10.0.0.2": "b2.example", "10.0.0.3": "b2.example"}

    async def getnameinfo(sockaddr: tuple[str, int], flags: int) -> tuple[str, str]:
        assert flags == socket.NI_NUMERICSERV
        return names[sockaddr[0]], str(sockaddr[1])

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "getaddrinfo", resolver(kafka_example=list(names)))
    monkeypatch.setattr(loop, "getnameinfo", getnameinfo)
    assert await canonical(ROUND_ROBIN) == [Address("b1.example", 9092), Address("b2.example", 9092)]


async def test_a_host_without_a_canonical_name_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver())
    assert await canonical(ROUND_ROBIN) == [ROUND_ROBIN]
    assert "kafka.example:9092 has no canonical name" in caplog.text
