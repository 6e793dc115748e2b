"""Every message in every version: what is written can be read, and what cannot be read is refused, cheaply."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioproducer.errors import SchemaException
from aioproducer.protocol.codec import ELEMENTS, NO_LIMIT, STEP, Decoding, Encoding, decode, decode_prefix, encode
from aioproducer.protocol.compile_reader import MOST_NUMBERS, compile_stepwise_reader
from aioproducer.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from aioproducer.protocol.schema import Array, Message, Struct

Messages = Callable[[type[Message], int], st.SearchStrategy[Any]]
FullMessage = Callable[[type[Message], int], Any]

MEMORY_FACTOR = 64
"""Bytes that may be allocated for each byte of input: a Python object for a field that is two bytes on the wire."""

HUGE = {
    "20 million": b"\x01\x31\x2d\x00",
    "20 million as varint": b"\x80\xda\xc4\x09",
    "2^31-1 as varint": b"\xff\xff\xff\xff\x07",
    "varint without end": b"\xff\xff\xff\xff\xff",
    "-2^31": b"\x80\x00\x00\x00",
}


def written(message: Message, version: int) -> bytes:
    return b"".join(encode(message, version))


def assert_memory_is_bounded(size: int, work: Callable[[], object]) -> None:
    """``work`` takes no more memory than ``size`` bytes of hostile input may cost.

    What the interpreter itself takes now and then, for a table of its own that has to grow, it does not take twice.
    """
    bound = MEMORY_FACTOR * size + 20_000
    if (peak := peak_memory(work)) > bound:
        peak = min(peak, peak_memory(work))
    assert peak <= bound


def peak_memory(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@settings(max_examples=5)
@given(data=st.data())
def test_a_written_message_is_read_back_and_a_damaged_one_is_read_or_refused(
    cls: type[Message], version: int, messages: Messages, data: st.DataObject
) -> None:
    message = data.draw(messages(cls, version))
    parts = encode(message, version)
    assert all(type(part) is bytes for part in parts)
    assert decode(cls, version, b"".join(parts)) == message
    assert decode(cls, version, memoryview(b"".join(parts))) == message
    changed = bytearray(b"".join(parts))
    for _ in range(data.draw(st.integers(1, 3)) if changed else 0):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(cls, version, bytes(changed))
    except SchemaException:
        pass


def test_the_defaults(cls: type[Message], version: int) -> None:
    assert decode(cls, version, written(cls(), version)) == cls()


def test_something_in_every_field(cls: type[Message], version: int, full_message: FullMessage) -> None:
    message = full_message(cls, version)
    data = written(message, version)
    assert decode(cls, version, data) == message
    before = b"\xfe" * 5
    assert decode(cls, version, before + data, 5) == message
    assert decode_prefix(cls, version, before + data + b"\xfe", 5) == (message, 5 + len(data))


def test_cut_anywhere(cls: type[Message], version: int, full_message: FullMessage) -> None:
    data = written(full_message(cls, version), version)
    for size in range(len(data)):
        with pytest.raises(SchemaException, match=f"{cls.__name__} v{version}, .+ at byte .+ of {size}: "):
            decode(cls, version, data[:size])


def test_more_than_the_message(cls: type[Message], version: int, full_message: FullMessage) -> None:
    data = written(full_message(cls, version), version)
    with pytest.raises(SchemaException, match=f"ends at byte {len(data)} of {len(data) + 1}"):
        decode(cls, version, data + b"\0")


@settings(max_examples=10)
@given(noise=st.binary(max_size=200))
def test_noise(cls: type[Message], version: int, noise: bytes) -> None:
    try:
        decode(cls, version, noise)
    except SchemaException:
        pass


def test_huge_lengths_are_refused(cls: type[Message], version: int, full_message: FullMessage) -> None:
    data = written(full_message(cls, version), version)
    for huge in HUGE.values():
        decode_all_broken(cls, version, data, huge)


def decode_all_broken(cls: type[Message], version: int, data: bytes, huge: bytes) -> None:
    """With ``huge`` at every position: wherever a count, a length or a tag stands, it is met."""
    for at in range(len(data)):
        try:
            decode(cls, version, data[:at] + huge + data[at + 1 :])
        except SchemaException:
            pass


@pytest.mark.parametrize("huge", ["20 million", "20 million as varint"])
def test_huge_lengths_cost_nothing(
    cls: type[Message], turning_point: int, huge: str, full_message: FullMessage
) -> None:
    data = written(full_message(cls, turning_point), turning_point)
    decode(cls, turning_point, data)  # compiled before memory is watched
    assert_memory_is_bounded(len(data), partial(decode_all_broken, cls, turning_point, data, HUGE[huge]))


def test_many_small_structs_cost_a_small_multiple(cls: type[Message], turning_point: int) -> None:
    for message in crowded(cls, turning_point):
        data = written(message, turning_point)
        decode(cls, turning_point, data)
        assert_memory_is_bounded(len(data), partial(decode, cls, turning_point, data))


def crowded(cls: type[Struct], version: int) -> Iterator[Any]:
    """For every array, at any depth, a message with many of the smallest elements in it."""
    make: Callable[..., Struct] = cls
    for wire in cls.FIELDS:
        if version in wire.versions and isinstance(wire.type, Array):
            element = wire.type.element
            if isinstance(element, type):
                yield make(**{wire.name: [element()] * 1000})
                for inner in crowded(element, version):
                    yield make(**{wire.name: [inner]})
            else:
                values = {"string": "", "int8": 100}
                yield make(**{wire.name: [values.get(element.name, 300)] * 1000})


# Large messages, step by step


def in_steps(cls: type[Message], version: int, data: bytes | memoryview) -> Message:
    decoding = Decoding(cls, version, data, 0)
    while not decoding.step():
        pass
    message: Message = decoding.message
    return message


def prefix_in_steps(cls: type[Message], version: int, data: bytes, max_elements: int) -> Message:
    decoding = Decoding(cls, version, data, 0, max_elements, is_prefix=True)
    while not decoding.step():
        pass
    message: Message = decoding.message
    return message


def end_of(read: Callable[[], Message]) -> Message | str:
    """The message, or what is wrong with it."""
    try:
        return read()
    except SchemaException as error:
        return str(error)


def test_reading_in_steps_comes_to_the_same_end(cls: type[Message], version: int, full_message: FullMessage) -> None:
    data = b"".join(encode(full_message(cls, version), version))
    zeroed = data[: len(data) // 2] + bytes(len(data) - len(data) // 2)
    for one in (data, memoryview(data), data + b"!", data[:-1], data[: len(data) // 3], zeroed, bytes(200), b""):
        assert end_of(partial(in_steps, cls, version, one)) == end_of(partial(decode, cls, version, one))


@pytest.mark.parametrize("most", [0, 2, NO_LIMIT])
def test_reading_a_prefix_in_steps_comes_to_the_same_end(
    cls: type[Message], version: int, most: int, full_message: FullMessage
) -> None:
    data = b"".join(encode(full_message(cls, version), version)) + b"the rest"
    at_once = end_of(lambda: decode_prefix(cls, version, data, 0, most)[0])
    assert end_of(partial(prefix_in_steps, cls, version, data, most)) == at_once


def test_no_step_reads_much_more_than_it_may() -> None:
    replicas = list(range(5000))
    partitions = [MetadataResponsePartition(0, number, 0, 0, [1], [1], []) for number in range(3000)]
    partitions.append(MetadataResponsePartition(0, 3000, 0, 0, replicas, replicas, []))
    topics = [
        MetadataResponseTopic(0, "t", partitions=partitions),
        *[MetadataResponseTopic(0, "") for _ in range(3000)],
    ]
    data = b"".join(encode(MetadataResponse(topics=topics), 12))
    read = compile_stepwise_reader(MetadataResponse, 12).function(data, 0, NO_LIMIT, 0)
    places = [next(read)]
    with contextlib.suppress(StopIteration):
        while True:
            places.append(read.send(places[-1] + STEP))
    assert in_steps(MetadataResponse, 12, data) == MetadataResponse(topics=topics)
    assert max(after - before for before, after in pairwise([*places, len(data)])) < STEP + MOST_NUMBERS * 4 + 100
    assert len(places) > len(data) // (STEP + MOST_NUMBERS * 4 + 100)


def written_in_steps(message: Message, version: int) -> tuple[list[bytes | memoryview], int]:
    """The parts, and the number of steps."""
    encoding, steps = Encoding(message, version), 1
    while not encoding.step():
        steps += 1
    return encoding.parts, steps


def parts_of(write: Callable[[], list[bytes | memoryview]]) -> list[bytes] | str:
    try:
        return [bytes(part) for part in write()]
    except SchemaException as error:
        return str(error)


def test_writing_in_steps_comes_to_the_same_end(cls: type[Message], version: int, full_message: FullMessage) -> None:
    for message in (full_message(cls, version), cls()):
        in_steps = parts_of(lambda: written_in_steps(message, version)[0])  # noqa: B023 - it is called at once
        assert in_steps == parts_of(partial(encode, message, version))


def test_writing_many_elements_in_steps_comes_to_the_same_end(cls: type[Message], turning_point: int) -> None:
    for message in crowded(cls, turning_point):
        parts, steps = written_in_steps(message, turning_point)
        assert b"".join(parts) == written(message, turning_point)
        assert steps <= 1000 // ELEMENTS + 1


def test_no_step_writes_more_than_it_may() -> None:
    replicas = list(range(5000))
    partitions = [MetadataResponsePartition(0, number, 0, 0, [1], replicas[:1], []) for number in range(3000)]
    partitions.append(MetadataResponsePartition(0, 3000, 0, 0, replicas, replicas, []))
    message = MetadataResponse(topics=[MetadataResponseTopic(0, "t", partitions=partitions)])
    parts, steps = written_in_steps(message, 12)
    assert b"".join(parts) == b"".join(encode(message, 12))
    # A topic, its partitions, two numbers in each, and ten parts of the numbers of the last one.
    assert steps == (1 + 3001 + 2 * 3000 + 10) // (ELEMENTS + 1) + 1


@pytest.mark.parametrize("at", [0, 150])
def test_what_cannot_be_written_in_steps_is_named(at: int) -> None:
    topics = [MetadataResponseTopic(0, "t") for _ in range(200)]
    topics[at].error_code = 2**20
    with pytest.raises(SchemaException, match=r"cannot write MetadataResponse v12: topics\[\].error_code: "):
        written_in_steps(MetadataResponse(topics=topics), 12)
