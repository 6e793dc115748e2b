"""Says what the producer waits for when no record is delivered."""

from __future__ import annotations

from aioproducer import Explanation, KafkaProducer, Reason

QUIET_FOR = 5.0
"""Seconds without a delivery before the reason is shown."""
LOOKED_AT = 100
"""How many partitions are checked for a reason."""


class StallWatch:
    """Checks whether records are delivered, and if not, reports each new reason once."""

    def __init__(self, producer: KafkaProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._ended = -1
        self._since = 0.0
        self._shown: set[Reason] = set()

    def look(self, now: float, ended: int, partitions: int) -> str | None:
        """The message to show now, if any. ``ended`` records were delivered or failed; the topic has ``partitions``."""
        if ended != self._ended:
            self._ended, self._since = ended, now
            self._shown.clear()
        if now - self._since < QUIET_FOR:
            return None
        waiting: dict[Reason, list[Explanation]] = {}
        for partition in range(min(max(partitions, 1), LOOKED_AT)):
            explained = self._producer.explain(self._topic, partition)
            if explained.reason is not Reason.NOTHING:
                waiting.setdefault(explained.reason, []).append(explained)
        new = [alike for reason, alike in waiting.items() if reason not in self._shown]
        if not new:
            return None
        self._shown.update(waiting)
        lines = [f"{alike[0]}{_more(len(alike) - 1)}" for alike in new]
        return "\n".join([f"Nothing got through for {now - self._since:.0f} s.", *lines])


def _more(partitions: int) -> str:
    if not partitions:
        return ""
    return f"; {partitions} more partition{'' if partitions == 1 else 's'} alike"
