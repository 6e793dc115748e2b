"""An audit of topics that were made for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aioproducer.spark.audit.options import AuditOptions


def audited(spark: Any, made: Any, place: Path, options: AuditOptions) -> Any:
    from aioproducer.spark.audit.frames.events import events_of_files
    from aioproducer.spark.audit.job import audit
    from benchmarks.spark.audited_topics import as_lines

    log = f"{place}/deliveries.jsonl"
    as_lines(made.events.coalesce(2)).write.text(log)
    return audit(
        made.source.coalesce(2),
        made.bounds(),
        f"{place}/audit",
        options,
        events=events_of_files(spark, [log]),
        committed=made.committed.coalesce(2),
    )
