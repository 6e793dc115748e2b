"""Whether a client's idea of who leads is up to date (KIP-320)."""

from __future__ import annotations

from aioproducer.broker.topic import Partition
from aioproducer.errors import FencedLeaderEpochException, UnknownLeaderEpochException

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
