"""A record's key and value, while serializers that must be awaited make bytes of them."""

from __future__ import annotations

import sys
from contextvars import copy_context
from typing import Any

from aioproducer.producer.hooks.serialization import Serialize, Unfinished


class Serialization:
    """Made by ``send``, and started when it is the record's turn.

    ``headers`` are the record's own; serializers may append to them. ``begun`` is the awaitable that a serializer
    returned in ``send``; if it is the value's, ``key_bytes`` is set already.
    """

    def __init__(
        self,
        serialize_key: Serialize,
        serialize_value: Serialize,
        topic: str,
        value: Any,
        key: Any,
        headers: list[tuple[str, bytes | None]],
        begun: Unfinished | None = None,
        key_bytes: Any = None,
    ) -> None:
        self._serialize_key = serialize_key
        self._serialize_value = serialize_value
        self.topic = topic
        self.value = value
        self.key = key
        self.headers = headers
        self.context = copy_context()
        """The context of ``send``: serializers see the context variables of their caller."""
        self.what = "key" if begun is None else begun.what
        """The serializer at work, or next: the key's or the value's."""
        self.began_at: float | None = None
        """When its turn came."""
        self.key_bytes = key_bytes
        self.value_bytes: Any = None
        self._begun = begun

    @property
    def size(self) -> int:
        """Bytes of the key and value objects, by ``sys.getsizeof``."""
        return sys.getsizeof(self.key) + sys.getsizeof(self.value)

    async def finish(self) -> None:
        """Makes ``key_bytes`` and ``value_bytes``, which may be None; SerializationException if that fails."""
        if self.what == "key":
            self.key_bytes = await self._made(self._serialize_key, self.key)
            self.what = "value"
        self.value_bytes = await self._made(self._serialize_value, self.value)

    async def _made(self, serialize: Serialize, data: Any) -> Any:
        unfinished, self._begun = self._begun, None
        if unfinished is None:
            try:
                return serialize(self.topic, self.headers, data)
            except Unfinished as raised:
                unfinished = raised
        return await unfinished.finish()

    def drop(self) -> None:
        """Closes it before it starts."""
        if self._begun is not None:
            self._begun.drop()


class Later(Exception):
    """Serializers must be awaited, or wait for those of other records."""

    def __init__(self, serialization: Serialization) -> None:
        self.serialization = serialization
