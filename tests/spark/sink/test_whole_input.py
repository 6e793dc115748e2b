"""Input that ends, and input that breaks off, as Spark sends it: an Arrow stream, and Spark's mark behind it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import IllegalStateException
from aioproducer.spark.sink.whole_input import END_OF_STREAM, InputBrokeOffException, input_of_worker, whole

pa = pytest.importorskip("pyarrow")

SCHEMA = pa.schema({"value": pa.string()})


def arrow_stream(batches: list[list[str]]) -> bytes:
    written = io.BytesIO()
    with pa.ipc.new_stream(written, SCHEMA) as stream:
        for batch in batches:
            stream.write_batch(pa.record_batch({"value": batch}, schema=SCHEMA))
    return written.getvalue()


def batches_of(stream: Any) -> Iterator[Any]:
    """As PySpark reads them: the schema is read with the first batch."""
    yield from pa.ipc.open_stream(stream)


def read(stream: Any, found: list[str]) -> None:
    """Adds all values to those found, as far as they come."""
    for batch in whole(batches_of(stream), stream, "epoch 3, partition 1"):
        found += batch.column("value").to_pylist()


def pipe_of(sent: bytes) -> Any:
    """A pipe whose writer has sent this and is gone."""
    reading, writing = os.pipe()
    assert os.write(writing, sent) == len(sent)
    os.close(writing)
    return os.fdopen(reading, "rb")


class Portions(io.RawIOBase):
    """Bytes that arrive in portions of these sizes, over and over."""

    def __init__(self, sent: bytes, sizes: list[int]) -> None:
        self._sent = io.BytesIO(sent)
        self._sizes = sizes
        self._reads = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self._sizes[self._reads % len(self._sizes)]
        self._reads += 1
        some = self._sent.read(min(size, len(buffer)))
        buffer[: len(some)] = some
        return len(some)


def test_a_pipe_that_is_closed_at_any_byte() -> None:
    arrow = arrow_stream([["a", "b"], [], ["c"]])
    sent = arrow + END_OF_STREAM
    unnoticed = set()
    for length in range(len(sent) + 1):
        found: list[str] = []
        with pipe_of(sent[:length]) as stream:
            if length > len(arrow):
                read(stream, found)
                assert found == ["a", "b", "c"]
                assert stream.read() == sent[len(arrow) : length], "the mark is left to PySpark's worker"
                continue
            with pytest.raises(InputBrokeOffException, match=r"^epoch 3, partition 1: the input broke off ") as broken:
                read(stream, found)
        assert f"after {len(found)} rows" in str(broken.value)
        if broken.value.__cause__ is None:
            unnoticed.add((len(found), length == len(arrow)))
    assert unnoticed == {(0, False), (2, False), (3, False), (3, True)}, "where pyarrow itself sees the stream's end"


@given(
    batches=st.lists(st.lists(st.text(max_size=4), max_size=4), max_size=4),
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=5),
    buffer=st.integers(1, 300),
    data=st.data(),
)
def test_bytes_arrive_in_portions(batches: list[list[str]], sizes: list[int], buffer: int, data: st.DataObject) -> None:
    """The mark may come in pieces, and lie across the end of the stream's buffer."""
    arrow = arrow_stream(batches)
    sent = (arrow + END_OF_STREAM)[: data.draw(st.integers(0, len(arrow) + len(END_OF_STREAM)))]
    stream = io.BufferedReader(Portions(sent, sizes), buffer)
    rows = [row for batch in batches for row in batch]
    found: list[str] = []
    if len(sent) > len(arrow):
        read(stream, found)
        assert found == rows
        assert stream.read() == sent[len(arrow) :]
    else:
        with pytest.raises(InputBrokeOffException):
            read(stream, found)
        assert found == rows[: len(found)]


@pytest.mark.conformance  # the function is Spark's
@pytest.mark.parametrize("following", [b"\xff\xff\xff\xff", b"\0\0\0\x05", b"\xff\xff\xff\xfb", b"x"])
def test_another_mark_is_refused(following: bytes) -> None:
    pytest.importorskip("pyspark")
    stream = io.BufferedReader(io.BytesIO(arrow_stream([["a"]]) + following))
    with pytest.raises(IllegalStateException, match=r"partition 1: the 1 rows are followed by .* support PySpark 4\."):
        read(stream, [])


def test_a_connection_that_is_reset_behind_the_rows() -> None:
    class Reset(Portions):
        def readinto(self, buffer: Any) -> int:
            return super().readinto(buffer) or self._fail()

        def _fail(self) -> int:
            raise ConnectionResetError("reset by peer")

    with pytest.raises(InputBrokeOffException, match=r"after 2 rows \(ConnectionResetError: reset by peer\)"):
        read(io.BufferedReader(Reset(arrow_stream([["a"], ["b"]]), [50])), [])


def test_another_failure_of_the_input_is_not_called_broken_off() -> None:
    def failing() -> Iterator[Any]:
        yield pa.record_batch({"value": ["a"]})
        raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        list(whole(failing(), io.BufferedReader(io.BytesIO(END_OF_STREAM)), "here"))


def test_the_stream_of_the_worker_is_found_among_the_callers() -> None:
    infile = io.BufferedReader(io.BytesIO())

    def process() -> Any:
        return infile.seekable() and input_of_worker()

    assert process() is infile


@pytest.mark.conformance
def test_a_worker_without_such_a_stream_writes_nothing() -> None:
    pytest.importorskip("pyspark")
    infile = io.BytesIO()  # which cannot be looked ahead in
    with pytest.raises(IllegalStateException, match=r"PySpark 4\..* no buffered stream 'infile'.* nothing was written"):
        input_of_worker()
    assert not infile.closed
