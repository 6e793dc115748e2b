"""A real Apache Kafka cluster on 127.0.0.1 for tests and benchmarks. Closing it removes its processes and data.

    async with ApacheKafka() as kafka:                  # or: with ApacheKafka(nodes=3) as kafka:
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
        ...
        records = await kafka.tools.console_consumer("orders", max_messages=10)

Needs Java (17 for Kafka 4, 11 for Kafka 3.9) and, the first time, Maven. Linux and macOS.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aioproducer.testing.kafka.class_archive import archive_flags, kafka_archive
from aioproducer.testing.kafka.kafka_jvm import PERFORMANCE, QUICK_START, jvm_command
from aioproducer.testing.kafka.kafka_libs import DEFAULT_VERSION, KafkaFailed, KafkaUnavailable, fetch_kafka, find_java
from aioproducer.testing.kafka.kafka_node import KafkaNode, known_brokers
from aioproducer.testing.kafka.kafka_tools import KafkaTools
from aioproducer.testing.process_guard import ProcessGuard

__all__ = ["QUICK_FAILOVER", "ApacheKafka", "KafkaFailed", "KafkaTools", "KafkaUnavailable", "fetch_kafka"]

QUICK_FAILOVER: Final = {"broker.session.timeout.ms": 4000, "broker.heartbeat.interval.ms": 500}
"""``configs`` for tests that stop nodes. By default a node that comes back waits 9 s, until its former session times
out, and partitions led by a node that crashed have no leader for the same time."""

_POLL_INTERVAL = 0.05


class ApacheKafka:
    """A KRaft cluster of ``nodes`` combined nodes (broker and controller each), ids 1 to ``nodes``.

    ``configs`` are broker configs in Kafka's dotted names; they override the ones set here. ``listeners`` maps the
    names of further listeners to their security protocols, as in ``{"SECURE": "SASL_PLAINTEXT"}``; ``configs`` must
    hold what these need. ``classpath`` has directories or jars with classes that ``configs`` name. ``performance``
    gives the brokers Kafka's own JVM settings, with a heap of 1 GB, instead of those that start fastest. ``jvm_flags``
    are further flags of those; without any, a broker takes its classes from an archive if there is one
    (``class_archive.py``).
    ``start_timeout`` (seconds) bounds ``start`` and ``start_node``.

    Works with ``with`` and ``async with``, or with ``start()`` and ``stop()``. All methods block; asynchronous code
    calls them through ``asyncio.to_thread``. The data is in a temporary directory, which ``stop`` removes. When this
    process ends in any way, the brokers end too, and the data is removed.
    """

    def __init__(
        self,
        version: str = DEFAULT_VERSION,
        *,
        nodes: int = 1,
        configs: Mapping[str, str | int | float | bool] | None = None,
        listeners: Mapping[str, str] | None = None,
        classpath: Sequence[Path] = (),
        performance: bool = False,
        jvm_flags: Sequence[str] = (),
        start_timeout: float = 90.0,
    ) -> None:
        if nodes < 1:
            raise ValueError(f"a cluster has at least one node: got {nodes}")
        self.version = version
        self._configs = {name: _text(value) for name, value in (configs or {}).items()}
        self._protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **(listeners or {})}
        self._classpath = tuple(classpath)
        self._performance = performance
        self._jvm_flags = tuple(jvm_flags)
        self._start_timeout = start_timeout
        self.node_ids = range(1, nodes + 1)
        self._nodes: dict[int, KafkaNode] = {}
        self._ports: dict[tuple[int, str], int] = {}
        self._reserved: list[socket.socket] = []
        self._directory: Path | None = None
        self._guard: ProcessGuard | None = None
        self._libs: Path | None = None
        self._given_up = threading.Event()

    # -- the whole cluster

    def start(self) -> None:
        """Start all nodes and wait until each node answers and knows all others.

        Raises ``KafkaUnavailable`` when this machine cannot run Kafka, and ``KafkaFailed``, with the end of the node's
        log, when a node does not start in time. A failed start leaves no processes and no data behind.
        """
        if self._guard is not None:
            raise RuntimeError("the cluster is started already")
        self._libs = fetch_kafka(self.version)
        java = find_java(self.version)
        deadline = time.monotonic() + self._start_timeout
        try:
            self._directory = Path(tempfile.mkdtemp(prefix="aioproducer-kafka-"))
            guard = self._guard = ProcessGuard(self._directory)
            archived = archive_flags(kafka_archive(self._libs, java, "broker"))
            flags = PERFORMANCE if self._performance else QUICK_START + (self._jvm_flags or archived)
            level = "warn" if self._performance else "info"
            jvm = jvm_command(java, self._libs, flags, log_level=level, classpath=self._classpath)
            self._reserve_ports()
            for node_id in self.node_ids:
                self._nodes[node_id] = KafkaNode(
                    node_id,
                    port=self._ports[node_id, "PLAINTEXT"],
                    jvm=jvm,
                    configs=self._node_configs(node_id),
                    directory=self._directory / f"node-{node_id}",
                )
            self._format(guard, deadline)
            for node in self._nodes.values():
                node.start(guard)
            for node in self._nodes.values():
                self._wait_until_serving(node, set(self.node_ids), deadline)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all nodes and remove their data; harmless when nothing runs.

        The nodes are killed. The data is not needed any more, so a controlled shutdown would gain nothing, and the
        last nodes of a quorum would wait for it in vain.
        """
        with contextlib.ExitStack() as stack:  # runs every step, even if another one fails
            for reserved in self._reserved:
                stack.callback(reserved.close)
            if self._guard is not None:
                stack.callback(self._guard.close)
            if self._directory is not None and self._directory.exists():
                stack.callback(shutil.rmtree, self._directory)
            for node in self._nodes.values():
                stack.callback(node.kill)
        self._nodes, self._ports, self._reserved = {}, {}, []
        self._guard = self._directory = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # A thread cannot be cancelled: ask it to give up, and wait until it has cleaned up.
            self._given_up.set()
            await asyncio.wait([starting])
            self._given_up.clear()
            if starting.exception() is None:
                self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    # -- what a client needs to know

    @property
    def bootstrap_servers(self) -> str:
        """``127.0.0.1:PORT[,...]`` of the plain listener."""
        return self.bootstrap_servers_of("PLAINTEXT")

    def bootstrap_servers_of(self, listener: str) -> str:
        """``127.0.0.1:PORT[,...]`` of one of the further listeners."""
        if not self._ports:
            raise RuntimeError("the cluster is not started")
        return ",".join(f"127.0.0.1:{self._ports[node_id, listener]}" for node_id in self.node_ids)

    @property
    def libs(self) -> Path:
        """The directory of the jars the cluster runs from."""
        if self._libs is None:
            raise RuntimeError("the cluster is not started")
        return self._libs

    @property
    def tools(self) -> KafkaTools:
        """Kafka's command line tools of the same release, for this cluster."""
        return KafkaTools(self.libs, self.bootstrap_servers)

    def data_directory(self, node_id: int) -> Path:
        """Where a node keeps its partitions, one directory ``TOPIC-PARTITION`` each."""
        return self._node(node_id).data

    def log_tail(self, node_id: int, lines: int = 40) -> str:
        """The last lines of a node's log."""
        return self._node(node_id).log_tail(lines)

    def log_of(self, node_id: int, word: str, lines: int = 40) -> str:
        """The last lines of a node's log that contain ``word``."""
        return self._node(node_id).log_of(word, lines)

    # -- one node

    def start_node(self, node_id: int) -> None:
        """Start a stopped or killed node again, with its data and its ports, and wait until it answers.

        The controllers accept it once its former session has ended: ``broker.session.timeout.ms``, 9 s by default.
        """
        node, guard = self._node(node_id), self._guard
        assert guard is not None
        node.start(guard)
        self._wait_until_serving(node, {node_id}, time.monotonic() + self._start_timeout)

    def stop_node(self, node_id: int, *, timeout: float = 30.0) -> None:
        """Shut a node down after its leaderships have moved away; kill it if that takes over ``timeout`` seconds."""
        self._node(node_id).stop(timeout)

    def kill_node(self, node_id: int) -> None:
        """Crash a node."""
        self._node(node_id).kill()

    def pause_node(self, node_id: int) -> None:
        """Make a node hang until ``resume_node``: its connections stay open, but it answers nothing."""
        self._node(node_id).pause()

    def resume_node(self, node_id: int) -> None:
        self._node(node_id).resume()

    def known_brokers(self, node_id: int) -> set[int]:
        """The ids of the live brokers that this node knows; ``OSError`` if it does not answer."""
        return known_brokers(self._node(node_id).port)

    def is_running(self, node_id: int) -> bool:
        return self._node(node_id).running

    def pid(self, node_id: int) -> int:
        """The process id of a running node."""
        return self._node(node_id).pid

    def _node(self, node_id: int) -> KafkaNode:
        if node_id not in self._nodes:
            raise ValueError(f"no node {node_id} in this cluster; running nodes: {sorted(self._nodes) or 'none'}")
        return self._nodes[node_id]

    # -- how it comes up

    def _reserve_ports(self) -> None:
        """A free port for each listener of each node.

        On Linux a socket that is bound but does not listen keeps the port from other processes, yet lets the broker
        bind and listen, because both set SO_REUSEADDR. So ports stay reserved while a node is down, and connecting to
        them is refused. On other systems the ports are only free at this moment.
        """
        for node_id in self.node_ids:
            for listener in self._protocols:
                reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                self._reserved.append(reserved)
                reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                reserved.bind(("127.0.0.1", 0))
                self._ports[node_id, listener] = reserved.getsockname()[1]
        if sys.platform != "linux":
            while self._reserved:
                self._reserved.pop().close()

    def _node_configs(self, node_id: int) -> dict[str, str]:
        nodes = len(self.node_ids)
        replicas, in_sync = str(min(3, nodes)), str(min(2, nodes))
        addresses = {name: f"{name}://127.0.0.1:{self._ports[node_id, name]}" for name in self._protocols}
        configs = {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "controller.quorum.voters": ",".join(
                f"{voter}@127.0.0.1:{self._ports[voter, 'CONTROLLER']}" for voter in self.node_ids
            ),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in self._protocols.items()),
            "listeners": ",".join(addresses.values()),
            "advertised.listeners": ",".join(addresses[name] for name in addresses if name != "CONTROLLER"),
            # Test consumers need not wait for other members, and a few groups need few internal partitions.
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "3",
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": "3",
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
        }
        if not self.version.startswith("3."):
            configs["share.coordinator.state.topic.num.partitions"] = "3"
            configs["share.coordinator.state.topic.replication.factor"] = replicas
            configs["share.coordinator.state.topic.min.isr"] = in_sync
        if not self._performance:
            # By default the log cleaner takes 128 MiB of heap for its map of keys, used or not.
            configs["log.cleaner.dedupe.buffer.size"] = str(4 << 20)
        return {**configs, **self._configs}

    def _format(self, guard: ProcessGuard, deadline: float) -> None:
        """Format the storage of all nodes in parallel: most of the time is the start of a JVM."""
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # The tool would take an id that begins with a dash for an option.
        cluster_id = cluster_id.replace("-", "A")
        formats = {node: node.format(cluster_id, guard) for node in self._nodes.values()}
        with contextlib.ExitStack() as stack:
            for process in formats.values():
                stack.callback(process.wait)
                stack.callback(process.kill)
            for node, process in formats.items():
                try:
                    status = process.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    raise KafkaFailed(f"formatting node {node.node_id} took too long:\n{node.log_tail()}") from None
                if status != 0:
                    raise KafkaFailed(
                        f"formatting node {node.node_id} ended with exit status {status}:\n{node.log_tail()}"
                    )

    def _wait_until_serving(self, node: KafkaNode, expected: set[int], deadline: float) -> None:
        for pause in self._until(deadline):
            node.check_running()
            try:
                known = known_brokers(node.port)
            except OSError as error:
                answer = str(error)
            else:
                if expected <= known:
                    return
                answer = f"it knows the brokers {sorted(known)} and should know {sorted(expected)}"
            if self._given_up.wait(pause):
                raise KafkaFailed(f"node {node.node_id}: starting was given up")
        raise KafkaFailed(
            f"node {node.node_id} did not serve within {self._start_timeout:g} s ({answer}):\n{node.log_tail()}"
        )

    @staticmethod
    def _until(deadline: float) -> Iterator[float]:
        """Yields the pause after each attempt: once, then until the deadline."""
        yield _POLL_INTERVAL
        while time.monotonic() < deadline:
            yield _POLL_INTERVAL


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
