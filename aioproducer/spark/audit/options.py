"""The options of an audit, besides its data."""

from __future__ import annotations

from dataclasses import dataclass

from aioproducer.errors import IllegalArgumentException

QUANTILES = (0.5, 0.95, 0.99, 1.0)
"""The quantiles of latencies."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What is expected. Every rule that has a limit takes it from here."""

    now_ms: int
    """When the audit began, in milliseconds since the epoch: records acknowledged later are not looked for, and the age
    of transactions is taken at this time."""
    unique: bool = False
    """No two records should have the same key and value."""
    partial: bool = False
    """The producers also write to other topics: numbers of a stream that are in none of these are not gaps."""
    keyed: bool = False
    """All records of a key should be in one partition."""
    latency_ms: float = 15_000.0
    """99 of 100 records of a minute should take no longer. As in ``health()``, half of request.timeout.ms."""
    skew: float = 4.0
    """No partition should have more than this many times the records of its topic's average one…"""
    skew_records: int = 10_000
    """…in topics with at least this many records."""
    transaction_ms: int = 60_000
    """No transaction should be open for longer: transaction.timeout.ms."""
    examples: int = 20
    """Findings of each kind that the report shows; Parquet has them all."""
    top: int = 20
    """Keys, and rows of each table of figures, that the report shows."""

    def __post_init__(self) -> None:
        for name in ("latency_ms", "skew"):
            if not getattr(self, name) > 0:
                raise IllegalArgumentException(f"{name} is {getattr(self, name)!r}; it must be more than 0")
        for name in ("skew_records", "transaction_ms", "examples", "top"):
            if getattr(self, name) < 1:
                raise IllegalArgumentException(f"{name} is {getattr(self, name)!r}; it must be at least 1")


def quantile_name(quantile: float) -> str:
    """The column of a quantile: ``p99`` of 0.99."""
    return f"p{quantile * 100:g}"
