"""The result of an audit, small enough to keep and show: counts, examples, and figures in a bounded number of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aioproducer.spark.audit.checks import Check
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
    checks: Sequence[Check]
    """What was looked for, and in how many of the records."""
    partitions: Sequence[Row] = ()
    batch_sizes: Sequence[Row] = ()
    producers: Sequence[Row] = ()
    keys: Sequence[Row] = ()
    latencies: Sequence[Row] = ()
    windows: Sequence[Row] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """By table, how many rows are not in it: Parquet has them all."""

    @property
    def ok(self) -> bool:
        """Nothing was found, in what could be checked."""
        return not self.found

    @property
    def proved(self) -> bool:
        """Nothing was found, and every record was checked for all that is not optional."""
        return self.ok and all(check.complete or check.optional for check in self.checks)

    @property
    def verdict(self) -> str:
        """One sentence."""
        records = f"{self.totals['records']:,} records"
        if not self.ok:
            worst = ", ".join(f"{found.kind.value} ({found.records:,})" for found in self.found)
            return f"{records}, and found: {worst}"
        if self.proved:
            return f"OK: {records}, and every check passed"
        open_ones = [check.claim for check in self.checks if not (check.complete or check.optional)]
        return f"Nothing found in {records}, but not everything could be checked; unknown: {'; '.join(open_ones)}"

    @property
    def checked(self) -> list[str]:
        """What was checked for every record that it is about."""
        return [check.claim for check in self.checks if check.complete and check.records]

    @property
    def not_checked(self) -> list[str]:
        """What was not, for how many records, and why."""
        return [check.gap for check in self.checks if not check.complete]
