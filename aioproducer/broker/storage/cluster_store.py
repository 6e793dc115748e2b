"""Keeps the state of a cluster as entries of the journal, and restores it from them. The keys of the entries:

cluster                            format, cluster id, number of nodes
topic · id                         name, configs, replicas of each partition
leader_epoch · id · index          the epoch of the last elected leader
log_start · id · index             the start of the log, once records were deleted
producers · id · index             the producer state at that deletion
broker_configs · node              dynamic configs
client_quotas                      all client quotas
scram · user · mechanism           a SCRAM credential
resource_configs · owner · name    the configs of a group or of a client metrics subscription
acl · type · pattern · name · principal · host · operation · permission
scram_pepper                       the secret from which the salts of unknown users are derived
producer_id                        the next producer id
transaction · transactional id     the producer id and epoch, and the state of the transaction
pending_offsets · pid · group      offsets that a transaction will commit
offset · group · topic · index     a committed offset of a group
markers · number                   a decision whose markers may not be written yet
deleted · id                       a deleted topic whose directories may not be removed yet
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from aioproducer.acls import AclBinding, AclOperation, AclPermissionType, PatternType, ResourceType
from aioproducer.broker.configs.resource_configs import Owner
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.coordinators.group_offsets import GroupOffsets
from aioproducer.broker.coordinators.transaction_coordinator import TransactionCoordinator
from aioproducer.broker.log.log_checkpoint import LogCheckpoint
from aioproducer.broker.log.partition_log import PartitionLog
from aioproducer.broker.quotas.client_quotas import ClientQuotas
from aioproducer.broker.security.scram_credentials import ScramCredential, ScramMechanism
from aioproducer.broker.state.cluster_journal import ClusterJournal, Decision
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.state.committed_offset import OffsetAndMetadata, TopicPartitionKey
from aioproducer.broker.state.topic import Partition, Topic
from aioproducer.broker.state.transaction_metadata import TransactionMetadata, TransactionState
from aioproducer.broker.storage.data_directory import FORMAT, DataDirectory
from aioproducer.broker.storage.frames import Key, Value
from aioproducer.broker.storage.segments.stored_batches import StoredBatches

log = logging.getLogger(__name__)


class ClusterStore(ClusterJournal):
    """Keeps a cluster in a :class:`DataDirectory`."""

    def __init__(self, directory: DataDirectory) -> None:
        self._directory = directory
        self._journal = directory.journal
        self._decisions = 0

    def _put(self, *key: str | int, value: Value) -> None:
        self._directory.check()
        self._journal.put(key, value)
        self._directory.changed()

    @property
    def room(self) -> int:
        return self._directory.room

    def when_room(self, callback: Callable[[], object]) -> None:
        self._directory.when_room(callback)

    # changes

    def batches(self, topic: str, topic_id: UUID, index: int, config: TopicConfig) -> StoredBatches:
        return self._directory.batches(topic, topic_id, index, config)

    def topic_changed(self, topic: Topic) -> None:
        replicas = [list(partition.replicas) for partition in topic.partitions]
        value = {"name": topic.name, "configs": dict(topic.configs), "replicas": replicas}
        self._put("topic", topic.id.hex, value=value)

    def topic_deleted(self, topic: Topic) -> None:
        for key in self._journal.of_topic(topic.id.hex):
            self._put(*key, value=None)
        self._directory.delete_topic(topic.name, topic.id, len(topic.partitions))

    def leader_elected(self, topic_id: UUID, index: int, leader_epoch: int) -> None:
        # Without check(): a node may stop after the data directory has failed.
        self._journal.put(("leader_epoch", topic_id.hex, index), leader_epoch)
        self._directory.changed()

    def broker_configs_changed(self, node: str, configs: Mapping[str, str]) -> None:
        self._put("broker_configs", node, value=dict(configs) or None)

    def scram_credential_changed(
        self, user: str, mechanism: ScramMechanism, credential: ScramCredential | None
    ) -> None:
        self._put("scram", user, mechanism.mechanism, value=None if credential is None else _scram_value(credential))

    def resource_configs_changed(self, owner: Owner, name: str, configs: Mapping[str, str]) -> None:
        self._put("resource_configs", int(owner), name, value=dict(configs) or None)

    def acl_changed(self, binding: AclBinding, is_new: bool) -> None:
        self._put("acl", *_acl_key(binding), value=is_new or None)

    def producer_id_allocated(self, next_producer_id: int) -> None:
        self._put("producer_id", value=next_producer_id)

    def transaction_changed(self, metadata: TransactionMetadata) -> None:
        value = {
            "producer_id": metadata.producer_id,
            "producer_epoch": metadata.producer_epoch,
            "previous": list(metadata.previous),
            "timeout_ms": metadata.timeout_ms,
            "state": metadata.state.value,
            "started_ms": metadata.started_ms,
            "begun_as": list(metadata.begun_as),
            "changed_ms": metadata.changed_ms,
            "partitions": list(metadata.partitions),
            "groups": list(metadata.groups),
            "marked": list(metadata.marked),
        }
        self._put("transaction", metadata.transactional_id, value=value)

    def transaction_forgotten(self, transactional_id: str) -> None:
        self._put("transaction", transactional_id, value=None)

    def transaction_decided(self, decision: Decision) -> None:
        self._decisions += 1
        markers = [(topic_id.hex, index, offset) for topic_id, index, offset in decision.markers]
        self._directory.put_passing(("markers", self._decisions), {**decision._asdict(), "markers": markers})
        self._directory.changed()

    def offsets_committed(self, group: str, offsets: Mapping[TopicPartitionKey, OffsetAndMetadata]) -> None:
        for partition, offset in offsets.items():
            self._put("offset", group, *partition, value=offset)

    def offsets_forgotten(self, group: str, partitions: Iterable[TopicPartitionKey]) -> None:
        for partition in partitions:
            self._put("offset", group, *partition, value=None)

    def pending_offsets_changed(
        self, producer_id: int, group: str, offsets: Mapping[TopicPartitionKey, OffsetAndMetadata]
    ) -> None:
        value = [[*partition, *offset] for partition, offset in offsets.items()]
        self._put("pending_offsets", producer_id, group, value=value or None)

    # restarts

    def restore(self, state: ClusterState, transactions: TransactionCoordinator, now_ms: int) -> None:
        """Opens the directory and restores its contents into a new cluster.

        Completes what a crash interrupted: writes the markers of decided transactions, removes the directories of
        deleted topics. Raises :class:`DataDirectoryException`, and OSError.
        """
        self._directory.open(len(state.nodes.ids))
        try:
            self._restore(state, transactions, now_ms)
        except BaseException:
            self._directory.close()
            raise

    def checkpoints(self, state: ClusterState) -> dict[Key, LogCheckpoint]:
        """The checkpoints of all logs, for a start that need not read them. Everything in them is committed."""
        return {
            (topic.id.hex, partition.index): partition.log.checkpoint()
            for topic in state.topics.values()
            for partition in topic.partitions
        }

    def _restore(self, state: ClusterState, transactions: TransactionCoordinator, now_ms: int) -> None:
        journal = self._journal
        cluster = journal.get("cluster")
        if cluster is None:
            value = {"format": FORMAT, "cluster_id": state.cluster_id, "nodes": len(state.nodes.ids)}
            self._put("cluster", value=value)
        else:
            state.cluster_id = cluster["cluster_id"]
        for key, configs in journal.of_kind("broker_configs").items():
            state.configs.restore(str(key[1]), configs)
        for key, value in journal.of_kind("scram").items():
            state.scram_credentials.restore(str(key[1]), ScramMechanism.of(str(key[2])), _scram_credential(value))
        for key, configs in journal.of_kind("resource_configs").items():
            state.resource_configs.restore(Owner(int(key[1])), str(key[2]), configs)
        for key in journal.of_kind("acl"):
            state.acls.restore(_acl(key))
        pepper = journal.get("scram_pepper")
        if pepper is None:
            self._put("scram_pepper", value=state.scram_credentials.pepper.hex())
        else:
            state.scram_credentials.pepper = bytes.fromhex(pepper)
        _restore_quotas(state.client_quotas, journal.get("client_quotas") or [])
        state.client_quotas.listeners.add(lambda: self._quotas_changed(state.client_quotas))
        known = {value["name"]: UUID(hex=str(key[1])) for key, value in journal.of_kind("topic").items()}
        nodes = state.nodes.ids
        for topic_id, (name, partitions) in self._directory.lost_topics(known).items():
            replicas = [[nodes[index % len(nodes)]] for index in range(partitions)]
            self._put("topic", topic_id.hex, value={"name": name, "configs": {}, "replicas": replicas})
            known[name] = topic_id
        topics = journal.of_kind("topic")
        self._directory.inspect_directories(known)
        for key, value in topics.items():
            self._restore_topic(state, UUID(hex=str(key[1])), value)
        self._directory.settle()
        _restore_offsets(transactions.offsets, journal.of_kind("offset"), journal.of_kind("pending_offsets"), now_ms)
        for key, value in journal.of_kind("transaction").items():
            transactions.restore(_transaction(str(key[1]), value, now_ms))
        self._restore_producer_ids(state, transactions)
        self._write_missing_markers(state)
        transactions.finish_prepared()
        _end_unknown_transactions(state, transactions, now_ms)

    def _restore_topic(self, state: ClusterState, topic_id: UUID, value: Any) -> None:
        configs = value["configs"]
        topic = Topic(value["name"], topic_id, [], state.configs.topic(configs), configs)
        for index, replicas in enumerate(value["replicas"]):
            batches = self.batches(topic.name, topic_id, index, topic.config)
            partition_log = PartitionLog(f"{topic.name}-{index}", topic.config, batches)
            topic.partitions.append(Partition(topic.name, index, tuple(replicas), partition_log))
        state.restore_topic(topic)
        for partition in topic.partitions:
            where = topic_id.hex, partition.index
            partition.log.recover(
                self._journal.get("log_start", *where) or 0,
                self._journal.get("producers", *where) or (),
                self._directory.checkpoints.pop(where, None),
            )
            last = partition.log.leader_epochs.latest
            partition.leader_epoch = max(self._journal.get("leader_epoch", *where) or 0, last)

    def _restore_producer_ids(self, state: ClusterState, transactions: TransactionCoordinator) -> None:
        used = [metadata.producer_id for metadata in transactions.transactions()]
        for partition in state.partitions():
            used += partition.log.producer_state.entries()
        state.restore_producer_ids(max([self._journal.get("producer_id") or 0, *(one + 1 for one in used)]))

    def _write_missing_markers(self, state: ClusterState) -> None:
        for key, value in self._journal.of_kind("markers").items():
            self._decisions = max(self._decisions, int(key[1]))
            for topic_id, index, offset in value["markers"]:
                topic = state.topic_by_id(UUID(hex=topic_id))
                partition = None if topic is None else topic.partition(index)
                # A log that reaches beyond the marker's offset has the marker.
                if partition is not None and partition.log.log_end_offset <= offset:
                    partition.log.append_marker(
                        value["producer_id"],
                        value["producer_epoch"],
                        committed=value["committed"],
                        leader_epoch=partition.leader_epoch,
                        now_ms=value["now_ms"],
                    )

    def _quotas_changed(self, quotas: ClientQuotas) -> None:
        found = quotas.describe([], strict=False)
        self._put("client_quotas", value=[[list(entity), dict(of)] for entity, of in found.items()])


def _scram_value(credential: ScramCredential) -> list[Any]:
    keys = credential.salt, credential.stored_key, credential.server_key
    return [*(key.hex() for key in keys), credential.iterations]


def _scram_credential(value: list[Any]) -> ScramCredential:
    *keys, iterations = value
    salt, stored_key, server_key = map(bytes.fromhex, keys)
    return ScramCredential(salt, stored_key, server_key, iterations)


def _acl_key(acl: AclBinding) -> Key:
    pattern = int(acl.resource_type), int(acl.pattern_type), acl.name
    return *pattern, acl.principal, acl.host, int(acl.operation), int(acl.permission)


def _acl(key: Key) -> AclBinding:
    _, kind, pattern, name, principal, host, operation, permission = key
    return AclBinding(
        resource_type=ResourceType(int(kind)),
        name=str(name),
        pattern_type=PatternType(int(pattern)),
        principal=str(principal),
        host=str(host),
        operation=AclOperation(int(operation)),
        permission=AclPermissionType(int(permission)),
    )


def _restore_quotas(quotas: ClientQuotas, entries: Iterable[Any]) -> None:
    for entity, of in entries:
        quotas.alter(tuple((kind, name) for kind, name in entity), list(of.items()))


def _restore_offsets(
    offsets: GroupOffsets, committed: Mapping[Key, Value], pending: Mapping[Key, Value], now_ms: int
) -> None:
    for (_, group, topic, index), value in committed.items():
        offsets.commit(str(group), {(str(topic), int(index)): _offset(value, now_ms)})
    for (_, producer_id, group), rows in pending.items():
        wanted = {(topic, index): _offset(offset, now_ms) for topic, index, *offset in rows}
        offsets.commit_in_transaction(int(producer_id), str(group), wanted)


def _offset(value: list[Any], now_ms: int) -> OffsetAndMetadata:
    offset, leader_epoch, metadata, *times = value
    return OffsetAndMetadata(offset, leader_epoch, metadata, *(times or [now_ms]))  # earlier versions wrote no times


def _transaction(transactional_id: str, value: Any, now_ms: int) -> TransactionMetadata:
    metadata = TransactionMetadata(transactional_id, value["producer_id"], value["timeout_ms"])
    metadata.producer_epoch = value["producer_epoch"]
    metadata.previous = value["previous"][0], value["previous"][1]
    metadata.state = TransactionState(value["state"])
    metadata.started_ms = value["started_ms"]
    producer_id, producer_epoch = value.get("begun_as", metadata.identity)  # earlier versions did not write it
    metadata.begun_as = producer_id, producer_epoch
    metadata.changed_ms = value.get("changed_ms", now_ms)  # earlier versions did not write it
    metadata.partitions = dict.fromkeys(map(tuple, value["partitions"]))
    metadata.groups = dict.fromkeys(value["groups"])
    producer_id, producer_epoch = value.get("marked", metadata.marked)  # earlier versions did not write it
    metadata.marked = producer_id, producer_epoch
    return metadata


def _end_unknown_transactions(state: ClusterState, transactions: TransactionCoordinator, now_ms: int) -> None:
    """Aborts transactions that are open in a log but unknown to the coordinator, which could never end them.

    A crash leaves such transactions if it loses acknowledged changes, which may happen unless every commit is synced.
    """
    ongoing = {
        (metadata.begun_as[0], partition)
        for metadata in transactions.transactions()
        if metadata.state is TransactionState.ONGOING
        for partition in metadata.partitions
    }
    for partition in state.partitions():
        for producer_id in sorted(partition.log.open_transactions):
            entry = partition.log.producer_state.entry(producer_id)
            if (producer_id, (partition.topic, partition.index)) in ongoing or entry is None:
                continue
            first = partition.log.transaction_start_offset(producer_id)
            text = "a transaction of producer %d in %s, from offset %d on, has no coordinator: aborted"
            log.warning(text, producer_id, partition, first)
            partition.log.append_marker(
                producer_id,
                entry.producer_epoch,
                committed=False,
                leader_epoch=partition.leader_epoch,
                now_ms=now_ms,
            )
