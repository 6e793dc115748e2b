"""Offsets that groups have committed, and those that wait for the end of a transaction (``OffsetMetadataManager``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from aioproducer.broker.state.cluster_journal import IN_MEMORY, ClusterJournal
from aioproducer.broker.state.committed_offset import OffsetAndMetadata, TopicPartitionKey


class GroupOffsets:
    """What all groups of the cluster have committed; their members are the coordinator's."""

    def __init__(self, journal: ClusterJournal = IN_MEMORY) -> None:
        self._journal = journal
        self._committed: dict[str, dict[TopicPartitionKey, OffsetAndMetadata]] = defaultdict(dict)
        # producer id → group → what its transaction wants to commit
        self._pending: dict[int, dict[str, dict[TopicPartitionKey, OffsetAndMetadata]]] = {}

    def groups(self) -> list[str]:
        return list(self._committed)

    def is_known(self, group: str) -> bool:
        return group in self._committed

    def delete(self, group: str) -> None:
        self._journal.offsets_forgotten(group, self._committed.pop(group, {}))

    def forget(self, group: str, partitions: Iterable[TopicPartitionKey]) -> None:
        offsets = self._committed.get(group, {})
        for partition in partitions:
            if offsets.pop(partition, None) is not None:
                self._journal.offsets_forgotten(group, [partition])

    def topic_deleted(self, topic: str) -> None:
        """Removes the offsets of a deleted topic, so that a new topic of its name has none."""
        for group, offsets in self._committed.items():
            self.forget(group, [partition for partition in offsets if partition[0] == topic])
        for producer_id, groups in self._pending.items():
            for group, offsets in groups.items():
                kept = {partition: offset for partition, offset in offsets.items() if partition[0] != topic}
                if len(kept) < len(offsets):
                    groups[group] = kept
                    self._journal.pending_offsets_changed(producer_id, group, kept)

    def commit(self, group: str, offsets: Mapping[TopicPartitionKey, OffsetAndMetadata]) -> None:
        self._committed[group].update(offsets)
        self._journal.offsets_committed(group, offsets)

    def commit_in_transaction(
        self, producer_id: int, group: str, offsets: Mapping[TopicPartitionKey, OffsetAndMetadata]
    ) -> None:
        """They count when the transaction is committed."""
        pending = self._pending.setdefault(producer_id, {}).setdefault(group, {})
        pending.update(offsets)
        self._journal.pending_offsets_changed(producer_id, group, pending)

    def transaction_ended(self, producer_id: int, *, committed: bool) -> None:
        for group, offsets in self._pending.pop(producer_id, {}).items():
            self._journal.pending_offsets_changed(producer_id, group, {})
            if committed:
                self.commit(group, offsets)

    def committed(self, group: str) -> Mapping[TopicPartitionKey, OffsetAndMetadata]:
        return self._committed.get(group, {})

    def unstable(self, group: str) -> set[TopicPartitionKey]:
        """The partitions for which an open transaction has a pending offset."""
        return {partition for groups in self._pending.values() for partition in groups.get(group, {})}
