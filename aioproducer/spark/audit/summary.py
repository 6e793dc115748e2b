"""What an audit found, small enough to keep and show: counts, examples, and figures in a bounded number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aioproducer.spark.audit.finding import Finding, Kind

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """All findings of a kind: how many rows, how many records they concern, and some of them."""

    kind: Kind
    findings: int
    records: int
    examples: Sequence[Finding]


@dataclass(frozen=True, slots=True)
class Summary:
    """An audit's result. Rows have the columns of the tables of the same name."""

    topics: Sequence[str]
    now_ms: int
    found: Sequence[Found]
    """Worst first; kinds that were not found are left out."""
    totals: Row
    """records, batches, bytes, streams, stamped, acknowledged, first_ms, last_ms."""
    transactions: Mapping[str, int]
    """By outcome, how many parts (a transaction has one in each partition that it wrote to)."""
    partitions: Sequence[Row] = ()
    batch_sizes: Sequence[Row] = ()
    producers: Sequence[Row] = ()
    keys: Sequence[Row] = ()
    latencies: Sequence[Row] = ()
    windows: Sequence[Row] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """By table, how many rows are not in it: Parquet has them all."""
    unchecked: Mapping[str, Sequence[Kind]] = field(default_factory=dict)
    """What this audit cannot find, by the reason."""

    @property
    def ok(self) -> bool:
        """Nothing was found."""
        return not self.found

    @property
    def verdict(self) -> str:
        """One sentence."""
        records = f"{self.totals['records']:,} records"
        if self.ok and self.unchecked:
            return f"OK as far as it was checked: {records}, and nothing was found to be wrong with their delivery"
        if self.ok:
            return f"OK: {records}, and nothing is wrong with their delivery"
        worst = ", ".join(f"{found.kind.value} ({found.records:,})" for found in self.found)
        return f"{records}, and found: {worst}"

    @property
    def not_checked(self) -> list[str]:
        """A sentence for each reason why something could not be checked."""
        return [
            f"Not checked {reason}: {', '.join(kind.value for kind in kinds)}"
            for reason, kinds in self.unchecked.items()
        ]
