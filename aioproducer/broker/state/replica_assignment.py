"""Assigns the replicas of new partitions to nodes (Kafka's ``ReplicationControlManager`` and its placer)."""

from __future__ import annotations

from collections.abc import Sequence, Set

from aioproducer.errors import (
    InvalidPartitionsException,
    InvalidReplicaAssignmentException,
    InvalidReplicationFactorException,
)


def spread_replicas(partitions: int, factor: int, alive: Sequence[int], first: int) -> list[tuple[int, ...]]:
    """Spreads the replicas of partitions over live nodes in turn, from the ``first`` on. The first of each leads."""
    if factor < 1:
        raise InvalidReplicationFactorException(f"replication factor {factor} must be at least 1, or -1")
    if partitions < 1:
        raise InvalidPartitionsException(f"number of partitions {partitions} must be at least 1, or -1")
    if factor > len(alive):
        raise InvalidReplicationFactorException(
            f"replication factor {factor} is larger than the number of live nodes, {len(alive)}"
        )
    nodes = len(alive)
    from_each = [tuple(alive[(start + replica) % nodes] for replica in range(factor)) for start in range(nodes)]
    return [from_each[(first + index) % nodes] for index in range(partitions)]


def checked_replicas(replicas: Sequence[int], factor: int, nodes: Set[int], alive: Set[int]) -> tuple[int, ...]:
    """Checks the replicas that a client assigned to a partition. Raises :class:`InvalidReplicaAssignmentException`."""
    chosen = set(replicas)
    if not replicas or len(chosen) != len(replicas) or len(replicas) != factor:
        raise InvalidReplicaAssignmentException(
            f"replicas {list(replicas)} must be distinct nodes, as many for every partition"
        )
    if not chosen <= nodes or chosen.isdisjoint(alive):
        raise InvalidReplicaAssignmentException(f"replicas {list(replicas)} must be nodes of the cluster, one alive")
    return tuple(replicas)
