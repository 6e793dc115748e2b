"""Kafka's own serializers write the same values: one run of Java says what."""

from __future__ import annotations

import math
import random
import struct
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aioproducer import serializers
from aioproducer.configs.plugins import JAVA_CLASSES
from tests.support.java_source import java_command

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]


@dataclass
class Case:
    """A value for one of Kafka's serializers (its encoding, or its inner serializer), and its argument for Java."""

    kafka: str
    value: Any
    argument: str
    option: str = "-"

    def ours(self) -> bytes | None:
        if self.kafka == "ListSerializer":
            return serializers.ListSerializer(ours(self.option)())(self.value)
        made = ours(self.kafka)
        return (made() if self.option == "-" else made(self.option))(self.value)  # type: ignore[no-any-return]


def ours(kafka: str) -> Any:
    """The class that stands for Kafka's."""
    path = JAVA_CLASSES["org.apache.kafka.common.serialization." + kafka]
    return getattr(serializers, path.rpartition(".")[2])


def numbers(bits: int, random: random.Random) -> list[int]:
    edges = [0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    return edges + [random.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1)) for _ in range(50)]


def reals(bits: int, random: random.Random) -> list[float]:
    layout = {32: ">f", 64: ">d"}[bits]
    edges = [0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, 5e-324, 1e-45, 3.4028234663852886e38, 0.1, 16777217.0]
    drawn = [struct.unpack(layout, random.randbytes(bits // 8))[0] for _ in range(50)]
    return edges + [one for one in drawn if not math.isnan(one)]


def java(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).replace("inf", "Infinity")
    if isinstance(value, str):
        return value.encode().hex()
    return value.hex() if isinstance(value, bytes) else str(value)


def cases() -> list[Case]:
    chance = random.Random(4)
    uuids = [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), *(uuid.UUID(int=chance.getrandbits(128)) for _ in range(9))]
    texts = ["", "a", "žluťoučký kůň", "🐎\n\x00", "日本語" * 100]
    blobs = [b"", b"\x00", bytes(range(256))]
    values: dict[str, list[Any]] = {
        "ShortSerializer": numbers(16, chance),
        "IntegerSerializer": numbers(32, chance),
        "LongSerializer": numbers(64, chance),
        "FloatSerializer": reals(32, chance),
        "DoubleSerializer": reals(64, chance),
        "BooleanSerializer": [True, False],
        "UUIDSerializer": uuids,
        "StringSerializer": texts,
        "ByteArraySerializer": blobs,
        "BytesSerializer": blobs,
        "ByteBufferSerializer": blobs,
    }
    found = [Case(name, value, java(value)) for name, all_values in values.items() for value in [*all_values, None]]
    found.append(Case("VoidSerializer", None, "null"))
    for encoding in ("UTF-8", "UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32"):
        found += [Case("StringSerializer", text, java(text), encoding) for text in texts]
        found += [Case("UUIDSerializer", one, java(one), encoding) for one in uuids[:3]]
    found += [Case("StringSerializer", text, java(text), "ISO-8859-1") for text in ("", "süß")]
    for inner in ("ShortSerializer", "IntegerSerializer", "LongSerializer", "UUIDSerializer", "StringSerializer"):
        items = values[inner][1:5]
        for some in ([], items, [None], [items[0], None, None, items[1]]):
            found.append(Case("ListSerializer", some, ",".join(map(java, some)), inner))
    return found


CASES = cases()


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What Kafka's serializers make of the cases, in hex."""
    cases = tmp_path_factory.mktemp("serializers") / "cases"
    cases.write_text("".join(f"{case.kafka}\t{case.option}\t{case.argument}\n" for case in CASES))
    source = Path(__file__).with_name("KafkaSerializers.java")
    run = subprocess.run(java_command(source, str(cases)), capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    answers = run.stdout.splitlines()
    assert len(answers) == len(CASES)
    return answers


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: f"{CASES[number].kafka}-{number}")
def test_ours_write_what_kafkas_write(number: int, kafkas: list[str]) -> None:
    written = CASES[number].ours()
    assert ("null" if written is None else "=" + written.hex()) == kafkas[number]
