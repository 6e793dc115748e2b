"""Requests of every API and version that the broker has, made as their messages are declared."""

from __future__ import annotations

import math
from random import Random
from typing import Any
from uuid import UUID

from aioproducer.broker.kafka_apis import APIS as BROKER_APIS
from aioproducer.errors import SchemaException, UnsupportedVersionException
from aioproducer.protocol import schema
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.framing import encode_request
from aioproducer.protocol.schema import Array, Fixed, Struct, Type

from .learned_values import LearnedValues
from .mutations import mutated
from .random_batches import RandomBatches

TOPICS = ("first", "second", "third")
"""Topics that are often named."""

_TEXTS = {
    "topic": (*TOPICS, "a_b", "a.b", "", ".", "not a name", "n" * 250, "__consumer_offsets"),
    "group": ("group", "other", ""),
    "transactional": ("paid", "other", ""),
    "member": ("", "member"),
    "protocol": ("consumer", "range", ""),
    "mechanism": ("PLAIN", "SCRAM-SHA-256", "NONE"),
    "other": (
        *("", "0", "1", "-1", "a" * 300, "two\nlines", "é\u2028", "client-id", "user", "alice", "User:alice", "*"),
        *("cleanup.policy", "compact", "delete", "retention.ms", "segment.bytes", "max.message.bytes"),
        *("compression.type", "gzip", "lz4", "message.timestamp.type", "LogAppendTime", "min.insync.replicas"),
        *("consumer.session.timeout.ms", "interval.ms", "request_percentage", "consumer_byte_rate"),
    ),
}
"""By a part of a field's name. Configs that close the broker's own ports are not among them."""

_BYTES = (b"", b"\0", b"\0alice\0secret", b"n,,n=alice,r=nonce", b"\0\0\0\0\0\x01\0\x01t\0\0\0\0")
_LIMITS = {"b": 2**7, "h": 2**15, "i": 2**31, "q": 2**63, "H": 2**16, "I": 2**32}
_DOUBLES = (0.0, 1.0, -1.0, 1e308, math.nan, math.inf, 1e-300)
_MOST_PARTITIONS = 200
"""So that random topics do not use up the partitions that a cluster may have."""


class RandomRequests:
    """Makes them as frames, without the size."""

    def __init__(self, random: Random, learned: LearnedValues, batches: RandomBatches) -> None:
        self._random = random
        self._learned = learned
        self._batches = batches
        self._keys = [ApiKey(key) for key in BROKER_APIS] + [ApiKey.API_VERSIONS]

    def frame(self) -> bytes:
        """One of any API."""
        random = self._random
        while True:
            key = random.choice(self._keys)
            cls = APIS[key].request
            version = random.randint(cls.VALID_VERSIONS.low, cls.VALID_VERSIONS.high)
            request: Any = self._struct(cls, version, 0)
            client = random.choice(("client", "other", "", "two\nlines", None))
            try:
                parts = encode_request(
                    request, version=version, correlation_id=random.getrandbits(31), client_id=client
                )
                frame = b"".join(parts)[4:]
            except (SchemaException, UnsupportedVersionException):
                continue  # a combination that cannot be written
            return mutated(random, frame) if random.random() < 0.15 else frame

    def _struct(self, cls: type[Struct], version: int, depth: int) -> Struct:
        made = cls()
        for wire in cls.FIELDS:
            if version in wire.versions:
                is_null = version in wire.nullable and self._random.random() < 0.15
                setattr(made, wire.name, None if is_null else self._value(wire.type, wire.name, version, depth))
        return made

    def _value(self, type_: Type, name: str, version: int, depth: int) -> Any:
        random = self._random
        if isinstance(type_, Array):
            size = random.choice((0, 1, 1, 1, 2, 3) if depth < 3 else (0, 1))
            return [self._value(type_.element, name, version, depth + 1) for _ in range(size)]
        if isinstance(type_, type):
            return self._struct(type_, version, depth + 1)
        if type_ is schema.RECORDS:
            return self._batches.batch()
        if random.random() < 0.5:
            learned = self._learned.pick(name, name.removesuffix("s"), name.rpartition("_")[2])
            if learned is not None and _fits(type_, learned):
                return learned
        if type_ is schema.STRING:
            kind = next((kind for kind in _TEXTS if kind in name or (kind == "topic" and name == "name")), "other")
            return random.choice(_TEXTS[kind if random.random() < 0.9 else "other"])
        if type_ is schema.BYTES:
            return random.choice((*_BYTES, random.randbytes(random.randrange(50))))
        if type_ is schema.UUID:
            return random.choice((UUID(int=0), UUID(int=1), UUID(int=random.getrandbits(128))))
        if type_ is schema.FLOAT64:
            return random.choice(_DOUBLES)
        assert isinstance(type_, Fixed)
        return random.random() < 0.5 if type_ is schema.BOOL else self._integer(type_.code, name)

    def _integer(self, code: str, name: str) -> int:
        random, limit = self._random, _LIMITS[code]
        low, high = (0, limit - 1) if code.isupper() else (-limit, limit - 1)
        match random.randrange(10):
            case 0 | 1 | 2 | 3 | 4:
                number = random.choice((0, 0, 1, -1, 2, 3, 5))
            case 5 | 6:
                number = random.choice((low, low + 1, high - 1, high))
            case 7 | 8:
                number = random.randrange(1000)
            case _:
                number = random.randint(low, high)
        if (name == "count" or "partitions" in name) and _MOST_PARTITIONS < number < 10_001:
            number = _MOST_PARTITIONS
        return max(low, min(number, high))


def _fits(type_: Type, value: object) -> bool:
    if type_ is schema.STRING:
        return isinstance(value, str)
    if type_ is schema.BYTES:
        return isinstance(value, bytes | memoryview)
    if type_ is schema.UUID:
        return isinstance(value, UUID)
    if type_ is schema.BOOL:
        return isinstance(value, bool)
    if isinstance(type_, Fixed) and type_.code in _LIMITS:
        limit = _LIMITS[type_.code]
        return type(value) is int and (0 if type_.code.isupper() else -limit) <= value < limit
    return False
