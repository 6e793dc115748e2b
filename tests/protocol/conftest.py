"""Every message in every version, values for their fields, and Kafka's own specifications of them."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import strategies as st

from aioproducer.protocol import schema
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.headers import RequestHeader, ResponseHeader
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.protocol.schema import Array, Fixed, Message, Struct, Type, Wire
from aioproducer.testing.kafka.kafka_libs import KafkaUnavailable, fetch_kafka

KAFKA_VERSION = "4.3.1"

MESSAGES: list[type[Message]] = [
    RequestHeader,
    ResponseHeader,
    *(cls for api in APIS.values() for cls in (api.request, api.response)),
]

INTEGERS = {"b": (-(2**7), 2**7), "h": (-(2**15), 2**15), "i": (-(2**31), 2**31), "q": (-(2**63), 2**63)} | {
    "H": (0, 2**16),
    "I": (0, 2**32),
}

# Short ones mostly, and some whose length needs a second byte as a varint.
TEXTS = st.one_of(st.text(max_size=8), st.text("aé🔑", min_size=120, max_size=130))
BINARIES = st.one_of(st.binary(max_size=8), st.binary(min_size=120, max_size=130))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with the parameters ``cls`` and ``version`` runs for every message in every version; one that asks for
    ``turning_point`` in its place, for the versions of :func:`turning_points`."""
    if "cls" not in metafunc.fixturenames:
        return
    for name, versions in (("version", versions_of), ("turning_point", turning_points)):
        if name in metafunc.fixturenames:
            cases = [(cls, version) for cls in MESSAGES for version in sorted(versions(cls))]
            metafunc.parametrize(("cls", name), cases, ids=[f"{cls.__name__}-v{version}" for cls, version in cases])
            return
    metafunc.parametrize("cls", MESSAGES, ids=[cls.__name__ for cls in MESSAGES])


def turning_points(cls: type[Message]) -> set[int]:
    """The oldest, the first flexible and the newest version: memory is watched in these alone, as that is slow."""
    return {cls.VALID_VERSIONS.low, cls.FLEXIBLE_VERSIONS.low, cls.VALID_VERSIONS.high}


def versions_of(cls: type[Message]) -> range:
    return range(cls.VALID_VERSIONS.low, cls.VALID_VERSIONS.high + 1)


def values(type_: Type, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if isinstance(type_, Array):
        return st.lists(values(type_.element, version, flexible), max_size=3)
    if isinstance(type_, type):
        return structs(type_, version, flexible)
    if isinstance(type_, Fixed):
        if type_ is schema.BOOL:
            return st.booleans()
        if type_ is schema.UUID:
            return st.one_of(st.just(ZERO_UUID), st.builds(UUID, int=st.integers(0, 2**128 - 1)))
        if type_ is schema.FLOAT64:
            return st.floats(allow_nan=False)
        low, high = INTEGERS[type_.code]
        return st.one_of(st.integers(-1 if low else 0, 3), st.integers(low, high - 1))
    return TEXTS if type_ is schema.STRING else BINARIES


def structs(cls: type[Struct], version: int, flexible: bool) -> st.SearchStrategy[Any]:
    """Instances of ``cls`` with a value in every field that ``version`` has."""

    def field(wire: Wire) -> st.SearchStrategy[Any]:
        of_type = values(wire.type, version, flexible)
        return st.one_of(st.none(), of_type) if version in wire.nullable else of_type

    present = {wire.name: field(wire) for wire in cls.FIELDS if version in wire.versions}
    if flexible:
        declared = {wire.tag for wire in cls.FIELDS}
        tags = st.one_of(st.integers(0, 9), st.integers(0, 2**31 - 1)).filter(lambda tag: tag not in declared)
        present["unknown_tagged_fields"] = st.one_of(
            st.just({}), st.dictionaries(tags, st.binary(max_size=3), max_size=2)
        )
    return st.builds(cls, **present)


def full_value(type_: Type, version: int, flexible: bool) -> Any:
    if isinstance(type_, Array):
        return [full_value(type_.element, version, flexible)]
    if isinstance(type_, type):
        return full(type_, version, flexible)
    if type_ is schema.UUID:
        return UUID(int=0x0123456789ABCDEF_0123456789ABCDEF)
    if isinstance(type_, Fixed):
        return 1
    return "né" if type_ is schema.STRING else b"\x80\xff"


def full(cls: type[Struct], version: int, flexible: bool) -> Any:
    """An instance with something in every field that ``version`` has, and an unknown tagged field where it may."""
    present = {wire.name: full_value(wire.type, version, flexible) for wire in cls.FIELDS if version in wire.versions}
    return cls(**present, unknown_tagged_fields={77: b"?"} if flexible else {})


@pytest.fixture(scope="session")
def all_messages() -> list[type[Message]]:
    return MESSAGES


@pytest.fixture(scope="session")
def messages() -> Callable[[type[Message], int], st.SearchStrategy[Any]]:
    """``messages(cls, version)`` is a strategy for messages of that version."""
    return lambda cls, version: structs(cls, version, version in cls.FLEXIBLE_VERSIONS)


@pytest.fixture(scope="session")
def full_message() -> Callable[[type[Message], int], Any]:
    """``full_message(cls, version)`` has something in every field."""
    return lambda cls, version: full(cls, version, version in cls.FLEXIBLE_VERSIONS)


@pytest.fixture(scope="session")
def kafka_libs() -> Path:
    """The directory of Apache Kafka's jars."""
    try:
        return fetch_kafka(KAFKA_VERSION)
    except KafkaUnavailable as unavailable:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"NOT COMPARED with Kafka's own: {unavailable}")


@pytest.fixture(scope="session")
def kafka_specs(kafka_libs: Path) -> dict[str, Any]:
    """Kafka's message specifications by name, out of the kafka-clients jar."""
    return dict(read_specs(kafka_libs / f"kafka-clients-{KAFKA_VERSION}.jar"))


def read_specs(jar: Path) -> Iterator[tuple[str, Any]]:
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"common/message/\w+\.json", name):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                spec = json.loads(text)
                yield spec["name"], spec
