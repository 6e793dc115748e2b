"""Fixtures for tests of the command line: a cluster, and commands in this process and in others."""

from __future__ import annotations

import asyncio
import os
import pty
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from typer.testing import CliRunner

import aioproducer
from aioproducer.broker import EmbeddedCluster, Topic
from aioproducer.broker.kafka_apis import APIS
from aioproducer.cli.app import make_app
from aioproducer.protocol.api_key import ApiKey

T = TypeVar("T")


class Requests:
    """The requests that brokers of this process get, as they are handled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._seen: dict[ApiKey, threading.Event] = {}
        for key, api in APIS.items():
            seen = self._seen[ApiKey(key)] = threading.Event()
            monkeypatch.setitem(APIS, key, api._replace(handle=self._watched(api.handle, seen)))

    def wait_for(self, api_key: ApiKey) -> None:
        """Until one has been handled."""
        self._seen[api_key].wait()

    @staticmethod
    def _watched(handle: Callable[..., Any], seen: threading.Event) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            try:
                return handle(*arguments)
            finally:
                seen.set()

        return watched


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    return Requests(monkeypatch)


class LoopThread:
    """An event loop in a thread, for what has to go on while a test waits for a command."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        async def call() -> T:
            return function(*args, **kwargs)

        return self.run(call())

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Cluster:
    """An embedded cluster in a thread of its own, as tests without a loop see it."""

    def __init__(self, thread: LoopThread, cluster: EmbeddedCluster) -> None:
        self._thread = thread
        self._cluster = cluster
        self.servers = cluster.bootstrap_servers

    def create_topic(self, name: str, partitions: int = 1, **more: Any) -> None:
        self._thread.call(self._cluster.create_topic, name, partitions, **more)

    def stop_node(self, node_id: int) -> None:
        self._thread.run(self._cluster.stop_node(node_id))

    def topics(self) -> list[str]:
        return self._thread.call(lambda: sorted(self._cluster._state.topics))

    def topic(self, name: str) -> Topic:
        return self._thread.call(self._cluster.topic, name)

    def records(self, topic: str, partition: int = 0) -> list[Any]:
        return self._thread.call(lambda: list(self._cluster.log(topic, partition).records()))

    def values(self, topic: str, partition: int = 0) -> list[bytes]:
        return [record.value for record in self.records(topic, partition)]

    def end_offset(self, topic: str, partition: int = 0) -> int:
        return self._thread.call(lambda: self._cluster.log(topic, partition).log_end_offset)

    def wait_for(self, topic: str, count: int) -> None:
        """Until partition 0 has so many records."""
        there = threading.Event()

        def look(_: object = None) -> None:
            if self._cluster.log(topic).log_end_offset >= count:
                there.set()

        def watch() -> None:
            self._cluster.topic(topic).partitions[0].watch(look)
            look()

        self._thread.call(watch)
        there.wait()


@pytest.fixture(scope="session")
def loop_thread() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


@pytest.fixture
def start_cluster(loop_thread: LoopThread) -> Iterator[Callable[..., Cluster]]:
    """Starts clusters: ``start_cluster(nodes=2, configs={...})``."""
    started = []

    def start(**config: Any) -> Cluster:
        cluster = EmbeddedCluster(**config)
        loop_thread.run(cluster.start())
        started.append(cluster)
        return Cluster(loop_thread, cluster)

    yield start
    for cluster in started:
        loop_thread.run(cluster.close())


@pytest.fixture
def cluster(start_cluster: Callable[..., Cluster]) -> Cluster:
    """A cluster of one node with topic t, which creates no topics by itself."""
    cluster = start_cluster(configs={"auto.create.topics.enable": "false"})
    cluster.create_topic("t")
    return cluster


@pytest.fixture
def closed_port() -> str:
    """An address without a listener."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return f"127.0.0.1:{port}"


@pytest.fixture
def http_server(loop_thread: LoopThread) -> Iterator[str]:
    """The address of an HTTP server."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = loop_thread.run(asyncio.start_server(answer, "127.0.0.1", 0))
    yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    loop_thread.call(server.close)
    loop_thread.run(server.wait_closed())


class Result:
    """What came of a command."""

    def __init__(self, status: int, out: str, err: str) -> None:
        assert "Traceback" not in out + err, out + err
        self.status = status
        self.out = out
        self.err = err

    def __repr__(self) -> str:
        return f"status {self.status}\n--- stdout\n{self.out}--- stderr\n{self.err}"


Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Runs a command in this process: ``run("send", "t", path)``."""

    def run(*args: object, input: bytes | None = None) -> Result:
        result = CliRunner().invoke(make_app(), [str(arg) for arg in args], input=input, prog_name="aioproducer")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Result(result.exit_code, result.stdout, result.stderr)

    return run


def environment(**more: str) -> dict[str, str]:
    """For subprocesses: they import the package that is being tested."""
    return {**os.environ, "PYTHONPATH": str(Path(aioproducer.__file__).parents[1]), **more}


COMMAND = [sys.executable, "-m", "aioproducer"]


@pytest.fixture
def run_process() -> Run:
    """Runs a command as a process of its own, its output piped; ``more`` variables are in its environment."""

    def run(*args: object, input: bytes = b"", **more: str) -> Result:
        done = subprocess.run([*COMMAND, *map(str, args)], input=input, capture_output=True, env=environment(**more))
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def run_on_terminal() -> Run:
    """Runs a command with a pseudo terminal as its standard input, output and error, which come back as one."""

    def run(*args: object) -> Result:
        ours, child = pty.openpty()
        with open(ours, "rb", buffering=0) as screen:
            process = subprocess.Popen(
                [*COMMAND, *map(str, args)],
                stdin=child,
                stdout=child,
                stderr=child,
                env=environment(TERM="xterm-256color", COLUMNS="100"),
            )
            os.close(child)
            seen = b""
            try:
                while chunk := screen.read(65536):
                    seen += chunk
            except OSError:
                pass  # so Linux says that the last writer has gone
            return Result(process.wait(), seen.decode(), "")

    return run


@pytest.fixture
def start_process() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a command whose standard input, output and error are pipes; it is gone when the test ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*args: object) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        process = subprocess.Popen([*COMMAND, *map(str, args)], stdin=pipe, stdout=pipe, stderr=pipe, env=environment())
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
