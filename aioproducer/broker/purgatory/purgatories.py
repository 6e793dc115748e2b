"""Where the requests of one node wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.purgatory.delayed_operation import DelayedOperation
from aioproducer.broker.purgatory.purgatory import DelayedOperationPurgatory
from aioproducer.broker.state.topic import Partition
from aioproducer.timing.clock import Clock

MOST_WATCHED = 200_000
"""Partitions that operations with many of them watch together; some 40 MB."""


class PartitionPurgatory(DelayedOperationPurgatory):
    """Its keys are partitions."""

    places = MOST_WATCHED
    """How many more partitions operations with many of them may watch."""

    def watch_partition(self, partition: Partition, operation: DelayedOperation) -> None:
        """Tries an operation that has been started when something happens to this partition, too."""
        partition.watch(self.check_and_complete)
        self.watch(operation, partition)

    def wait_for(self, partitions: Sequence[Partition], operation: DelayedOperation) -> None:
        """Completes the operation now, or when something that happens to one of these makes it possible."""
        for partition in partitions:
            partition.watch(self.check_and_complete)
        self.try_complete_else_watch(operation, partitions)


class Purgatories:
    """Those of one node, each with its ``purgatory.purge.interval.requests``."""

    def __init__(self, clock: Clock, config: BrokerConfig) -> None:
        self.fetch = PartitionPurgatory("Fetch", clock, purge_interval=config.fetch_purgatory_purge_interval_requests)
        self.produce = PartitionPurgatory(
            "Produce", clock, purge_interval=config.producer_purgatory_purge_interval_requests
        )
        self.delete_records = PartitionPurgatory(
            "DeleteRecords", clock, purge_interval=config.delete_records_purgatory_purge_interval_requests
        )

    def __iter__(self) -> Iterator[PartitionPurgatory]:
        return iter((self.fetch, self.produce, self.delete_records))

    def shutdown(self) -> None:
        """Whatever waits is answered as if its time was up."""
        for purgatory in self:
            purgatory.shutdown()
