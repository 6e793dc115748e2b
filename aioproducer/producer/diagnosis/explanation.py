"""The answer of ``explain``: why records have not been sent, as values and in words."""

from __future__ import annotations

from dataclasses import dataclass

from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.diagnosis.wording import counted, duration


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason for the delay, also in words. ``next_event_ms``: milliseconds until it ends by itself or the producer
    acts; None if that depends on others. ``last_error``: the last error there."""

    reason: Reason
    text: str
    next_event_ms: float | None = None
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the head batch of a partition has not been sent; ``str()`` says it in words.

    The head is the oldest batch that is not under way, or if all are, the oldest of those. ``obstacles`` has the
    present one first, then those that would block next. The counts cover everything accepted for the partition that has
    not ended: ``batches``, ``records``, ``bytes`` (uncompressed), and ``in_flight``, the batches under way. ``age_ms``
    is the head's age; ``attempts`` and ``last_error`` describe its sending so far. ``parked`` records wait for
    metadata or memory, and may be for this partition; the oldest of them has waited ``parked_ms``.
    """

    topic: str
    partition: int
    obstacles: tuple[Obstacle, ...]
    batches: int = 0
    in_flight: int = 0
    records: int = 0
    bytes: int = 0
    age_ms: float = 0.0
    attempts: int = 0
    last_error: str = ""
    parked: int = 0
    parked_bytes: int = 0
    parked_ms: float = 0.0
    window: int | None = None
    """The most batches that may be unresolved at once, as the broker remembers no more; None without idempotence, and
    for an unknown partition."""
    unresolved: int = 0
    """The number of unresolved batches."""
    window_source: str = ""
    """Why the window is what it is."""

    @property
    def reason(self) -> Reason:
        """The first obstacle's reason."""
        return self.obstacles[0].reason

    @property
    def next_event_ms(self) -> float | None:
        """Milliseconds until it ends by itself or the producer acts; None if that depends on others."""
        return self.obstacles[0].next_event_ms

    def __str__(self) -> str:
        first, *others = (obstacle.text for obstacle in self.obstacles)
        said = f"{self.topic}-{self.partition}: {first}"
        if others:
            said += f" (then: {'; '.join(others)})"
        if self.batches:
            said += f"; {counted(self.records, 'record')} in {counted(self.batches, 'batch', 'batches')}"
            said += f", {self.bytes} bytes, the head for {duration(self.age_ms / 1000)}"
            if self.attempts:
                said += f" and {counted(self.attempts, 'attempt')}"
            if self.unresolved:
                said += f"; in-flight window {self.unresolved}/{self.window} ({self.window_source})"
        return said
