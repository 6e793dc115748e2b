from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aioproducer.testing.kafka.kafka_libs import KafkaFailed
from aioproducer.testing.kafka.kafka_node import KafkaNode, known_brokers
from aioproducer.testing.process_guard import ProcessGuard


@contextmanager
def answering(*pieces: bytes) -> Iterator[int]:
    """The port of a server that answers one request with these pieces and closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                for piece in pieces:
                    connection.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def broker(node_id: int, rack: str | None) -> bytes:
    host = b"127.0.0.1"
    size = struct.pack(">h", -1) if rack is None else struct.pack(">h", len(rack)) + rack.encode()
    return struct.pack(">ih", node_id, len(host)) + host + struct.pack(">i", 9092) + size


def node(directory: Path, *jvm: str, configs: dict[str, str] | None = None) -> KafkaNode:
    return KafkaNode(1, port=1, jvm=jvm, configs=configs or {}, directory=directory / "node-1")


def test_known_brokers() -> None:
    body = struct.pack(">ii", 1, 2) + broker(1, None) + broker(7, "east") + struct.pack(">ii", 1, 0)
    frame = struct.pack(">i", len(body)) + body
    with answering(frame[:2], frame[2:]) as port:
        assert known_brokers(port) == {1, 7}


@pytest.mark.parametrize("answer", [b"", struct.pack(">ii", 100, 1)])
def test_no_answer_is_an_error(answer: bytes) -> None:
    with answering(answer) as port, pytest.raises(OSError):
        known_brokers(port)


def test_properties_are_escaped(tmp_path: Path) -> None:
    node(tmp_path, configs={"a": "b\\c\nd", "log.dirs": "elsewhere"})
    written = (tmp_path / "node-1" / "server.properties").read_text()
    assert written == f"a=b\\\\c\\nd\nlog.dirs={tmp_path}/node-1/data\n"


def test_the_end_of_the_log_tells_why_it_ended(tmp_path: Path) -> None:
    broken = node(tmp_path, "/bin/sh", "-c", "for line in 1 2 3; do echo line $line; done; exit 3")
    assert broken.log_tail() == ""
    assert broken.log_of("line") == ""
    with ProcessGuard() as guard:
        broken.start(guard)
        assert broken._process is not None
        broken._process.wait()
        with pytest.raises(KafkaFailed, match=r"node 1 ended with exit status 3:\nline 1\nline 2\nline 3$"):
            broken.check_running()
        with pytest.raises(RuntimeError, match="node 1 is not running"):
            broken.pause()
    assert broken.log_tail(2) == "line 2\nline 3"
    assert broken.log_of("2") == "line 2"
    assert broken.log_of("line", lines=1) == "line 3"


def test_stop_kills_what_does_not_stop(tmp_path: Path) -> None:
    stubborn = node(tmp_path, "/bin/sh", "-c", "trap '' TERM; echo ready; while :; do /bin/sleep 1000; done")
    with ProcessGuard() as guard:
        stubborn.start(guard)
        while "ready" not in stubborn.log_tail():
            stubborn.check_running()
        with pytest.raises(RuntimeError, match="node 1 is running already"):
            stubborn.start(guard)
        stubborn.stop(timeout=0.1)
        assert not stubborn.running
        stubborn.kill()


BUSY = """
import threading, time
def work():
    while True:
        sum(range(50))
        time.sleep(0.0001)
for _ in range(8):
    threading.Thread(target=work).start()
print("ready", flush=True)
"""


def states_of_threads(pid: int) -> set[str]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks}


@pytest.mark.skipif(sys.platform != "linux", reason="reads the states of threads from /proc")
def test_a_paused_node_has_no_thread_that_runs(tmp_path: Path) -> None:
    busy = node(tmp_path, sys.executable, "-c", BUSY)
    with ProcessGuard() as guard:
        busy.start(guard)
        while "ready" not in busy.log_tail():
            busy.check_running()
        for _ in range(20):
            busy.pause()
            assert states_of_threads(busy.pid) == {"T"}
            busy.pause()
            busy.resume()
            while "R" not in states_of_threads(busy.pid):
                busy.check_running()
        busy.kill()
