from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

from aioproducer.errors import ConfigException, IllegalStateException, SerializationException
from aioproducer.producer.hooks.serialization import Unfinished, sees_headers, serializes_later, serializing


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
def test_an_error_of_a_serializer_is_a_serialization_exception(cause: Exception) -> None:
    def serializer(data: Any) -> bytes:
        raise cause

    class Same:
        def serialize(self, topic: str, headers: Any, data: Any) -> bytes:
            raise cause

    for plugin in (serializer, Same()):
        with pytest.raises(SerializationException, match="the key_serializer cannot serialize a int: ") as raised:
            serializing(plugin, "key")("t", [], 5)
        assert raised.value.__cause__ is cause


def test_a_base_exception_of_a_serializer_goes_through() -> None:
    def serializer(data: Any) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serializing(serializer, "key")("t", [], 5)


def test_a_serializer_must_make_bytes() -> None:
    with pytest.raises(SerializationException, match=r"made a str of a dict; it must make bytes or None$"):
        serializing(lambda data: "text", "value")("t", [], {})


async def asynchronous(data: Any) -> bytes:
    return bytes(data)


class Asynchronous:
    async def serialize(self, topic: str, headers: Any, data: Any) -> bytes:
        return b""


class Called:
    async def __call__(self, data: Any) -> bytes:
        return b""


@pytest.mark.parametrize("plugin", [asynchronous, functools.partial(asynchronous), Asynchronous(), Called()])
def test_a_coroutine_function_serializes_later(plugin: Any) -> None:
    assert serializes_later(plugin)


@pytest.mark.parametrize("plugin", [None, str.encode, WithHeaders(), lambda data: asynchronous(data)])
def test_nothing_else_is_known_to(plugin: Any) -> None:
    assert not serializes_later(plugin)


async def raising(data: Any) -> bytes:
    raise ValueError("not so")


async def twice(data: Any) -> Any:
    return asynchronous(data)


async def text(data: Any) -> Any:
    return "text"


def unfinished(serializer: Any, data: Any = b"5") -> Unfinished:
    with pytest.raises(Unfinished) as raised:
        serializing(serializer, "value")("t", [], data)
    return raised.value


async def test_a_serializer_may_return_an_awaitable() -> None:
    later = unfinished(asynchronous)
    assert later.what == "value"
    assert await later.finish() == b"5"

    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    future.set_result(b"bytes")
    assert await unfinished(lambda data: future).finish() == b"bytes"


async def test_an_asynchronous_serializer_may_make_none() -> None:
    async def nothing(data: Any) -> None:
        return None

    assert await unfinished(nothing).finish() is None


async def test_an_error_of_an_asynchronous_serializer_is_a_serialization_exception() -> None:
    with pytest.raises(SerializationException, match="cannot serialize a bytes: ValueError: not so") as raised:
        await unfinished(raising).finish()
    assert isinstance(raised.value.__cause__, ValueError)


@pytest.mark.parametrize(("serializer", "made"), [(text, "str"), (twice, "coroutine")])
async def test_an_asynchronous_serializer_must_make_bytes(serializer: Any, made: str) -> None:
    with pytest.raises(SerializationException, match=f"made a {made} of a bytes; it must make bytes or None"):
        await unfinished(serializer).finish()


def test_an_unawaited_coroutine_is_closed() -> None:
    """Otherwise Python would warn that a coroutine was never awaited."""
    unfinished(asynchronous).drop()


async def test_a_future_of_a_serializer_is_not_cancelled_when_it_is_dropped() -> None:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    unfinished(lambda data: future).drop()
    assert not future.cancelled()


def test_a_serializer_that_returns_a_generator_makes_no_bytes() -> None:
    async def stream(data: Any) -> Any:
        yield data

    with pytest.raises(SerializationException, match="made a async_generator of a int"):
        serializing(stream, "value")("t", [], 5)


def test_an_object_that_is_none_is_refused() -> None:
    class NotCallable:
        serialize = "no method"

    with pytest.raises(ConfigException, match="neither callable nor has a method serialize"):
        serializing(NotCallable(), "key")
