"""All that can be declared, in one message that Kafka does not have: what the real ones use is tested with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import SchemaException, UnsupportedVersionException
from aioproducer.protocol.codec import decode, encode
from aioproducer.protocol.compiler import minimum_size
from aioproducer.protocol.messages.produce import PartitionProduceResponse, TopicProduceResponse
from aioproducer.protocol.schema import (
    BOOL,
    BYTES,
    INT16,
    INT32,
    RECORDS,
    STRING,
    Array,
    Message,
    Records,
    Struct,
    array,
    bool_,
    bytes_,
    float64,
    header,
    int8,
    int16,
    int32,
    int64,
    nested,
    records_,
    string,
    struct,
    uint16,
    uint32,
    uuid,
)
from aioproducer.protocol.schema import UUID as UUID_


@struct
class Inner(Struct):
    size: int = uint16("0+")
    id: UUID = uuid("0+")
    name: str | None = string("0+", nullable="1+")
    late: int = int32("3+", default=7, tag=0)


@header(versions="0-3", flexible="2+")
class Everything(Message):
    flag: bool = bool_("0+")
    small: int = int8("0+")
    short: int = int16("0+")
    unsigned_short: int = uint16("0+")
    integer: int = int32("0+")
    unsigned: int = uint32("0+")
    long: int = int64("0+")
    ratio: float = float64("0+", default=0.5)
    id: UUID = uuid("0+")
    text: str = string("0+")
    nullable_text: str | None = string("0+", nullable="0+", default=None)
    data: bytes = bytes_("0+")
    nullable_data: bytes | None = bytes_("0+", nullable="1+")
    flags: list[bool] = array(BOOL, "0+")
    shorts: list[int] | None = array(INT16, "0+", nullable="0+")
    ids: list[UUID] = array(UUID_, "0+")
    texts: list[str] = array(STRING, "0+")
    blobs: list[bytes] = array(BYTES, "0+")
    batches: Records = records_("0+")
    inner: Inner = nested(Inner, "0+")
    inners: list[Inner] | None = array(Inner, "1+", nullable="2+")
    more_batches: Records = records_("0+", nullable="0+")
    end: int = int8("0+", default=-1)
    tagged_later: int = int64("1+", default=-1, tag=1, tagged="2+")
    tagged_flag: bool = bool_("2+", tag=3)
    tagged_text: str | None = string("2+", nullable="2+", default=None, tag=5)
    tagged_data: bytes = bytes_("2+", tag=6)
    tagged_ids: list[UUID] = array(UUID_, "2+", tag=7)
    tagged_inner: Inner = nested(Inner, "2+", tag=8)
    tagged_inners: list[Inner] = array(Inner, "2+", tag=20)
    dropped: float = float64("3+", default=1.5, ignorable=True)


def written(message: Message, version: int) -> bytes:
    return b"".join(encode(message, version))


@given(data=st.data(), version=st.integers(0, 3))
def test_everything(
    data: st.DataObject, version: int, messages: Callable[[type[Message], int], st.SearchStrategy[Any]]
) -> None:
    message = data.draw(messages(Everything, version))
    if version == 0 or message.batches is None:
        message.batches = b"batches"  # the default of records is null, as in Kafka, even where null is not allowed
    assert decode(Everything, version, written(message, version)) == message


@pytest.mark.parametrize("version", range(4))
def test_everything_cut_anywhere(version: int, full_message: Callable[[type[Message], int], Any]) -> None:
    data = written(full_message(Everything, version), version)
    for size in range(len(data)):
        with pytest.raises(SchemaException, match=f"Everything v{version}, "):
            decode(Everything, version, data[:size])


def test_the_bytes_of_everything() -> None:
    """The types that no message of ``messages/`` has; Kafka's own classes judge those that do."""
    message = Everything(
        flag=True,
        small=-2,
        unsigned_short=0xFFFE,
        unsigned=0xFFFFFFFE,
        ratio=-2.0,
        data=b"ab",
        nullable_data=None,
        flags=[True, False],
        shorts=None,
        blobs=[b"", b"x"],
        batches=b"R",
    )
    zero_inner = "0000" + 16 * "00"
    assert (
        written(message, 1).hex(" ").split()
        == (
            "01 fe 00 00 ff fe 00 00 00 00 ff ff ff fe"
            + 8 * " 00"
            + " c0 00 00 00 00 00 00 00"
            + 16 * " 00"
            + " 00 00"  # text
            " ff ff"
            " 00 00 00 02 61 62"
            " ff ff ff ff"
            " 00 00 00 02 01 00"
            " ff ff ff ff"
            " 00 00 00 00"  # ids
            " 00 00 00 00"
            " 00 00 00 02 00 00 00 00 00 00 00 01 78"
            " 00 00 00 01 52 " + bytes.fromhex(zero_inner + "0000").hex(" ") + " 00 00 00 00"  # inners
            " ff ff ff ff"
            " ff"
            " ff ff ff ff ff ff ff ff"
        ).split()
    )
    assert (
        written(message, 2).hex(" ").split()
        == (
            "01 fe 00 00 ff fe 00 00 00 00 ff ff ff fe"
            + 8 * " 00"
            + " c0 00 00 00 00 00 00 00"
            + 16 * " 00"
            + " 01"  # text
            " 00"
            " 03 61 62"
            " 00"
            " 03 01 00"
            " 00"
            " 01"  # ids
            " 01"
            " 03 01 02 78"
            " 02 52 " + bytes.fromhex(zero_inner + "01" + "00").hex(" ") + " 01"  # inners
            " 00"
            " ff"
            " 00"
        ).split()
    )


def test_tagged_fields_carry_their_size_and_leave_out_defaults() -> None:
    bare = written(Everything(batches=b""), 2)
    assert bare.endswith(b"\xff\x00")
    message = Everything(
        batches=b"", tagged_later=5, tagged_text="ab", tagged_flag=True, unknown_tagged_fields={4: b"?"}
    )
    assert written(message, 2) == bare[:-1] + (
        b"\x04\x01\x08\x00\x00\x00\x00\x00\x00\x00\x05\x03\x01\x01\x04\x01?\x05\x03\x03ab"
    )
    assert decode(Everything, 2, written(message, 2)) == message


def test_a_field_may_be_tagged_in_some_versions_only() -> None:
    message = Everything(batches=b"", tagged_later=5)
    assert written(message, 1).endswith(b"\x00\x00\x00\x05")
    assert decode(Everything, 1, written(message, 1)) == message


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (Everything(batches=b"", tagged_later=5), "tagged_later"),
        (Everything(batches=b"", inners=[Inner()]), "inners"),
        (Everything(batches=b"", inners=None), "inners"),
        (Everything(batches=b"", tagged_flag=True), "tagged_flag"),
        (Everything(batches=b"", tagged_text=""), "tagged_text"),
        (Everything(batches=b"", tagged_data=b"x"), "tagged_data"),
        (Everything(batches=b"", tagged_inner=Inner(size=1)), "tagged_inner"),
        (Everything(batches=b"", tagged_inner=Inner(unknown_tagged_fields={5: b""})), "tagged_inner"),
        (Everything(batches=b"", inner=Inner(late=8)), "inner.late"),
        (Everything(batches=b"", inner=Inner(unknown_tagged_fields={5: b""})), "inner.tagged fields"),
        (Everything(batches=b"", unknown_tagged_fields={5: b""}), "tagged fields"),
    ],
)
def test_a_set_field_that_a_version_lacks_is_refused(message: Everything, field: str) -> None:
    with pytest.raises(UnsupportedVersionException, match=f"Everything v0 has no {field}, which is set"):
        encode(message, 0)


def test_an_ignorable_field_that_a_version_lacks_is_dropped() -> None:
    message = Everything(batches=b"", dropped=9.0)
    assert decode(Everything, 2, written(message, 2)).dropped == 1.5
    assert decode(Everything, 3, written(message, 3)).dropped == 9.0


def test_minimum_size() -> None:
    assert minimum_size(INT32, 0, False) == 4
    assert [minimum_size(type_, 0, False) for type_ in (STRING, BYTES, RECORDS, Array(INT32))] == [2, 4, 4, 4]
    assert [minimum_size(type_, 0, True) for type_ in (STRING, BYTES, RECORDS, Array(INT32))] == [1, 1, 1, 1]
    assert minimum_size(Inner, 3, True) == 2 + 16 + 1 + 1
    assert minimum_size(PartitionProduceResponse, 3, False) == 4 + 2 + 8 + 8
    assert minimum_size(TopicProduceResponse, 13, True) == 16 + 1 + 1


@struct
class Nothing(Struct):
    late: int = int8("1+")


@header(versions="0-1", flexible="none")
class Nothings(Message):
    items: list[Nothing] = array(Nothing, "0+")


def test_structs_of_no_bytes_are_counted_as_one_byte_each() -> None:
    """Nothing says how many there are but a number that anyone can write."""
    assert minimum_size(Nothing, 0, False) == 0
    with pytest.raises(SchemaException, match="20000000 times 1 bytes or more announced, 0 bytes left"):
        decode(Nothings, 0, (20_000_000).to_bytes(4, "big"))
    assert decode(Nothings, 1, bytes.fromhex("0000000105")).items == [Nothing(5)]
