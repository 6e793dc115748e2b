"""The contents of an embedded cluster: topics, records, configs, quotas, committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aioproducer.acls import AclBinding, AclBindingFilter
from aioproducer.broker.configs.cluster_configs import ALL_NODES
from aioproducer.broker.configs.config_changes import ConfigChange, OpType
from aioproducer.broker.configs.resource_configs import Owner
from aioproducer.broker.coordinators.transaction_coordinator import TransactionCoordinator
from aioproducer.broker.log.partition_log import PartitionLog
from aioproducer.broker.quotas.client_quotas import entity as quota_entity
from aioproducer.broker.security.scram_credentials import MIN_ITERATIONS, ScramCredential, ScramMechanism
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.state.topic import NewTopic, Topic
from aioproducer.configs.config_def import as_text
from aioproducer.security.password import Password
from aioproducer.types import TopicPartition


class ClusterContents:
    """Reads and changes the contents of the cluster in process, even while no node runs."""

    def __init__(self, state: ClusterState, transactions: TransactionCoordinator) -> None:
        self._state = state
        self._transactions = transactions

    # topics

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        assignments: Iterable[Sequence[int]] = (),
        configs: Mapping[str, object] | None = None,
    ) -> Topic:
        """Creates a topic; -1 means the broker's default.

        ``assignments`` gives the replicas of each partition, the leader first, instead of the two numbers. Raises the
        errors that a client would get: ``TopicExistsException``, ``InvalidTopicException``, …
        """
        texts = {config.replace("_", "."): as_text(value) for config, value in (configs or {}).items()}
        return self._state.create_topic(NewTopic(name, partitions, replication_factor, tuple(assignments), texts))

    def create_partitions(self, name: str, count: int) -> None:
        """Gives a topic more partitions, ``count`` in all. Raises the errors that a client would get."""
        self._state.create_partitions(name, count)

    def alter_topic_configs(self, name: str, configs: Mapping[str, object | None]) -> None:
        """Sets configs of a topic; None resets one to its default. Raises the errors that a client would get."""
        self._state.alter_topic_configs(name, _changes(configs))

    def alter_broker_configs(self, configs: Mapping[str, object | None], *, node_id: int | None = None) -> None:
        """Sets dynamic configs of one node, or of all; None resets one. Raises the errors that a client would get.

        ``listeners``, ``advertised.listeners``, ``listener.security.protocol.map`` and the security of a listener can
        be set only for one node; ``await cluster.listeners_changed()`` waits until it has opened its new listeners.
        """
        self._state.alter_broker_configs(ALL_NODES if node_id is None else str(node_id), _changes(configs))

    def alter_client_metrics(self, name: str, configs: Mapping[str, object | None]) -> None:
        """Makes or changes the subscription ``name`` to metrics of clients (KIP-714); None resets a config, and without
        any config there is no such subscription. Raises the errors that a client would get.
        ``cluster.alter_client_metrics("all", {"metrics": "*", "interval.ms": 1000, "match": "client_id=orders-.*"})``
        """
        self._state.resource_configs.alter(Owner.CLIENT_METRICS, name, _changes(configs), validate_only=False)

    def alter_client_quotas(self, entity: Mapping[str, str | None], quotas: Mapping[str, float | None]) -> None:
        """Sets quotas of a user, a client id, both together or an ip. A quota of None removes it; a name of None means
        the default. ``cluster.alter_client_quotas({"client-id": "slow"}, {"producer_byte_rate": 1024})``. Raises the
        errors that a client would get.
        """
        self._state.client_quotas.alter(quota_entity(entity.items()), list(quotas.items()))

    def client_quotas(self) -> list[tuple[dict[str, str | None], dict[str, float]]]:
        """Every entity that has quotas, with its quotas."""
        found = self._state.client_quotas.describe([], strict=False)
        return [(dict(entity), dict(quotas)) for entity, quotas in found.items()]

    def alter_user_scram_credentials(
        self,
        user: str,
        password: str | None,
        *,
        mechanism: str = "SCRAM-SHA-256",
        iterations: int = MIN_ITERATIONS,
    ) -> None:
        """Lets a user log in by SCRAM with this password; None deletes the user's credentials.

        Takes a few milliseconds. Raises ``ValueError`` for a mechanism other than SCRAM.
        """
        of = ScramMechanism.of(mechanism)
        credentials = self._state.scram_credentials
        if password is None:
            credentials.remove(user, of)
        else:
            credentials.put(user, of, ScramCredential.of_password(of, password, iterations))

    def create_acls(self, *acls: AclBinding) -> None:
        """Creates ACLs. They have an effect with the config ``authorizer.class.name``. Raises the error that a client
        would get for the first invalid one; those before it stay."""
        for binding in acls:
            self._state.acls.create(binding)

    def delete_acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        """Deletes the ACLs that match, and returns them."""
        return self._state.acls.delete(wanted)

    @property
    def acls(self) -> list[AclBinding]:
        """All ACLs, the oldest first."""
        return list(self._state.acls)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic with its records."""
        self._state.delete_topic(name)

    @property
    def topics(self) -> list[Topic]:
        """Every topic there is."""
        return list(self._state.topics.values())

    def topic(self, name: str) -> Topic:
        """The topic of this name. Raises ``UnknownTopicOrPartitionException``."""
        self._state.partition(name, 0)
        return self._state.topics[name]

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        """The log of a partition. Raises ``UnknownTopicOrPartitionException``."""
        return self._state.partition(topic, partition).log

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition; -1 for none."""
        return self._state.partition(topic, partition).leader

    def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Makes another running node the leader, in a new leader epoch."""
        self._state.move_leader(topic, partition, node_id)

    def hold_replica(self, topic: str, partition: int, node_id: int, *, in_sync: bool = True) -> None:
        """Stops the replica on this node, which must be a live follower, from copying.

        The high watermark stops: consumers see no new records, and produce requests with acks=all and DeleteRecords
        wait until they time out. With ``in_sync=False`` the replica also leaves the in-sync replicas, as after
        ``replica.lag.time.max.ms``: the others continue if ``min.insync.replicas`` are left.
        Raises ``InvalidReplicaAssignmentException``.
        """
        self._state.hold_replica(topic, partition, node_id, in_sync=in_sync)

    def release_replica(self, topic: str, partition: int, node_id: int) -> None:
        """Lets the replica on this node catch up and copy again."""
        self._state.release_replica(topic, partition, node_id)

    def expire_producers(self, topic: str, partition: int = 0, *, producer_id: int | None = None) -> None:
        """Makes a partition forget one idempotent producer, or all of them, as after ``producer.id.expiration.ms``."""
        self._state.partition(topic, partition).log.producer_state.expire(producer_id)

    # groups and transactions

    def move_coordinator(self, key: str, node_id: int) -> None:
        """Makes another node the coordinator of a group or transactional id, and moves its state there."""
        self._state.nodes.move_coordinator(key, node_id)

    def committed_offsets(self, group: str) -> dict[TopicPartition, int]:
        """The committed offsets of a group, without those of open transactions."""
        offsets = self._transactions.offsets.committed(group)
        return {TopicPartition(*partition): found.offset for partition, found in offsets.items()}


def _changes(configs: Mapping[str, object | None]) -> list[ConfigChange]:
    return [
        ConfigChange.of(name.replace("_", "."), OpType.DELETE, None)
        if value is None
        else ConfigChange.of(name.replace("_", "."), OpType.SET, _as_sent(value))
        for name, value in configs.items()
    ]


def _as_sent(value: object) -> str:
    """The text that a client would send for a value."""
    if isinstance(value, Password):
        return value.value
    return as_text(tuple(value) if isinstance(value, list) else value)
