"""The purgatories of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.purgatory.delayed_operation import DelayedOperation
from aioproducer.broker.purgatory.purgatory import DelayedOperationPurgatory, raise_fatal
from aioproducer.broker.requests.fatal_exit_error import FatalExitError
from aioproducer.broker.state.topic import Partition
from aioproducer.timing.clock import Clock

MOST_WATCHED = 200_000
"""Partitions that all operations with many partitions watch together: some 40 MB."""


class PartitionPurgatory(DelayedOperationPurgatory):
    """A purgatory whose keys are partitions."""

    places = MOST_WATCHED
    """How many more partitions may be watched by operations with many partitions."""

    def watch_partition(self, partition: Partition, operation: DelayedOperation) -> None:
        """Tries a started operation at each event of this partition, too."""
        partition.watch(self.check_and_complete)
        self.watch(operation, partition)

    def wait_for(self, partitions: Sequence[Partition], operation: DelayedOperation) -> None:
        """Completes the operation now, or at an event of one of these partitions that makes it possible."""
        for partition in partitions:
            partition.watch(self.check_and_complete)
        self.try_complete_else_watch(operation, partitions)


class Purgatories:
    """All purgatories of one node, each with its ``purgatory.purge.interval.requests``."""

    def __init__(
        self, clock: Clock, config: BrokerConfig, on_fatal: Callable[[FatalExitError], object] = raise_fatal
    ) -> None:
        """``on_fatal`` is called with a fatal error of an operation; it must stop the node."""
        self.fetch = PartitionPurgatory(
            "Fetch", clock, purge_interval=config.fetch_purgatory_purge_interval_requests, on_fatal=on_fatal
        )
        self.produce = PartitionPurgatory(
            "Produce", clock, purge_interval=config.producer_purgatory_purge_interval_requests, on_fatal=on_fatal
        )
        self.delete_records = PartitionPurgatory(
            "DeleteRecords",
            clock,
            purge_interval=config.delete_records_purgatory_purge_interval_requests,
            on_fatal=on_fatal,
        )

    def __iter__(self) -> Iterator[PartitionPurgatory]:
        return iter((self.fetch, self.produce, self.delete_records))

    def shutdown(self) -> None:
        """Answers all waiting requests as at their time-outs."""
        for purgatory in self:
            purgatory.shutdown()
