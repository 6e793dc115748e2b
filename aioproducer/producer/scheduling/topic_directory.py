"""Keeps the accumulator's topics in step with the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from aioproducer.net.metadata.cluster import NO_TOPIC_ID, Cluster, TopicMetadata
from aioproducer.producer.accumulator.built_in_partitioner import Partitioning
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import TopicQueues
from aioproducer.producer.idempotence.producer_ids import ProducerIds
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.scheduling.readiness import NO_LEADER, ReadySet
from aioproducer.producer.scheduling.wait_history import note_leader
from aioproducer.producer.windows.in_flight_windows import InFlightWindows
from aioproducer.types import PartitionInfo

STEP: Final = 64
"""Partitions between two pauses: well below half a millisecond."""


class TopicDirectory:
    """Partitions come, leaders move, topics are created anew; a topic that is missing from the cluster stays as it was.

    ``ids`` is None for a producer without idempotence, ``rack`` the one to prefer (partitioner.rack.aware), or None.
    ``arrived(topic)`` is called in the step in which a topic's partitions come, before anybody can send to these: older
    records may wait for them.
    """

    def __init__(
        self,
        topics: dict[str, TopicQueues],
        partitioning: Partitioning,
        ready: ReadySet,
        windows: InFlightWindows,
        ids: ProducerIds | None,
        rack: str | None = None,
        *,
        arrived: Callable[[str], object] = lambda topic: None,
    ) -> None:
        self.topics = topics
        """By name."""
        self._partitioning = partitioning
        self._ready = ready
        self._windows = windows
        self._ids = ids
        self._rack = rack
        self._arrived = arrived
        self._followed: dict[str, TopicMetadata] = {}
        self._gone: dict[str, list[PartitionQueue]] = {}
        """By topic, the partitions that it had when it was larger, in order: the first returns first."""
        self._moved_meanwhile: set[PartitionQueue] = set()
        """Partitions that got a newer leader while a cluster is being followed."""

    def following(self, cluster: Cluster, now: float) -> Iterator[None]:
        """Applies the cluster's state, with a pause after every few topics and partitions."""
        self._moved_meanwhile = set()
        if self._rack is not None:
            self._locate(cluster)
        for number, (name, topic) in enumerate(cluster.topics.items()):
            if number % STEP == STEP - 1:
                yield
            if self._followed.get(name) is topic:
                continue
            queues = self.topics.get(name)
            if queues is None:
                queues = self.topics[name] = TopicQueues(name, topic.topic_id, self._partitioning)
            yield from self._take(queues, topic, now)
            self._followed[name] = topic  # not before: an interrupted run must be repeated
            self._arrived(name)

    def partitions(self, topic: str) -> Sequence[PartitionInfo]:
        """Those that have come, as they were then; none while the topic is unknown."""
        followed = self._followed.get(topic)
        return () if followed is None else followed.partitions

    def _locate(self, cluster: Cluster) -> None:
        in_rack = {node.node_id for node in cluster.nodes.values() if node.rack == self._rack}
        if in_rack != self._partitioning.in_rack:
            self._partitioning.in_rack = in_rack
            for queues in self.topics.values():
                queues.partitioner.leaders_changed()

    def _take(self, queues: TopicQueues, topic: TopicMetadata, now: float) -> Iterator[None]:
        proven = NO_TOPIC_ID not in (topic.topic_id, queues.topic_id) and topic.topic_id != queues.topic_id
        smaller = len(topic.partitions) < len(queues.queues)
        if proven or smaller:
            yield from self._created_anew(queues, len(topic.partitions), now, proven=proven)
        if smaller or topic.topic_id != NO_TOPIC_ID:  # a broker without topic ids proves nothing
            queues.topic_id = topic.topic_id
        known = len(queues.queues)
        for queue, info in zip(queues.queues, topic.partitions, strict=False):
            if queue.partition % STEP == 0:
                yield
            if queue not in self._moved_meanwhile:
                self._lead(queue, info, now)
        new: list[PartitionQueue] = []
        for number in range(known, len(topic.partitions)):
            if number % STEP == 0:
                yield
            new.append(self._queue(queues.name, number))
            self._lead(new[-1], topic.partitions[number], now)
        if new:
            self._set_gone(queues.name, self._gone.get(queues.name, [])[len(new) :])
            queues.queues += new
            queues.partitioner.follow(queues.queues)

    def _queue(self, topic: str, partition: int) -> PartitionQueue:
        """The sequences of a partition that was gone, perhaps only from the metadata of a lagging broker: they
        continue, as a fresh start under the same id would look like batches that are in the log."""
        gone = self._gone.get(topic, ())
        place = partition - len(self.topics[topic].queues)
        if place < len(gone):
            queue = gone[place]
            queue.busy = False  # the partitioner has forgotten it
            return queue
        return PartitionQueue(topic, partition, None if self._ids is None else PartitionSequences(self._ids))

    def _set_gone(self, topic: str, gone: list[PartitionQueue]) -> None:
        if gone:
            self._gone[topic] = gone
        else:
            self._gone.pop(topic, None)

    def leaders_moved(self, moved: Iterable[PartitionInfo], now: float) -> None:
        """Applies only new leaders of known partitions; the cost of each does not depend on the cluster's size."""
        for info in moved:
            queue = self.topics[info.topic].queues[info.partition]
            self._lead(queue, info, now)
            self._moved_meanwhile.add(queue)

    def _lead(self, queue: PartitionQueue, info: PartitionInfo, now: float) -> None:
        if info.leader_epoch < queue.leader_epoch and queue.sequences is not None:
            # Epochs only grow, unless brokers stop sending them.
            queue.sequences.log_is_new(proven=False, may_be_old=info.leader_epoch < 0)
            queue.put_in_order()
        if info.leader != queue.leader or info.leader_epoch != queue.leader_epoch:
            self._move(queue, info.leader, info.leader_epoch, now)
            if queue.batches:
                self._ready.add(queue)  # a new leader is tried at once, without back-off

    def _created_anew(self, queues: TopicQueues, partitions: int, now: float, *, proven: bool) -> Iterator[None]:
        """Another topic has the name now; batches for a partition that it lacks wait until it exists.

        ``proven``: it has another id. Without leaders nothing is sent before all partitions are those of the new topic:
        a request names one topic for all of its batches.
        """
        for queue in queues.queues:
            if queue.partition % STEP == STEP - 1:
                yield
            self._moved_meanwhile.discard(queue)
            if queue.leader != NO_LEADER or queue.leader_epoch >= 0:
                self._move(queue, NO_LEADER, -1, now)
        gone = self._gone.get(queues.name, [])
        for number, queue in enumerate(chain(queues.queues, gone)):
            if number % STEP == STEP - 1:
                yield
            if queue.sequences is not None:
                queue.sequences.log_is_new(proven=proven)
                queue.put_in_order()
        self._set_gone(queues.name, queues.queues[partitions:] + gone)
        queues.queues = queues.queues[:partitions]
        queues.partitioner.follow(queues.queues)

    def _move(self, queue: PartitionQueue, leader: int, leader_epoch: int, now: float) -> None:
        old, queue.leader, queue.leader_epoch = queue.leader, leader, leader_epoch
        note_leader(queue, now, old)
        self._ready.leader_changed(queue, old)
        self._windows.leader_changed(queue)
        if self._rack is not None or (old == NO_LEADER) != (leader == NO_LEADER):
            self.topics[queue.topic].partitioner.leaders_changed()
