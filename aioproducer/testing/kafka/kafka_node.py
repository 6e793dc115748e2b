"""One Kafka node of a test cluster: its configuration, process and log, and whether it is ready."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from aioproducer.testing.kafka.kafka_jvm import properties_text
from aioproducer.testing.kafka.kafka_libs import KafkaFailed
from aioproducer.testing.process_guard import ProcessGuard


class KafkaNode:
    """A broker and controller in one process (KRaft combined mode), with all its files below ``directory``."""

    def __init__(
        self, node_id: int, *, port: int, jvm: Sequence[str], configs: Mapping[str, str], directory: Path
    ) -> None:
        self.node_id = node_id
        self.port = port
        self.directory = directory
        self.data = directory / "data"
        self._jvm = jvm
        self._properties = directory / "server.properties"
        self._log = directory / "kafka.log"
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir()
        self._properties.write_text(properties_text({**configs, "log.dirs": str(self.data)}), encoding="utf-8")

    def format(self, cluster_id: str, guard: ProcessGuard) -> subprocess.Popen[bytes]:
        """Start writing the node's empty storage; its output goes to the node's log."""
        return self._spawn(
            guard, "kafka.tools.StorageTool", "format", "--cluster-id", cluster_id, "--config", str(self._properties)
        )

    def start(self, guard: ProcessGuard) -> None:
        if self.running:
            raise RuntimeError(f"node {self.node_id} is running already")
        self._process = self._spawn(guard, "kafka.Kafka", str(self._properties))

    def _spawn(self, guard: ProcessGuard, *main: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            # The JVM writes crash reports to its working directory.
            return guard.spawn([*self._jvm, *main], cwd=self.directory, stdout=log, stderr=subprocess.STDOUT)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._live().pid

    def stop(self, timeout: float) -> None:
        """Ask for a controlled shutdown, which moves the node's leaderships; kill it after ``timeout`` seconds."""
        process = self._live()
        process.terminate()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL, as a crash would end it; works on a stopped and on a paused process, too."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Send SIGSTOP: connections stay open and nothing is answered, as with a machine that hangs."""
        process = self._live()
        process.send_signal(signal.SIGSTOP)
        if hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
            # The signal goes to one thread, and the others answer until that thread has run. WNOWAIT leaves the
            # status to Popen if the process has ended instead.
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self._live().send_signal(signal.SIGCONT)

    def _live(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"node {self.node_id} is not running")
        return self._process

    def log_tail(self, lines: int = 40) -> str:
        if not self._log.exists():
            return ""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - 500 * lines))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])

    def log_of(self, word: str, lines: int = 40) -> str:
        """The last lines of the log that contain ``word``."""
        if not self._log.exists():
            return ""
        with self._log.open(errors="replace") as log:
            return "\n".join(deque((line.rstrip() for line in log if word in line), maxlen=lines))

    def check_running(self) -> None:
        """Raise ``KafkaFailed``, with the end of the log, if the process has ended."""
        if not self.running:
            status = None if self._process is None else self._process.returncode
            raise KafkaFailed(f"node {self.node_id} ended with exit status {status}:\n{self.log_tail()}")


def known_brokers(port: int, *, timeout: float = 2.0) -> set[int]:
    """The ids of the live brokers that this node knows, by a request on a plain socket: Metadata v1, no topics.

    An accepted connection proves nothing, because Kafka opens its ports long before it answers. The request is encoded
    here, so that this check does not depend on the client under test. Raises ``OSError`` when there is no answer
    within ``timeout`` seconds.
    """
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        # api key 3, version 1, correlation id 1, client id null, an empty list of topics
        request = struct.pack(">hhihi", 3, 1, 1, -1, 0)
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        body = _receive(connection, size)
    brokers: set[int] = set()
    (count,), at = struct.unpack_from(">i", body, 4), 8
    for _ in range(count):
        node_id, host_size = struct.unpack_from(">ih", body, at)
        at += 6 + host_size + 4
        (rack_size,) = struct.unpack_from(">h", body, at)
        at += 2 + max(0, rack_size)
        brokers.add(node_id)
    return brokers


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("the broker closed the connection")
        data += piece
    return bytes(data)
