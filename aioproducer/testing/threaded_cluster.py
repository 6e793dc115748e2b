"""The embedded cluster on an event loop in its own thread: for tests with any event loop, or without one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from aioproducer.broker import EmbeddedCluster
from aioproducer.records.record import Record
from aioproducer.testing.faults.fault_script import FaultScript
from aioproducer.types import TopicPartition

T = TypeVar("T")


class ThreadedCluster:
    """An :class:`~aioproducer.broker.EmbeddedCluster` for use from any thread, with or without an event loop.

    ::

        with ThreadedCluster(nodes=3, topics={"orders": 6}) as cluster:
            producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})

    ``topics`` are names with numbers of partitions; they are created before clients can connect. All other arguments
    are those of ``EmbeddedCluster``. Calls return when the broker has carried them out, within about a millisecond, and
    raise the same errors as the calls of that class.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        topics: Mapping[str, int] | Iterable[str] = (),
        configs: Mapping[str, object] | None = None,
        **options: Any,
    ) -> None:
        self.faults = FaultScript(nodes=nodes)
        """The script of faults; empty until rules are added."""
        self._topics = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
        self._cluster = EmbeddedCluster(nodes, configs=configs, faults=self.faults, **options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Returns when clients can connect."""
        if self._thread is not None:
            raise RuntimeError("this cluster was started before")
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="aioproducer-broker", daemon=True)
        self._thread.start()
        try:
            started.result()
        except BaseException:
            if not started.cancel():
                self.close()  # the cluster has started all the same
            self._thread.join()
            raise
        return self

    def close(self) -> None:
        """Stops every node and the thread. After that no records can be read."""
        loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, started: Future[None]) -> None:
        try:
            asyncio.run(self._serve(started))
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    async def _serve(self, started: Future[None]) -> None:
        self._stopped = asyncio.Event()
        async with self._cluster:
            for name, partitions in self._topics.items():
                self._cluster.create_topic(name, partitions)
            self._loop = asyncio.get_running_loop()
            if started.set_running_or_notify_cancel():
                started.set_result(None)
                await self._stopped.wait()

    def call(self, function: Callable[[EmbeddedCluster], T]) -> T:
        """Calls ``function`` with the cluster, on its event loop, and returns the result; it must not block."""

        async def call() -> T:
            return function(self._cluster)

        return self.run(call())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs ``work`` on the cluster's event loop and returns its result."""
        if self._loop is None:
            work.close()
            raise RuntimeError("this cluster is not running")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # nodes

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of the running nodes, separated by commas."""
        return self.call(lambda cluster: cluster.bootstrap_servers)

    def bootstrap_servers_of(self, listener: str) -> str:
        """See ``EmbeddedCluster``."""
        return self.call(lambda cluster: cluster.bootstrap_servers_of(listener))

    def start_node(self, node_id: int) -> None:
        """Starts a node again, on the port it had."""
        self.run(self._cluster.start_node(node_id))

    def stop_node(self, node_id: int) -> None:
        """Stops a node as if it had crashed: connections drop, leaders move, connects are refused."""
        self.run(self._cluster.stop_node(node_id))

    # topics

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        assignments: Iterable[Sequence[int]] = (),
        configs: Mapping[str, object] | None = None,
    ) -> None:
        """See ``EmbeddedCluster.create_topic``."""
        self.call(
            lambda cluster: cluster.create_topic(
                name, partitions, replication_factor, assignments=assignments, configs=configs
            )
        )

    def delete_topic(self, name: str) -> None:
        """Deletes a topic with its records."""
        self.call(lambda cluster: cluster.delete_topic(name))

    def topics(self) -> dict[str, int]:
        """Every topic, with its number of partitions."""
        return self.call(lambda cluster: {topic.name: len(topic.partitions) for topic in cluster.topics})

    def alter_topic_configs(self, name: str, configs: Mapping[str, object | None]) -> None:
        """Sets configs of a topic; None resets one to its default."""
        self.call(lambda cluster: cluster.alter_topic_configs(name, configs))

    def alter_broker_configs(self, configs: Mapping[str, object | None], *, node_id: int | None = None) -> None:
        """Sets dynamic configs of one node, or of all; None resets one to its default. Returns when the listeners
        match the configs."""
        self.call(lambda cluster: cluster.alter_broker_configs(configs, node_id=node_id))
        self.run(self._cluster.listeners_changed())

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """The records of a partition, or of all partitions one after the other, including aborted ones.

        A topic that does not exist has no records.
        """

        def read(cluster: EmbeddedCluster) -> list[Record]:
            if all(known.name != topic for known in cluster.topics):
                return []
            partitions = cluster.topic(topic).partitions
            wanted = range(len(partitions)) if partition is None else [partition]
            return [record for index in wanted for record in cluster.log(topic, index).records()]

        return self.call(read)

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """The offset that the next record will get."""
        return self.call(lambda cluster: cluster.log(topic, partition).log_end_offset)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition; -1 for none."""
        return self.call(lambda cluster: cluster.leader(topic, partition))

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Makes another running node the leader, in a new leader epoch."""
        self.call(lambda cluster: cluster.move_leader(topic, partition, node_id))

    def hold_replica(self, topic: str, partition: int, node_id: int, *, in_sync: bool = True) -> None:
        """The replica on this node stops copying, so acks=all waits; see ``EmbeddedCluster.hold_replica``."""
        self.call(lambda cluster: cluster.hold_replica(topic, partition, node_id, in_sync=in_sync))

    def release_replica(self, topic: str, partition: int, node_id: int) -> None:
        """The replica on this node has caught up."""
        self.call(lambda cluster: cluster.release_replica(topic, partition, node_id))

    def expire_producers(self, topic: str, partition: int = 0, *, producer_id: int | None = None) -> None:
        """Makes a partition forget one idempotent producer, or all."""
        self.call(lambda cluster: cluster.expire_producers(topic, partition, producer_id=producer_id))

    # groups and transactions

    def move_coordinator(self, key: str, node_id: int) -> None:
        """Makes another node the coordinator of a group or of a transactional id."""
        self.call(lambda cluster: cluster.move_coordinator(key, node_id))

    def committed_offsets(self, group: str) -> dict[TopicPartition, int]:
        """The committed offsets of a group."""
        return self.call(lambda cluster: cluster.committed_offsets(group))
