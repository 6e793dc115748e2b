from __future__ import annotations

import functools
from typing import Any

import pytest

from aioproducer.errors import ConfigException, IllegalStateException, SerializationException
from aioproducer.producer.serializing import sees_headers, serializing


class WithHeaders:
    def serialize(self, topic: str, headers: list[tuple[str, bytes | None]], data: Any) -> bytes | None:
        headers.append(("type", type(data).__name__.encode()))
        return None if data is None else f"{topic}:{data}".encode()


def test_without_one_the_data_stays_what_it_is() -> None:
    data = object()
    assert serializing(None, "key")("t", [], data) is data


def test_a_callable_is_given_the_data_alone_and_never_none() -> None:
    serialize = serializing(str.encode, "key")
    assert not sees_headers(str.encode)
    assert serialize("t", [], "text") == b"text"
    assert serialize("t", [], None) is None


def test_an_object_is_given_topic_headers_and_none_too() -> None:
    serializer = WithHeaders()
    serialize = serializing(serializer, "value")
    assert sees_headers(serializer)
    headers: list[tuple[str, bytes | None]] = [("h", None)]
    assert serialize("t", headers, 5) == b"t:5"
    assert serialize("t", headers, None) is None
    assert headers == [("h", None), ("type", b"int"), ("type", b"NoneType")]


@pytest.mark.parametrize("made", [None, b"bytes", bytearray(b"bytes"), memoryview(b"bytes")])
def test_it_may_make_whatever_can_be_written(made: Any) -> None:
    assert serializing(lambda data: made, "key")("t", [], 5) is made


@pytest.mark.parametrize("cause", [ValueError("not so"), IllegalStateException("flush() was called"), RecursionError()])
def test_whatever_it_raises_is_a_serialization_exception(cause: Exception) -> None:
    def serializer(data: Any) -> bytes:
        raise cause

    class Same:
        def serialize(self, topic: str, headers: Any, data: Any) -> bytes:
            raise cause

    for plugin in (serializer, Same()):
        with pytest.raises(SerializationException, match="the key_serializer cannot serialize a int: ") as raised:
            serializing(plugin, "key")("t", [], 5)
        assert raised.value.__cause__ is cause


def test_what_is_no_exception_goes_through() -> None:
    def serializer(data: Any) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serializing(serializer, "key")("t", [], 5)


def test_what_it_makes_must_be_bytes() -> None:
    with pytest.raises(SerializationException, match=r"made a str of a dict; it must make bytes or None$"):
        serializing(lambda data: "text", "value")("t", [], {})


async def asynchronous(data: Any) -> bytes:
    return bytes(data)


class Asynchronous:
    async def serialize(self, topic: str, headers: Any, data: Any) -> bytes:
        return b""


@pytest.mark.parametrize("plugin", [asynchronous, functools.partial(asynchronous), Asynchronous()])
def test_an_asynchronous_one_is_refused_at_once(plugin: Any) -> None:
    with pytest.raises(ConfigException, match=r"'value\.serializer' is .*asynchronous: send\(\) calls serializers"):
        serializing(plugin, "value")


def test_one_that_turns_out_to_be_asynchronous_is_refused_when_used() -> None:
    """And leaves no coroutine behind that was never awaited: that would be a warning."""
    with pytest.raises(SerializationException, match=r"made a coroutine of a int; .* it is asynchronous"):
        serializing(lambda data: asynchronous(data), "value")("t", [], 5)


def test_an_object_that_is_none_is_refused() -> None:
    class NotCallable:
        serialize = "no method"

    with pytest.raises(ConfigException, match="neither callable nor has a method serialize"):
        serializing(NotCallable(), "key")
