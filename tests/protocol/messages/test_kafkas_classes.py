"""Kafka's generated classes read what we write, find the same values in it, and write the same bytes for them."""

from __future__ import annotations

import base64
import json
import random
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from aioproducer.protocol import schema
from aioproducer.protocol.codec import encode
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.messages.produce import ProduceRequest, ProduceResponse
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.protocol.schema import Array, Fixed, Message, Struct, Type, Wire
from tests.support.java_source import java_command

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(660)]

Judged = dict[tuple[type[Message], int], list[tuple[Message, bytes, str, str]]]
"""By class and version: a message, what we write for it, what Kafka writes for it, and the values that Kafka read."""

RANDOM_MESSAGES = 10
"""Of each version, beside the defaults and one with something in every field."""


def random_value(rng: random.Random, type_: Type, version: int, flexible: bool) -> Any:
    if isinstance(type_, Array):
        return [random_value(rng, type_.element, version, flexible) for _ in range(rng.choice((0, 1, 2, 5)))]
    if isinstance(type_, type):
        return random_struct(rng, type_, version, flexible)
    if type_ is schema.BOOL:
        return rng.random() < 0.5
    if type_ is schema.UUID:
        return rng.choice((ZERO_UUID, UUID(int=rng.getrandbits(128))))
    if type_ is schema.FLOAT64:
        return rng.choice((0.0, 1.0, -0.5, 1e300, rng.random()))
    if isinstance(type_, Fixed):
        bits = 8 * type_.size - 1  # all integers in the messages are signed
        return rng.choice((0, 1, -1, 5, 2**bits - 1, -(2**bits), rng.randrange(-(2**bits), 2**bits)))
    size = rng.choice((0, 1, 20, 126, 127, 128, 5000))
    return "".join(rng.choices("aé€🔑", k=size)) if type_ is schema.STRING else rng.randbytes(size)


def random_struct(rng: random.Random, cls: type[Struct], version: int, flexible: bool) -> Any:
    fields = {
        wire.name: None
        if version in wire.nullable and rng.random() < 0.3
        else random_value(rng, wire.type, version, flexible)
        for wire in cls.FIELDS
        if version in wire.versions
    }
    unknown = {rng.choice((40, 127, 128, 2**31 - 2)): rng.randbytes(3)} if flexible and rng.random() < 0.3 else {}
    return cls(**fields, unknown_tagged_fields=unknown)


def as_json(struct: Struct, version: int) -> dict[str, Any]:
    """What Kafka's JSON converters make of it: the fields of the version, tagged ones when they are not the default."""
    default = type(struct)()
    return {
        json_name(struct, wire, value): json_value(value, wire.type, version)
        for wire in struct.FIELDS
        if version in wire.versions
        for value in [getattr(struct, wire.name)]
        if version not in wire.tagged or value != getattr(default, wire.name)
    }


def json_name(struct: Struct, wire: Wire, value: Any) -> str:
    if isinstance(struct, RequestHeader) and wire.name.startswith("api_"):
        return "requestApi" + wire.name[4:].title()
    if wire.type is schema.RECORDS and value is not None:
        return "recordsSizeInBytes"
    first, *words = wire.name.split("_")
    return first + "".join(word.title() for word in words)


def json_value(value: Any, type_: Type, version: int) -> Any:
    if value is None:
        return None
    if isinstance(type_, Array):
        return [json_value(element, type_.element, version) for element in value]
    if isinstance(type_, type):
        return as_json(value, version)
    if type_ is schema.UUID:
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if type_ is schema.BYTES:
        return base64.b64encode(value).decode()
    return len(value) if type_ is schema.RECORDS else value


def cases(
    all_messages: list[type[Message]], full_message: Callable[[type[Message], int], Any]
) -> Iterator[tuple[Message, int]]:
    rng = random.Random(14)
    for cls in all_messages:
        newest = cls.VALID_VERSIONS.high - (cls in (ProduceRequest, ProduceResponse))  # 14 is KIP-1269's
        for version in range(cls.VALID_VERSIONS.low, newest + 1):
            yield cls(), version
            yield full_message(cls, version), version
            for _ in range(RANDOM_MESSAGES):
                yield random_struct(rng, cls, version, version in cls.FLEXIBLE_VERSIONS), version


@pytest.fixture(scope="module")
def judged(
    tmp_path_factory: pytest.TempPathFactory,
    all_messages: list[type[Message]],
    full_message: Callable[[type[Message], int], Any],
) -> Judged:
    """One run of Java judges all messages in all versions."""
    ours = [
        (message, version, b"".join(encode(message, version))) for message, version in cases(all_messages, full_message)
    ]
    folder = tmp_path_factory.mktemp("messages")
    asked, answered = folder / "ours", folder / "kafkas"
    asked.write_text("".join(f"{type(message).__name__} {version} {data.hex()}\n" for message, version, data in ours))
    source = Path(__file__).with_name("KafkaMessages.java")
    run = subprocess.run(
        java_command(source, str(asked), str(answered), heap="512m"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: Judged = defaultdict(list)
    for (message, version, data), line in zip(ours, answered.read_text().splitlines(), strict=True):
        written, _, values = line.partition(" ")
        found[type(message), version].append((message, data, written, values))
    return found


def test_kafka_reads_and_writes_the_same(judged: Judged, cls: type[Message], version: int) -> None:
    if cls in (ProduceRequest, ProduceResponse) and version == cls.VALID_VERSIONS.high:
        pytest.skip("version 14 is KIP-1269's: no release of Kafka has it")
    assert len(judged[cls, version]) == RANDOM_MESSAGES + 2
    for message, data, written, values in judged[cls, version]:
        assert written == data.hex(), message
        assert json.loads(values) == as_json(message, version), message
