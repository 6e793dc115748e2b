"""Which nodes get the replicas of new partitions (Kafka's ``ReplicationControlManager`` and its placer)."""

from __future__ import annotations

from collections.abc import Sequence, Set

from aioproducer.errors import (
    InvalidPartitionsException,
    InvalidReplicaAssignmentException,
    InvalidReplicationFactorException,
)


def spread_replicas(partitions: int, factor: int, alive: Sequence[int], first: int) -> list[tuple[int, ...]]:
    """Replicas of this many partitions on live nodes in turn, beginning with the ``first``; the first of each leads."""
    if factor < 1:
        raise InvalidReplicationFactorException(f"replication factor {factor} must be at least 1, or -1")
    if partitions < 1:
        raise InvalidPartitionsException(f"number of partitions {partitions} must be at least 1, or -1")
    if factor > len(alive):
        raise InvalidReplicationFactorException(
            f"replication factor {factor} is larger than the number of live nodes, {len(alive)}"
        )
    return [
        tuple(alive[(first + index + replica) % len(alive)] for replica in range(factor)) for index in range(partitions)
    ]


def checked_replicas(replicas: Sequence[int], factor: int, nodes: Set[int], alive: Set[int]) -> tuple[int, ...]:
    """Replicas as a client assigned them to a partition. Raises :class:`InvalidReplicaAssignmentException`."""
    chosen = set(replicas)
    if not replicas or len(chosen) != len(replicas) or len(replicas) != factor:
        raise InvalidReplicaAssignmentException(
            f"replicas {list(replicas)} must be distinct nodes, as many for every partition"
        )
    if not chosen <= nodes or chosen.isdisjoint(alive):
        raise InvalidReplicaAssignmentException(f"replicas {list(replicas)} must be nodes of the cluster, one alive")
    return tuple(replicas)
