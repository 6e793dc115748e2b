from __future__ import annotations

import io
import re
import tracemalloc
from itertools import cycle, islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aioproducer.protocol.api_keys import MAX_RESPONSE_SIZE
from aioproducer.protocol.frame_reader import SPARE_BUFFERS, FrameReader

KIB = 1024
MIB = 1024 * KIB

MOST_STEPS = 2000
"""Of an example: a long stream, byte by byte, would take a minute."""


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def feed(reader: FrameReader, data: bytes, step: int = 2**31) -> list[bytes]:
    """As a transport does: at most ``step`` bytes at a time, and never more than there is room for."""
    frames = []
    while data:
        room = reader.get_buffer(-1)
        assert len(room) > 0
        count = min(step, len(room), len(data))
        room[:count] = data[:count]
        frames += reader.buffer_updated(count)  # the transport still holds the view here
        data = data[count:]
    return frames


@given(
    # Long frames by their sizes: where the test fails, an example that is long to print would hide why.
    written=st.lists(
        st.one_of(st.binary(max_size=20), st.sampled_from([4, 64 * KIB - 5, 64 * KIB - 4, 64 * KIB, 150_000]))
    ),
    steps=st.lists(st.integers(1, 100_000), min_size=1),
)
@example(written=[150_000] * 5, steps=[1])
def test_frames_come_out_as_they_went_in(written: list[bytes | int], steps: list[int]) -> None:
    reader = FrameReader(MIB)
    frames = [bytes(frame) for frame in written]
    stream = io.BytesIO(b"".join(map(framed, frames)))
    found: list[bytes] = []
    for step in islice(cycle(steps), MOST_STEPS):
        found += feed(reader, stream.read(step))
    found += feed(reader, stream.read())
    assert found == frames
    assert all(type(frame) is bytes for frame in found)


def test_byte_by_byte() -> None:
    frames = [b"one", b"", b"three"]
    assert feed(FrameReader(100), b"".join(map(framed, frames)), step=1) == frames


def test_frames_do_not_change_when_the_buffer_is_used_again() -> None:
    reader = FrameReader(100)
    (first,) = feed(reader, framed(b"aaaa"))
    feed(reader, framed(b"bbbb"))
    assert first == b"aaaa"


def test_one_buffer_is_used_again_and_again() -> None:
    reader = FrameReader(MIB)
    buffer = reader.get_buffer().obj
    for _ in range(3):
        feed(reader, framed(bytes(40_000)), step=10_000)
    assert reader.get_buffer().obj is buffer


@pytest.mark.parametrize("size", [0, 10, MIB])
def test_the_limit_is_allowed(size: int) -> None:
    assert feed(FrameReader(size), framed(bytes(size))) == [bytes(size)]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"\xff\xff\xff\xff", "is negative: -1 "),
        (b"\x80\x00\x00\x00", "is negative: -2147483648 "),
        (b"\x7f\xff\xff\xff", "is above the limit of 104857600: 2147483647 "),
        (b"\x06\x40\x00\x01", "is above the limit of 104857600: 104857601 "),
        (b"\x15\x03\x03\x00\x02\x02\x50", "352518912 .*; it looks like a TLS alert"),
        (b"\x16\x03\x01\x02\x00", "; it looks like a TLS handshake"),
        (b"HTTP/1.1 400 Bad Request\r\n", "1213486160 .*; it looks like an HTTP server"),
        (b"GET / HTTP/1.1\r\n", "; it looks like an HTTP client"),
        (b"POST / HTTP/1.1\r\n", "; it looks like an HTTP client"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "; it looks like an SSH server"),
    ],
)
def test_impossible_sizes(start: bytes, message: str) -> None:
    for before in ([], [b"good"], [b"good", b"better"]):
        for step in (1, 7, 100):
            reader = FrameReader(MAX_RESPONSE_SIZE)
            assert feed(reader, b"".join(map(framed, before)) + start + framed(b"late") * 100, step) == before
            assert re.search(message, str(reader.error))
            assert reader.pending < 4
            assert len(reader.get_buffer()) > FrameReader.INITIAL_SIZE - 4


def test_an_announced_size_reserves_nothing() -> None:
    tracemalloc.start()
    try:
        reader = FrameReader(2**31 - 1)
        before, _ = tracemalloc.get_traced_memory()
        feed(reader, b"\x7f\xff\xff\xff" + bytes(10))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 10_000


def test_the_buffer_follows_what_has_arrived() -> None:
    reader = FrameReader(100 * MIB)
    frame = framed(bytes(10 * MIB))
    for start in range(0, len(frame) - 1, 100_000):
        arrived = min(start + 100_000, len(frame) - 1)
        assert feed(reader, frame[start:arrived]) == []
        buffer = reader.get_buffer().obj
        assert isinstance(buffer, bytearray)
        assert len(buffer) <= max(FrameReader.INITIAL_SIZE, 2 * arrived)
    assert feed(reader, frame[-1:]) == [frame[4:]]
    assert len(reader.get_buffer()) == FrameReader.INITIAL_SIZE


class TestSpareBuffers:
    def test_a_reader_has_a_buffer_only_while_a_frame_is_incomplete(self) -> None:
        spare: list[bytearray] = []
        readers = [FrameReader(MIB, spare) for _ in range(3)]
        for _ in range(2):
            for reader in readers:
                assert feed(reader, framed(b"one") + framed(b"two")) == [b"one", b"two"]
        assert len(spare) == 1, "all of them used the same"
        assert feed(readers[0], framed(b"incomplete")[:7]) == []
        assert len(spare) == 0
        assert feed(readers[1], framed(b"other")) == [b"other"]
        assert feed(readers[0], framed(b"incomplete")[7:]) == [b"incomplete"]
        assert len(spare) == 2

    def test_a_reader_that_is_closed_gives_its_buffer_back(self) -> None:
        spare: list[bytearray] = []
        for incomplete in (b"", framed(b"x" * 9)[:-1]):
            reader = FrameReader(1000, spare)
            view = reader.get_buffer()
            assert spare == []
            view[: len(incomplete)] = incomplete
            if incomplete:
                reader.buffer_updated(len(incomplete))
            reader.close()
            assert len(spare) == 1
            assert reader.pending == 0

    def test_only_so_many_are_kept_and_none_that_has_grown(self) -> None:
        spare: list[bytearray] = []
        readers = [FrameReader(MIB, spare) for _ in range(10)]
        for reader in readers:
            feed(reader, framed(b"x")[:2])
        for reader in readers:
            feed(reader, framed(b"x")[2:])
        assert len(spare) == SPARE_BUFFERS
        assert feed(readers[0], framed(bytes(MIB))) == [bytes(MIB)]
        assert all(len(buffer) == FrameReader.INITIAL_SIZE for buffer in spare)

    @given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 40)), max_size=60))
    def test_readers_that_share_do_not_mix_up_their_streams(self, steps: list[tuple[int, int]]) -> None:
        spare: list[bytearray] = []
        readers = [FrameReader(MIB, spare) for _ in range(3)]
        streams = [b"".join(framed(bytes([who]) * size) for size in range(1, 60)) for who in range(3)]
        at, found = [0, 0, 0], [list[bytes](), list[bytes](), list[bytes]()]
        for who, count in steps:
            found[who] += feed(readers[who], streams[who][at[who] : at[who] + count])
            at[who] += count
        for who in range(3):
            assert found[who] == [bytes([who]) * size for size in range(1, len(found[who]) + 1)]


# Large frames


LARGE = FrameReader.LARGE


def feed_gathering(reader: FrameReader, data: bytes, step: int) -> list[bytes]:
    frames = []
    while data:
        room = reader.get_buffer(-1)
        count = min(step, len(room), len(data))
        room[:count] = data[:count]
        others = reader.buffer_updated(count)
        if reader.large is not None and (large := reader.take_large()):
            frames.append(bytes(large))
        frames += others
        data = data[count:]
    return frames


@pytest.mark.parametrize("step", [7_001, 64 * KIB, 2**31])
def test_large_frames_are_gathered_without_a_larger_buffer(step: int) -> None:
    sizes = [3, LARGE - 4, LARGE - 3, LARGE, 2 * LARGE + 11, 2 * LARGE, 0, 64 * KIB, LARGE, 1]
    frames = [bytes([number]) * size for number, size in enumerate(sizes)]
    reader = FrameReader(3 * LARGE, gathers=True)
    assert feed_gathering(reader, b"".join(map(framed, frames)), step) == frames
    assert reader.pending == 0
    assert len(reader.get_buffer()) == FrameReader.INITIAL_SIZE


def test_gathered_bytes_are_pending() -> None:
    reader = FrameReader(3 * LARGE, gathers=True)
    stream = framed(bytes(LARGE + 1))
    assert feed_gathering(reader, stream[:-1], 60_000) == []
    assert reader.pending == len(stream) - 1
    assert feed_gathering(reader, stream[-1:], 1) == [bytes(LARGE + 1)]
    assert reader.large is None


def test_a_large_frame_in_front_of_an_impossible_size_is_complete() -> None:
    spare: list[bytearray] = []
    reader = FrameReader(3 * LARGE, spare, gathers=True)
    frames = [bytes(LARGE + 1), b"small"]
    assert feed_gathering(reader, b"".join(map(framed, frames)) + b"\xff" * 100, 60_000) == frames
    assert "negative" in str(reader.error)
    assert reader.pending == 0
    assert len(spare) == 1


def test_each_frame_may_have_a_limit_of_its_own() -> None:
    limits = {0: 10, 1: 50, 2: 2 * LARGE, 3: 20}
    reader = FrameReader(5, gathers=True, limit_of=limits.__getitem__)
    assert feed_gathering(reader, b"".join(map(framed, [bytes(10), bytes(50)])), 2**31) == [bytes(10), bytes(50)]
    assert feed_gathering(reader, framed(bytes(11)), 2**31) == []
    assert "above the limit of 10: 11 " in str(reader.error)
    reader = FrameReader(5, gathers=True, limit_of={0: 2 * LARGE, 1: 50}.__getitem__)
    assert feed_gathering(reader, framed(bytes(LARGE)) + framed(bytes(50)), 60_000) == [bytes(LARGE), bytes(50)]
