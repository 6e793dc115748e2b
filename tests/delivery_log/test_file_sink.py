from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from aioproducer.delivery_log import FileSink, read_events
from aioproducer.errors import IllegalStateException
from tests.threads import assert_no_thread_is_left

pytestmark = pytest.mark.timeout(20)


def line(number: int, size: int = 0) -> bytes:
    return b'{"event":"test","number":%d,"filling":"%b"}' % (number, b"." * size)


def numbers(path: Path) -> list[Any]:
    return [event.get("number", event["event"]) for event in read_events(path)]


def test_written_lines_are_in_the_file_in_order_once_it_is_closed(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "log")
    for number in range(5000):
        sink.write(line(number, 50))
    sink.close()
    sink.close()
    assert numbers(tmp_path / "log") == list(range(5000))
    assert sink.lost == 0
    with pytest.raises(IllegalStateException, match="closed"):
        sink.write(b"{}")


def test_an_unused_sink_leaves_no_thread_and_an_empty_file(tmp_path: Path) -> None:
    before = threading.enumerate()
    FileSink(tmp_path / "log").close()
    assert_no_thread_is_left(before)
    assert (tmp_path / "log").read_bytes() == b""


def test_a_file_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileSink(tmp_path / "nowhere" / "log")


def test_it_goes_on_where_another_process_ended(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(line(1) + b"\n")
    sink = FileSink(path)
    sink.write(line(2))
    sink.close()
    assert numbers(path) == [1, 2]


@pytest.mark.parametrize("kept", [1, 10, len(line(2)) - 1])
def test_a_line_that_was_torn_stays_the_only_one(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(line(1) + b"\n" + line(2)[:kept])
    assert list(read_events(path))[1:] == [{"event": "torn", "line": 2}]
    sink = FileSink(path)
    sink.write(line(3))
    sink.close()
    assert numbers(path) == [1, "torn", 3]


class Disk:
    """A file whose writes can be held up, and can fail."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.free = threading.Event()
        self.free.set()
        self.writing = threading.Event()
        self.errors: list[OSError] = []

    def write(self, data: Any) -> int:
        self.writing.set()
        self.free.wait()
        if self.errors:
            self._file.write(data[:5])
            raise self.errors.pop()
        return int(self._file.write(data[:1000]))  # as little as a system call may take

    def close(self) -> None:
        self._file.close()


def on_disk(path: Path, **options: Any) -> tuple[FileSink, Disk]:
    sink = FileSink(path, **options)
    disk = Disk(sink._file)
    sink._file = disk  # type: ignore[assignment]
    return sink, disk


def test_a_slow_disk_holds_up_nobody_and_costs_lines_that_are_counted(tmp_path: Path) -> None:
    sink, disk = on_disk(tmp_path / "log", capacity=10_000, interval=0.001)
    disk.free.clear()
    sink.write(line(0))
    assert disk.writing.wait(10)
    for number in range(1, 1000):
        sink.write(line(number, 50))
    assert sink.lost > 0
    disk.free.set()
    sink.close()
    found = list(read_events(tmp_path / "log"))
    kept = [event["number"] for event in found if event["event"] == "test"]
    assert kept == list(range(len(kept)))
    assert len(kept) + sink.lost == 1000
    assert [event["count"] for event in found if event["event"] == "lost"] == [sink.lost]


def test_a_full_disk_costs_lines_that_are_counted_once_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink, disk = on_disk(tmp_path / "log", interval=0.001)
    disk.errors = [OSError(errno.ENOSPC, "No space left on device")]
    sink.write(line(0))
    assert disk.writing.wait(10)
    while disk.errors or sink._size:
        disk.free.wait(0.001)
    sink.write(line(1))
    sink.close()
    first, *others = numbers(tmp_path / "log")
    assert first == "torn"
    assert sorted(others, key=str) == [1, "lost"]  # whether the thread wrote before line 1 was there, is its affair
    assert sink.lost == 1
    assert "up to 1 lines of the delivery log are lost: [Errno 28] No space left on device" in caplog.text


def test_a_disk_that_never_answers_holds_up_close_for_a_while_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink, disk = on_disk(tmp_path / "log", patience=0.01)
    disk.free.clear()
    sink.write(line(0))
    sink.close()
    assert "not written yet" in caplog.text
    thread = sink._thread
    disk.free.set()
    assert thread is not None
    thread.join()
    assert numbers(tmp_path / "log") == [0]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_process_that_is_killed_leaves_whole_lines_and_at_most_one_torn(tmp_path: Path) -> None:
    script = """
        import sys
        from aioproducer.delivery_log import FileSink
        sink = FileSink(sys.argv[1], interval=0.001)
        number = 0
        while True:
            sink.write(b'{"event":"test","number":%d}' % number)
            number += 1
            if number == 200_000:
                print("enough", flush=True)
    """
    path = tmp_path / "log"
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    found = [one for one in numbers(path) if one != "lost"]
    torn = [one for one in found if one == "torn"]
    assert len(torn) <= 1
    if torn:
        assert found.pop() == "torn"
    assert len(found) > 1000
    assert found == sorted(found)
