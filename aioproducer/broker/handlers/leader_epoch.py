"""Compares a client's leader epoch, and its end of the log, with the partition's (KIP-320, KIP-595)."""

from __future__ import annotations

from aioproducer.broker.log.leader_epochs import NO_OFFSET, EpochEndOffset
from aioproducer.broker.state.topic import Partition
from aioproducer.errors import FencedLeaderEpochException, OffsetOutOfRangeException, UnknownLeaderEpochException

NO_LEADER_EPOCH = -1


def check_leader_epoch(partition: Partition, claimed: int) -> None:
    """Raises unless ``claimed``, the epoch that the client knows, is the current one; -1 claims nothing."""
    if claimed == NO_LEADER_EPOCH:
        return
    current = partition.leader_epoch
    if claimed < current:
        raise FencedLeaderEpochException(f"leader epoch {claimed} of {partition} is over, it is {current}")
    if claimed > current:
        raise UnknownLeaderEpochException(f"leader epoch {claimed} of {partition} is not known, it is {current}")


def diverging_epoch(partition: Partition, fetch_offset: int, last_fetched_epoch: int) -> EpochEndOffset | None:
    """Where the log and that of a client part, whose record before ``fetch_offset`` has this epoch; None if they do
    not, or if it claims nothing (-1). Raises :class:`OffsetOutOfRangeException`."""
    if last_fetched_epoch == NO_LEADER_EPOCH:
        return None
    found = partition.end_offset_of(last_fetched_epoch)
    if found.end_offset == NO_OFFSET:
        raise OffsetOutOfRangeException(f"where epoch {last_fetched_epoch} of {partition} ends is not known")
    if fetch_offset < partition.log.log_start_offset:
        raise OffsetOutOfRangeException(f"offset {fetch_offset} of {partition} is deleted")
    agrees = found.leader_epoch == last_fetched_epoch and fetch_offset <= found.end_offset
    return None if agrees else found
