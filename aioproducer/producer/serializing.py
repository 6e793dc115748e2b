"""The user's serializers on a record's way, whatever form they were given in."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from aioproducer.errors import ConfigException, SerializationException
from aioproducer.plugins import is_async

Serialize = Callable[[str, list[tuple[str, bytes | None]], Any], Any]
"""(topic, headers, data) → bytes or None; SerializationException whatever the serializer raises."""


def sees_headers(plugin: Any) -> bool:
    """Whether it has Kafka's ``serialize(topic, headers, data)``; a plain callable is given the data alone."""
    return hasattr(plugin, "serialize")


def serializing(plugin: Any, what: str) -> Serialize:
    """The key's or value's (``what``) serializer in one form; without one the data has to be bytes already."""
    if plugin is None:
        return lambda topic, headers, data: data
    call = plugin.serialize if sees_headers(plugin) else plugin
    if not callable(call):
        raise _refused(plugin, what, "is neither callable nor has a method serialize")
    if is_async(call):
        raise _refused(plugin, what, "is asynchronous: send() calls serializers, it does not await them")

    def with_headers(topic: str, headers: list[tuple[str, bytes | None]], data: Any) -> Any:
        try:
            made = call(topic, headers, data)
        except Exception as error:
            raise _failed(what, data, error) from error
        return made if made.__class__ is bytes else _checked(made, what, data)

    def data_alone(topic: str, headers: list[tuple[str, bytes | None]], data: Any) -> Any:
        if data is None:
            return None
        try:
            made = call(data)
        except Exception as error:
            raise _failed(what, data, error) from error
        return made if made.__class__ is bytes else _checked(made, what, data)

    return with_headers if sees_headers(plugin) else data_alone


def _checked(made: Any, what: str, data: Any) -> Any:
    if made is None or isinstance(made, bytes | bytearray | memoryview):
        return made
    if inspect.iscoroutine(made):
        made.close()
    raise SerializationException(
        f"the {what}_serializer made a {type(made).__name__} of a {type(data).__name__}; it must make bytes or None"
        + (": it is asynchronous, but send() does not await it" if inspect.isawaitable(made) else "")
    )


def _failed(what: str, data: Any, error: Exception) -> SerializationException:
    return SerializationException(
        f"the {what}_serializer cannot serialize a {type(data).__name__}: {type(error).__name__}: {error}"
    )


def _refused(plugin: object, what: str, why: str) -> ConfigException:
    name = f"{what}.serializer"
    return ConfigException(f"config {name!r} is {plugin!r:.100}, which {why}", name=name, value=plugin)
