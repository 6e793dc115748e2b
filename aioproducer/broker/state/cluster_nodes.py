"""The nodes of an embedded cluster: which are alive, their addresses, and what they coordinate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Node:
    """The address of a node on one of its listeners, and its rack."""

    id: int
    host: str
    port: int
    rack: str | None = None


class ClusterNodes:
    """The nodes with these ids; at first none of them is alive."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = tuple(ids)
        self._alive: dict[int, Mapping[str, Node]] = {}
        self._coordinators: dict[str, int] = {}

    @property
    def alive_ids(self) -> list[int]:
        return [node_id for node_id in self.ids if node_id in self._alive]

    def alive(self, listener: str) -> list[Node]:
        """The live nodes that advertise this listener."""
        return [self._alive[node_id][listener] for node_id in self.alive_ids if listener in self._alive[node_id]]

    def find(self, node_id: int, listener: str) -> Node | None:
        """The live node with this id, if it advertises this listener."""
        return self._alive.get(node_id, {}).get(listener)

    def is_alive(self, node_id: int) -> bool:
        return node_id in self._alive

    def first_alive(self, node_ids: Iterable[int]) -> int | None:
        """The first of these nodes that is alive."""
        return next((node_id for node_id in node_ids if node_id in self._alive), None)

    @property
    def controller_id(self) -> int:
        """A live node, for clients that look for the controller; every node creates and deletes topics. -1 if none is
        alive."""
        return next(iter(self.alive_ids), -1)

    def started(self, node_id: int, advertised: Mapping[str, Node]) -> None:
        """The node is alive, and advertises these addresses by listener."""
        self._alive[node_id] = advertised

    def advertises(self, node_id: int, advertised: Mapping[str, Node]) -> None:
        """The node advertises new addresses, if it is alive."""
        if node_id in self._alive:
            self._alive[node_id] = advertised

    def stopped(self, node_id: int) -> None:
        """The node has stopped."""
        self._alive.pop(node_id, None)

    def coordinator(self, key: str) -> int | None:
        """The live node that coordinates a group or a transactional id; None if none is alive."""
        first = self._coordinators.get(key, crc32(key.encode()) % len(self.ids))
        return self.first_alive(self.ids[first:] + self.ids[:first])

    def move_coordinator(self, key: str, node_id: int) -> None:
        """Lets this node coordinate the group or transactional id, as long as it is alive."""
        self._coordinators[key] = self.ids.index(node_id)
