"""The user's serializers, in all their forms."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from aioproducer.errors import ConfigException, SerializationException
from aioproducer.tasks.coroutine_functions import is_async


class Raw(bytes):
    """A key or value that was read from a topic. It is sent unchanged, and no serializer is called for it."""


Serialize = Callable[[str, list[tuple[str, bytes | None]], Any], Any]
"""(topic, headers, data) → bytes or None; raises SerializationException for any error, and Unfinished."""


class Unfinished(Exception):
    """The key's or value's (``what``) serializer has returned an awaitable: the bytes come later."""

    def __init__(self, what: str, data: object, awaitable: Awaitable[object]) -> None:
        self.what = what
        self._data = data
        self._awaitable = awaitable

    async def finish(self) -> Any:
        """The bytes, or None; SerializationException for any error of the awaitable."""
        try:
            made = await self._awaitable
        except Exception as error:
            raise _failed(self.what, self._data, error) from error
        if _is_writable(made):
            return made
        _close(made)
        raise _no_bytes(made, self.what, self._data)

    def drop(self) -> None:
        """Closes the awaitable unawaited."""
        _close(self._awaitable)


def serializes_later(plugin: Any) -> bool:
    """Whether it is a coroutine function, or has one as ``serialize``."""
    return is_async(plugin.serialize if sees_headers(plugin) else plugin)


def sees_headers(plugin: Any) -> bool:
    """Whether it has Kafka's ``serialize(topic, headers, data)``; a plain callable gets only the data."""
    return hasattr(plugin, "serialize")


def serializing(plugin: Any, what: str) -> Serialize:
    """The key's or value's (``what``) serializer in one form; without one the data must be bytes already."""
    if plugin is None:
        return lambda topic, headers, data: data
    call = plugin.serialize if sees_headers(plugin) else plugin
    if not callable(call):
        raise _refused(plugin, what, "is neither callable nor has a method serialize")

    def with_headers(topic: str, headers: list[tuple[str, bytes | None]], data: Any) -> Any:
        if data.__class__ is Raw:
            return bytes(data)
        try:
            made = call(topic, headers, data)
        except Exception as error:
            raise _failed(what, data, error) from error
        return made if made.__class__ is bytes else _checked(made, what, data)

    def data_alone(topic: str, headers: list[tuple[str, bytes | None]], data: Any) -> Any:
        if data is None:
            return None
        if data.__class__ is Raw:
            return bytes(data)
        try:
            made = call(data)
        except Exception as error:
            raise _failed(what, data, error) from error
        return made if made.__class__ is bytes else _checked(made, what, data)

    return with_headers if sees_headers(plugin) else data_alone


def _checked(made: Any, what: str, data: Any) -> Any:
    if _is_writable(made):
        return made
    if inspect.isawaitable(made):
        raise Unfinished(what, data, made)
    raise _no_bytes(made, what, data)


def _is_writable(made: Any) -> bool:
    return made is None or isinstance(made, bytes | bytearray | memoryview)


def _close(made: object) -> None:
    """Closes a dropped coroutine; otherwise Python warns that it was never awaited."""
    if inspect.iscoroutine(made):
        made.close()


def _no_bytes(made: object, what: str, data: object) -> SerializationException:
    return SerializationException(
        f"the {what}_serializer made a {type(made).__name__} of a {type(data).__name__}; it must make bytes or None"
    )


def _failed(what: str, data: Any, error: Exception) -> SerializationException:
    return SerializationException(
        f"the {what}_serializer cannot serialize a {type(data).__name__}: {type(error).__name__}: {error}"
    )


def _refused(plugin: object, what: str, why: str) -> ConfigException:
    name = f"{what}.serializer"
    return ConfigException(f"config {name!r} is {plugin!r:.100}, which {why}", name=name, value=plugin)
