"""Serializers by themselves; what they write is compared with Kafka's own classes in ``kafka_classes``."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

import pytest

from aioproducer.errors import IllegalArgumentException, SerializationException
from aioproducer.serializers import (
    BooleanSerializer,
    BytesSerializer,
    DoubleSerializer,
    FloatSerializer,
    IntegerSerializer,
    ListSerializer,
    LongSerializer,
    ShortSerializer,
    StringSerializer,
    UUIDSerializer,
    VoidSerializer,
)

ID = UUID("01234567-89ab-cdef-0123-456789abcdef")


@pytest.mark.parametrize(
    ("serializer", "data", "written"),
    [
        (BytesSerializer(), b"as it is", b"as it is"),
        (BytesSerializer(), bytearray(b"copied"), b"copied"),
        (BytesSerializer(), memoryview(b"copied")[1:], b"opied"),
        (StringSerializer(), "žluťoučký 🐎", "žluťoučký 🐎".encode()),
        (StringSerializer("utf-16"), "a", b"\xfe\xff\x00a"),
        (StringSerializer("utf-16"), "", b""),
        (StringSerializer("UTF-32"), "a", b"\x00\x00\x00a"),
        (StringSerializer("latin-1"), "ü", b"\xfc"),
        (ShortSerializer(), -2, b"\xff\xfe"),
        (IntegerSerializer(), 2**31 - 1, b"\x7f\xff\xff\xff"),
        (LongSerializer(), -(2**63), b"\x80" + bytes(7)),
        (FloatSerializer(), 1.5, b"\x3f\xc0\x00\x00"),
        (DoubleSerializer(), -2, b"\xc0" + bytes(7)),
        (DoubleSerializer(), math.inf, b"\x7f\xf0" + bytes(6)),
        (BooleanSerializer(), True, b"\x01"),
        (BooleanSerializer(), False, b"\x00"),
        (UUIDSerializer(), ID, b"01234567-89ab-cdef-0123-456789abcdef"),
        (ListSerializer(IntegerSerializer()), [], bytes(9)),
        (
            ListSerializer(ShortSerializer()),
            [1, None, 2],
            b"\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x03\x00\x01\x00\x02",
        ),
        (
            ListSerializer(StringSerializer()),
            ("ab", None, ""),
            b"\x01\x00\x00\x00\x03\x00\x00\x00\x02ab\xff\xff\xff\xff\x00\x00\x00\x00",
        ),
    ],
)
def test_a_serializer_writes_kafkas_bytes(serializer: Any, data: Any, written: bytes) -> None:
    made = serializer(data)
    assert type(made) is bytes
    assert made == written


ALL = [
    BytesSerializer(),
    StringSerializer(),
    ShortSerializer(),
    IntegerSerializer(),
    LongSerializer(),
    FloatSerializer(),
    DoubleSerializer(),
    BooleanSerializer(),
    UUIDSerializer(),
    VoidSerializer(),
    ListSerializer(StringSerializer()),
]


@pytest.mark.parametrize("serializer", ALL, ids=lambda serializer: type(serializer).__name__)
def test_none_stays_none_and_what_is_of_another_type_is_refused_by_name(serializer: Any) -> None:
    assert serializer(None) is None
    with pytest.raises(SerializationException, match=rf"{type(serializer).__name__} takes .*, not complex"):
        serializer(1j)


@pytest.mark.parametrize("serializer", [LongSerializer(), DoubleSerializer()])
def test_a_bool_is_no_number(serializer: Any) -> None:
    with pytest.raises(SerializationException, match="not bool"):
        serializer(True)


@pytest.mark.parametrize(
    ("serializer", "data", "why"),
    [
        (ShortSerializer(), 2**15, "32768 does not fit into 16 bits"),
        (IntegerSerializer(), -(2**31) - 1, "-2147483649 does not fit into 32 bits"),
        (LongSerializer(), 2**63, "9223372036854775808 does not fit into 64 bits"),
        (FloatSerializer(), 1e300, "1e[+]300 does not fit into 32 bits"),
        (DoubleSerializer(), 10**400, "does not fit into 64 bits"),
        (StringSerializer(), "\ud800", "the text cannot be encoded: .*surrogates not allowed"),
        (StringSerializer("ascii"), "ü", "the text cannot be encoded"),
        (ListSerializer(lambda item: None), [1], "the inner serializer made None of a int; it must be bytes"),
    ],
)
def test_data_that_do_not_fit_are_refused(serializer: Any, data: Any, why: str) -> None:
    with pytest.raises(SerializationException, match=why):
        serializer(data)


@pytest.mark.parametrize("encoding", ["no-such-encoding", "rot13"])
@pytest.mark.parametrize("serializer", [StringSerializer, UUIDSerializer])
def test_an_encoding_that_is_none_is_refused_at_once(serializer: Any, encoding: str) -> None:
    with pytest.raises(IllegalArgumentException, match=encoding):
        serializer(encoding)
