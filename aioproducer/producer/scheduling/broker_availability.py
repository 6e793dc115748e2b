"""Since when nodes have had something to send and could not take it (``NodeLatencyStats``, KIP-794)."""

from __future__ import annotations


class NodeLatencies:
    """Tracks which nodes are unavailable for partitioning. Times and the time-out are in seconds."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._blocked_since: dict[int, float] = {}

    def looked_at(self, node: int, now: float, *, can_send: bool) -> None:
        """Records whether batches that are ready for the node can be sent now."""
        if can_send:
            self._blocked_since.pop(node, None)
        else:
            self._blocked_since.setdefault(node, now)

    def unavailable(self, now: float) -> set[int]:
        """The nodes that have been blocked for longer than the time-out."""
        return {node for node, since in self._blocked_since.items() if now - since > self._timeout}
