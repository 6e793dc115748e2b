"""Says what the producer waits for, when nothing gets through."""

from __future__ import annotations

from aioproducer import Explanation, KafkaProducer, Reason

QUIET_FOR = 5.0
"""Seconds without a delivery before the reason is shown."""
LOOKED_AT = 100
"""How many partitions are asked for their reasons."""


class StallWatch:
    """Checks whether records get through, and if they do not, shows each new reason once."""

    def __init__(self, producer: KafkaProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._ended = -1
        self._since = 0.0
        self._told: set[Reason] = set()

    def look(self, now: float, ended: int, partitions: int) -> str | None:
        """What to say now, if anything. ``ended``: records delivered or failed so far; ``partitions``: of the topic."""
        if ended != self._ended:
            self._ended, self._since = ended, now
            self._told.clear()
        if now - self._since < QUIET_FOR:
            return None
        waiting: dict[Reason, list[Explanation]] = {}
        for partition in range(min(max(partitions, 1), LOOKED_AT)):
            explained = self._producer.explain(self._topic, partition)
            if explained.reason is not Reason.NOTHING:
                waiting.setdefault(explained.reason, []).append(explained)
        news = [alike for reason, alike in waiting.items() if reason not in self._told]
        if not news:
            return None
        self._told.update(waiting)
        lines = [f"{alike[0]}{_more(len(alike) - 1)}" for alike in news]
        return "\n".join([f"Nothing got through for {now - self._since:.0f} s.", *lines])


def _more(partitions: int) -> str:
    if not partitions:
        return ""
    return f"; {partitions} more partition{'' if partitions == 1 else 's'} alike"
