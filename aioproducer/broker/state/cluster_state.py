"""The state that all nodes of the embedded cluster share: topics, leaders, producer ids.

Kafka's controller (``ReplicationControlManager``) decides it, and every broker has a copy. Here the nodes share one
process, so they share one object.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random, SystemRandom
from uuid import UUID

from aioproducer.broker.authorization.acl_store import AclStore
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.cluster_configs import ClusterConfigs, altered_topic
from aioproducer.broker.configs.config_changes import ConfigChange
from aioproducer.broker.configs.resource_configs import ResourceConfigs
from aioproducer.broker.configs.topic_config import TOPIC_CONFIGS_WITHOUT_EFFECT, TopicConfig
from aioproducer.broker.log.partition_log import PartitionLog
from aioproducer.broker.quotas.client_quotas import ClientQuotas
from aioproducer.broker.requests.long_work import Steps, finish
from aioproducer.broker.security.scram_credentials import ScramCredentials
from aioproducer.broker.state.cluster_journal import IN_MEMORY, ClusterJournal
from aioproducer.broker.state.cluster_nodes import ClusterNodes, Node
from aioproducer.broker.state.replica_assignment import checked_replicas, spread_replicas
from aioproducer.broker.state.topic import (
    NO_LEADER,
    HeldReplica,
    NewTopic,
    Partition,
    Topic,
    plain_name,
    validate_topic_name,
)
from aioproducer.errors import (
    InvalidPartitionsException,
    InvalidReplicaAssignmentException,
    InvalidTopicException,
    PolicyViolationException,
    TopicExistsException,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
)

log = logging.getLogger(__name__)

MAX_PARTITIONS = 200_000
"""The most partitions that all topics may have together. Each takes memory that no config limits."""

_PARTITIONS_AT_ONCE = 32


class ClusterState:
    """The shared state of a cluster whose nodes have these ids. ``random`` makes the ids of the cluster and its
    topics."""

    def __init__(
        self,
        node_ids: Sequence[int],
        config: BrokerConfig,
        random: Random | None = None,
        journal: ClusterJournal = IN_MEMORY,
    ) -> None:
        self._journal = journal
        self.random = random or SystemRandom()
        self.cluster_id = base64.urlsafe_b64encode(self._new_id().bytes).rstrip(b"=").decode()
        self.configs = ClusterConfigs(config)
        self.client_quotas = ClientQuotas()
        self.resource_configs = ResourceConfigs(journal.resource_configs_changed)
        self.acls = AclStore(journal.acl_changed)
        self.scram_credentials = ScramCredentials(journal.scram_credential_changed)
        self.nodes = ClusterNodes(node_ids)
        self.topics: dict[str, Topic] = {}
        self._topics_by_id: dict[UUID, Topic] = {}
        self._plain_names: dict[str, str] = {}
        self._partition_count = 0
        self.on_topic_deleted: list[Callable[[str], object]] = []
        """Called with the name of each deleted topic."""
        self._next_producer_id = 0
        self._next_first_replica = 0
        self._said_without_effect: set[str] = set()

    @property
    def config(self) -> BrokerConfig:
        """The configs that the cluster was started with; :attr:`configs` has those that may change while it runs."""
        return self.configs.static

    # nodes

    def node_started(self, node_id: int, advertised: Mapping[str, Node]) -> None:
        """The node is alive, and advertises these addresses by listener. It becomes the leader of leaderless partitions
        that have a replica on it."""
        self.nodes.started(node_id, advertised)
        for partition in self.partitions():
            if node_id in partition.replicas:
                if partition.leader == NO_LEADER:
                    self._elect(partition, node_id)
                else:
                    partition.replicate(self.in_sync_replicas(partition))

    def node_stopped(self, node_id: int) -> None:
        """The node has stopped. The first live replica of each partition that it led becomes the leader, if any."""
        self.nodes.stopped(node_id)
        for partition in self.partitions():
            if node_id in partition.replicas:
                partition.held.pop(node_id, None)
                if partition.leader == node_id:
                    self._elect(partition, self._leader_among(partition.replicas))
                else:
                    partition.replicate(self.in_sync_replicas(partition))

    def in_sync_replicas(self, partition: Partition) -> list[int]:
        return partition.in_sync_replicas(self.nodes.is_alive)

    def hold_replica(self, topic: str, index: int, node_id: int, *, in_sync: bool) -> None:
        """Stops the replica on a live follower from copying. Unless ``in_sync``, it also leaves the in-sync
        replicas."""
        partition = self.partition(topic, index)
        if node_id not in partition.replicas or node_id == partition.leader or not self.nodes.is_alive(node_id):
            raise InvalidReplicaAssignmentException(f"node {node_id} is no live follower of {partition}")
        held, log = partition.held.get(node_id), partition.log
        if held is None or (in_sync and not held.in_sync):  # a replica that comes back in sync has copied everything
            held = HeldReplica(log.log_end_offset, log.log_start_offset, in_sync)
        partition.held[node_id] = held._replace(in_sync=in_sync)
        partition.replicate(self.in_sync_replicas(partition))

    def release_replica(self, topic: str, index: int, node_id: int) -> None:
        """Lets the replica catch up and copy again."""
        partition = self.partition(topic, index)
        partition.held.pop(node_id, None)
        partition.replicate(self.in_sync_replicas(partition))

    # topics

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        return self._topics_by_id.get(topic_id)

    def find_partition(self, topic: str, index: int) -> Partition | None:
        found = self.topics.get(topic)
        return None if found is None else found.partition(index)

    def partition(self, topic: str, index: int) -> Partition:
        """Raises :class:`UnknownTopicOrPartitionException`."""
        partition = self.find_partition(topic, index)
        if partition is None:
            raise UnknownTopicOrPartitionException(f"there is no partition {topic}-{index}")
        return partition

    def create_topic(self, new: NewTopic, *, validate_only: bool = False) -> Topic:
        """Creates the topic; with ``validate_only`` it only returns the topic that it would create."""
        return finish(self.creating_topic(new, validate_only=validate_only))

    def creating_topic(self, new: NewTopic, *, validate_only: bool = False) -> Steps[Topic]:
        """Does :meth:`create_topic` in steps; the last one creates the topic."""
        self._validate_new_name(new.name)
        configs = dict(new.configs or {})
        topic = Topic(new.name, self._new_id(), [], self.configs.topic(configs), configs, self._node_configs(configs))
        assignments = self._assign(new)
        self._check_room(len(assignments))
        yield from self._add_partitions(topic, topic.partitions, assignments)
        self._validate_new_name(new.name)
        if not validate_only:
            self._put(topic)
            self._say_without_effect(configs)
            self._journal.topic_changed(topic)
        return topic

    def restore_topic(self, topic: Topic) -> None:
        """Restores a topic from before a restart; its partitions have no leaders yet."""
        self._put(topic)
        finish(self._reconfigure(topic))

    def _put(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self._topics_by_id[topic.id] = topic
        self._plain_names[plain_name(topic.name)] = topic.name
        self._next_first_replica += len(topic.partitions)
        self._partition_count += len(topic.partitions)

    def create_partitions(
        self, name: str, count: int, assignments: Sequence[Sequence[int]] | None = None, *, validate_only: bool = False
    ) -> None:
        """Gives a topic ``count`` partitions in all; ``assignments`` has the replicas of the new ones."""
        finish(self.creating_partitions(name, count, assignments, validate_only=validate_only))

    def creating_partitions(
        self, name: str, count: int, assignments: Sequence[Sequence[int]] | None = None, *, validate_only: bool = False
    ) -> Steps[None]:
        """Does :meth:`create_partitions` in steps; the last one creates the partitions."""
        topic = self.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionException(f"there is no topic {name!r}")
        present = len(topic.partitions)
        if count <= present:
            raise InvalidPartitionsException(f"topic {name!r} has {present} partitions: {count} would not be more")
        self._check_room(count - present)
        factor = len(topic.partitions[0].replicas)
        if assignments is None:
            new = self._assign(NewTopic(name, count - present, factor))
        elif len(assignments) != count - present:
            raise InvalidReplicaAssignmentException(
                f"{count - present} partitions are to be added, and replicas are assigned to {len(assignments)}"
            )
        else:
            new = self._checked(assignments, factor)
        if validate_only:
            return
        added: list[Partition] = []
        yield from self._add_partitions(topic, added, new, present)
        if self.topics.get(name) is not topic or len(topic.partitions) != present:
            raise InvalidPartitionsException(f"topic {name!r} was deleted or given partitions by another request")
        topic.partitions += added
        self._next_first_replica += len(added)
        self._partition_count += len(added)
        self._journal.topic_changed(topic)

    def _check_room(self, count: int) -> None:
        if self._partition_count + count > MAX_PARTITIONS:
            raise PolicyViolationException(
                f"the cluster has {self._partition_count} partitions and can have {MAX_PARTITIONS}: no room for {count}"
            )

    def _add_partitions(
        self, topic: Topic, partitions: list[Partition], assignments: Sequence[tuple[int, ...]], first: int = 0
    ) -> Steps[None]:
        """Appends new partitions of a topic to a list, with the leaders and configs of the last step."""
        seen = self._what_partitions_depend_on(topic)
        for index, replicas in enumerate(assignments, start=first):
            batches = self._journal.batches(topic.name, topic.id, index, topic.config)
            log = PartitionLog(f"{topic.name}-{index}", topic.config, batches)
            partition = Partition(topic.name, index, replicas, log, self._leader_among(replicas))
            self._configure(topic, partition)
            partitions.append(partition)
            if index % _PARTITIONS_AT_ONCE == _PARTITIONS_AT_ONCE - 1:
                yield
        if self._what_partitions_depend_on(topic) != seen:  # something has changed in between
            topic.config, topic.node_configs = self.configs.topic(topic.configs), self._node_configs(topic.configs)
            for partition in partitions:
                partition.leader = self._leader_among(partition.replicas)
                self._configure(topic, partition)

    def _what_partitions_depend_on(self, topic: Topic) -> object:
        return self.nodes.alive_ids, self.configs.topic(topic.configs), self._node_configs(topic.configs)

    def delete_topic(self, name: str) -> Topic:
        return finish(self.deleting_topic(name))

    def deleting_topic(self, name: str) -> Steps[Topic]:
        """Does :meth:`delete_topic` in steps. The first one deletes the topic, the others tell those that wait for
        records of its partitions."""
        topic = self.topics.pop(name, None)
        if topic is None:
            raise UnknownTopicOrPartitionException(f"there is no topic {name!r}")
        del self._topics_by_id[topic.id]
        del self._plain_names[plain_name(name)]
        self._partition_count -= len(topic.partitions)
        self._journal.topic_deleted(topic)
        for callback in self.on_topic_deleted:
            callback(name)
        for index, partition in enumerate(topic.partitions):
            if index % _PARTITIONS_AT_ONCE == 0:
                yield
            partition.elect(NO_LEADER)
        return topic

    def deleting_topic_by_id(self, topic_id: UUID) -> Steps[Topic]:
        """Does the same to the topic with this id."""
        topic = self._topics_by_id.get(topic_id)
        if topic is None:
            raise UnknownTopicIdException(f"there is no topic with id {topic_id}")
        return (yield from self.deleting_topic(topic.name))

    def move_leader(self, topic: str, index: int, node_id: int) -> None:
        """Makes a live node the leader, and a replica if it was none (as a reassignment would)."""
        partition = self.partition(topic, index)
        if not self.nodes.is_alive(node_id):
            raise InvalidReplicaAssignmentException(f"node {node_id} is not alive")
        if node_id not in partition.replicas:
            partition.replicas = (node_id, *partition.replicas[1:])
            self._journal.topic_changed(self.topics[topic])
        if partition.leader != node_id:
            self._elect(partition, node_id)

    def _leader_among(self, replicas: Iterable[int]) -> int:
        first = self.nodes.first_alive(replicas)
        return NO_LEADER if first is None else first

    def _elect(self, partition: Partition, leader: int) -> None:
        partition.elect(leader)
        topic = self.topics[partition.topic]
        self._configure(topic, partition)
        self._journal.leader_elected(topic.id, partition.index, partition.leader_epoch)

    def partitions(self) -> list[Partition]:
        """The partitions of all topics."""
        return [partition for topic in self.topics.values() for partition in topic.partitions]

    def _validate_new_name(self, name: str) -> None:
        validate_topic_name(name)
        if name in self.topics:
            raise TopicExistsException(f"topic {name!r} exists already")
        other = self._plain_names.get(plain_name(name))
        if other is not None:
            raise InvalidTopicException(f"topic {name!r} collides with {other!r}: '.' and '_' count as the same")

    def _assign(self, new: NewTopic) -> list[tuple[int, ...]]:
        if new.assignments:
            return self._checked(new.assignments, len(new.assignments[0]))
        partitions = self.config.num_partitions if new.partitions == -1 else new.partitions
        factor = self.config.default_replication_factor if new.replication_factor == -1 else new.replication_factor
        return spread_replicas(partitions, factor, self.nodes.alive_ids, self._next_first_replica)

    def _checked(self, assignments: Iterable[Sequence[int]], factor: int) -> list[tuple[int, ...]]:
        alive, nodes = frozenset(self.nodes.alive_ids), frozenset(self.nodes.ids)
        return [checked_replicas(replicas, factor, nodes, alive) for replicas in assignments]

    def _new_id(self) -> UUID:
        return UUID(int=self.random.getrandbits(128), version=4)

    # configs

    def alter_topic_configs(self, name: str, changes: Iterable[ConfigChange], *, validate_only: bool = False) -> None:
        """Changes a topic's configs: all of them, or none if it raises."""
        topic = self.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionException(f"there is no topic {name!r}")
        configs = altered_topic(topic.configs, changes)
        config = self.configs.topic(configs)
        if not validate_only:
            self._say_without_effect(configs)
            topic.configs, topic.config = configs, config
            finish(self._reconfigure(topic))
            self._journal.topic_changed(topic)

    def alter_broker_configs(self, node: str, changes: Iterable[ConfigChange], *, validate_only: bool = False) -> None:
        """Changes configs of one node, or of all nodes (see :class:`ClusterConfigs`): all, or none if it raises."""
        finish(self.altering_broker_configs(node, changes, validate_only=validate_only))

    def altering_broker_configs(
        self, node: str, changes: Iterable[ConfigChange], *, validate_only: bool = False
    ) -> Steps[None]:
        """Does :meth:`alter_broker_configs` in steps: one topic after the other gets its new configs."""
        self.configs.alter(node, changes, validate_only=validate_only)
        if validate_only:
            return
        self._journal.broker_configs_changed(node, self.configs.dynamic(node))
        for topic in tuple(self.topics.values()):
            topic.config = self.configs.topic(topic.configs)
            yield from self._reconfigure(topic)
            yield

    def _node_configs(self, configs: Mapping[str, str]) -> dict[int, TopicConfig]:
        """The effective configs of a topic on each node that has configs of its own."""
        return {
            node_id: self.configs.topic(configs, node_id) for node_id in self.nodes.ids if self.configs.differs(node_id)
        }

    def _reconfigure(self, topic: Topic) -> Steps[None]:
        topic.node_configs = self._node_configs(topic.configs)
        for partition in tuple(topic.partitions):
            self._configure(topic, partition)
            if partition.index % _PARTITIONS_AT_ONCE == _PARTITIONS_AT_ONCE - 1:
                yield

    def _configure(self, topic: Topic, partition: Partition) -> None:
        # In Kafka each replica remembers as many batches as its node's config says. The shared log here remembers the
        # largest of these numbers.
        retain = max(topic.config_on(node_id).producer_state_batches_to_retain for node_id in partition.replicas)
        partition.log.configure(topic.config_on(partition.leader), retain)
        partition.replicate(self.in_sync_replicas(partition))

    def _say_without_effect(self, configs: Iterable[str]) -> None:
        for name in (TOPIC_CONFIGS_WITHOUT_EFFECT & frozenset(configs)) - self._said_without_effect:
            self._said_without_effect.add(name)
            log.warning("topic config %s is stored without effect in the embedded broker", name)

    # producers

    def allocate_producer_id(self) -> int:
        """Allocates a new producer id."""
        allocated = self._next_producer_id
        self._next_producer_id += 1
        self._journal.producer_id_allocated(self._next_producer_id)
        return allocated

    def restore_producer_ids(self, next_producer_id: int) -> None:
        """The producer ids before ``next_producer_id`` were allocated before a restart."""
        self._next_producer_id = next_producer_id
