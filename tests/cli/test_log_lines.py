from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

import pytest

from aioproducer.cli import log_lines
from aioproducer.cli.log_lines import LogLines, write_to_standard_error


def test_all_is_written_in_order_before_close_returns() -> None:
    written: list[str] = []
    lines = LogLines(written.append)
    for number in range(100):
        lines.put(str(number))
    lines.close()
    assert written == list(map(str, range(100)))


def test_a_reader_that_does_not_read_delays_nothing_and_dropped_lines_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_lines, "MOST_WAITING", 3)
    monkeypatch.setattr(log_lines, "PATIENCE", 0.001)
    written: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow(line: str) -> None:
        begun.set()
        go_on.wait()
        written.append(line)

    lines = LogLines(slow)
    lines.put("a")
    begun.wait()
    for line in "bcdefg":
        lines.put(line)
    lines.close()
    assert written == []
    go_on.set()
    monkeypatch.setattr(log_lines, "PATIENCE", 10)
    lines.close()
    assert written == ["a", "warning: 3 log lines were dropped, because they were not read in time", "b", "c", "d"]


@contextmanager
def standard_error() -> Iterator[int]:
    """Makes it a pipe, and gives the end that is read."""
    reading, writing = os.pipe()
    before = sys.stderr
    with os.fdopen(writing, "wb") as raw:
        sys.stderr = TextIOWrapper(raw, write_through=True)
        try:
            yield reading
        finally:
            sys.stderr.detach()
            sys.stderr = before
    os.close(reading)


def test_standard_error() -> None:
    with standard_error() as reading:
        write_to_standard_error("gr\xfcn")
        assert os.read(reading, 100) == "gr\xfcn\n".encode()


def test_standard_error_of_a_test(capsys: pytest.CaptureFixture[str]) -> None:
    write_to_standard_error("a")
    assert capsys.readouterr().err == "a\n"
