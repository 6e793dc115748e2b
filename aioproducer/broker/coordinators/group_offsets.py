"""Committed offsets of groups, and pending offsets of open transactions (Kafka's ``OffsetMetadataManager``)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice

from aioproducer.broker.state.cluster_journal import IN_MEMORY, ClusterJournal
from aioproducer.broker.state.committed_offset import OffsetAndMetadata, TopicPartitionKey

_AT_ONCE = 100

_ENDING_AT_ONCE = 500
"""Offsets of a transaction that one turn of the event loop commits: some 2 ms."""


class GroupOffsets:
    """The offsets of all groups of the cluster. The coordinator keeps their members."""

    def __init__(self, journal: ClusterJournal = IN_MEMORY) -> None:
        self._journal = journal
        self._committed: dict[str, dict[TopicPartitionKey, OffsetAndMetadata]] = defaultdict(dict)
        # topic → groups and partitions with a committed offset
        self._committed_of: dict[str, dict[tuple[str, TopicPartitionKey], None]] = {}
        # producer id → group → what its transaction wants to commit
        self._pending: dict[int, dict[str, dict[TopicPartitionKey, OffsetAndMetadata]]] = {}
        # group → partitions, and how many transactions have a pending offset for each
        self._unstable: dict[str, Counter[TopicPartitionKey]] = {}
        # topic → producer ids and groups with a pending offset
        self._pending_of: dict[str, dict[tuple[int, str], None]] = {}

    def groups(self) -> list[str]:
        return list(self._committed)

    def is_known(self, group: str) -> bool:
        return group in self._committed

    def delete(self, group: str) -> None:
        offsets = self._committed.pop(group, {})
        for partition in offsets:
            self._unlist(group, partition)
        self._journal.offsets_forgotten(group, offsets)

    def forget(self, group: str, partitions: Iterable[TopicPartitionKey]) -> None:
        offsets = self._committed.get(group, {})
        for partition in partitions:
            if offsets.pop(partition, None) is not None:
                self._unlist(group, partition)
                self._journal.offsets_forgotten(group, [partition])

    def _unlist(self, group: str, partition: TopicPartitionKey) -> None:
        of_topic = self._committed_of[partition[0]]
        del of_topic[group, partition]
        if not of_topic:
            del self._committed_of[partition[0]]

    def forgetting(self, topic: str) -> Iterator[None]:
        """Removes the committed offsets that a topic has now, in steps that take little time."""
        for _ in range(0, len(self._committed_of.get(topic, ())), _AT_ONCE):
            for group, partition in tuple(islice(self._committed_of.get(topic, ()), _AT_ONCE)):
                self.forget(group, [partition])
            yield

    def topic_deleted(self, topic: str) -> None:
        """Removes the offsets of a deleted topic, so that a new topic of its name has none."""
        for _ in self.forgetting(topic):
            pass
        for producer_id, group in self._pending_of.pop(topic, {}):
            offsets = self._pending[producer_id][group]
            kept = {partition: offset for partition, offset in offsets.items() if partition[0] != topic}
            self._settle(group, offsets.keys() - kept.keys())
            self._pending[producer_id][group] = kept
            self._journal.pending_offsets_changed(producer_id, group, kept)

    def commit(self, group: str, offsets: Mapping[TopicPartitionKey, OffsetAndMetadata]) -> None:
        if offsets:
            self._committed[group].update(offsets)
            for partition in offsets:
                self._committed_of.setdefault(partition[0], {})[group, partition] = None
            self._journal.offsets_committed(group, offsets)

    def commit_in_transaction(
        self, producer_id: int, group: str, offsets: Mapping[TopicPartitionKey, OffsetAndMetadata]
    ) -> None:
        """Keeps offsets pending until the transaction is committed."""
        pending = self._pending.setdefault(producer_id, {}).setdefault(group, {})
        self._unstable.setdefault(group, Counter()).update(offsets.keys() - pending.keys())
        pending.update(offsets)
        for topic, _ in offsets:
            self._pending_of.setdefault(topic, {})[producer_id, group] = None
        self._journal.pending_offsets_changed(producer_id, group, pending)

    def ending(self, producer_id: int, *, committed: bool) -> Iterator[None]:
        """Commits or drops the pending offsets of a transaction that ends, in steps that take little time."""
        groups = self._pending.get(producer_id, {})
        for group in tuple(groups):
            topics = set[str]()
            while True:
                pending = groups[group]  # another one once a topic was deleted
                offsets = {partition: pending.pop(partition) for partition in tuple(islice(pending, _ENDING_AT_ONCE))}
                self._settle(group, offsets)
                topics.update(topic for topic, _ in offsets)
                if committed:
                    self.commit(group, offsets)
                if not pending:
                    break
                yield
            del groups[group]
            for topic in topics:
                self._no_longer_pending(topic, producer_id, group)
            self._journal.pending_offsets_changed(producer_id, group, {})
        self._pending.pop(producer_id, None)

    def _no_longer_pending(self, topic: str, producer_id: int, group: str) -> None:
        of_topic = self._pending_of.get(topic, {})
        of_topic.pop((producer_id, group), None)  # not there if the topic was deleted meanwhile
        if not of_topic:
            self._pending_of.pop(topic, None)

    def committed(self, group: str) -> Mapping[TopicPartitionKey, OffsetAndMetadata]:
        return self._committed.get(group, {})

    def _settle(self, group: str, partitions: Iterable[TopicPartitionKey]) -> None:
        """A transaction has no pending offsets for these partitions any more."""
        unstable = self._unstable.get(group, Counter())
        for partition in partitions:
            unstable[partition] -= 1
            if not unstable[partition]:
                del unstable[partition]
        if not unstable:
            self._unstable.pop(group, None)

    def unstable(self, group: str) -> Set[TopicPartitionKey]:
        """The partitions with pending offsets of open transactions."""
        return self._unstable.get(group, Counter()).keys()
