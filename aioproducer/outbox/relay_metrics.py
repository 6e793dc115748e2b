"""What a relay counts, and how far it is behind."""

from __future__ import annotations

import math
from typing import Final

from aioproducer.metrics.metric_name import MetricName
from aioproducer.metrics.snapshot import MetricsSnapshot

GROUP: Final = "outbox-metrics"

DOCS: Final = {
    "row-relayed-total": "The rows whose records are committed.",
    "row-dead-total": "Those of them that became dead letters.",
    "row-cleaned-total": "The relayed rows that were deleted.",
    "commit-total": "The transactions that relayed rows.",
    "rows-per-commit-avg": "Rows in a transaction, on average.",
    "restart-total": "How often the relay began anew after an error.",
    "lag-rows": "The rows that were found and are not committed yet, at most: ids that were never committed count.",
    "lag-age": "The age in seconds of the oldest row that was found and is not committed yet; 0 if there is none.",
    "active": "1 while this relay has the lock, 0 while it is a standby or away from the database.",
}
"""The metrics by their names, each with its meaning."""


class RelayMetrics:
    """The figures of one relay. Reading them changes nothing, and any thread may do it."""

    def __init__(self, name: str) -> None:
        self._tags = (("outbox", name),)
        self.rows = 0
        self.dead = 0
        self.cleaned = 0
        self.commits = 0
        self.restarts = 0
        self.lag_rows = 0
        self.oldest_ms: int | None = None
        """When the oldest row was written that was found and is not committed, by the database's clock."""
        self.active = False

    def committed(self, rows: int, dead: int) -> None:
        """A transaction was committed."""
        self.commits += 1
        self.rows += rows
        self.dead += dead

    def snapshot(self, now_ms: float) -> MetricsSnapshot:
        """All of them at this moment."""
        values = {
            "row-relayed-total": self.rows,
            "row-dead-total": self.dead,
            "row-cleaned-total": self.cleaned,
            "commit-total": self.commits,
            "rows-per-commit-avg": self.rows / self.commits if self.commits else math.nan,
            "restart-total": self.restarts,
            "lag-rows": self.lag_rows,
            "lag-age": 0.0 if self.oldest_ms is None else max(0.0, (now_ms - self.oldest_ms) / 1000),
            "active": int(self.active),
        }
        return MetricsSnapshot({MetricName(name, GROUP, self._tags): values[name] for name in DOCS})
