"""An audit from end to end: topics of a cluster in, Parquet tables and ``report.html`` in a directory out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from aioproducer.spark.audit.frames.bounds import bounds_frame, find_bounds
from aioproducer.spark.audit.frames.events import events_of_files, events_of_topic
from aioproducer.spark.audit.frames.metrics_reports import metrics_reports
from aioproducer.spark.audit.job import audit
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.place import Place
from aioproducer.spark.audit.report.page import html
from aioproducer.spark.audit.source import Source
from aioproducer.spark.audit.summary import Summary
from aioproducer.spark.spark_job import run_job

TOPIC = "topic:"
"""The prefix of a delivery log that is a topic, not a file."""
REPORT = "report.html"


async def audit_topics(
    spark: SparkSession,
    config: Mapping[str, str],
    topics: Sequence[str],
    place: str,
    options: AuditOptions,
    *,
    delivery_logs: Sequence[str] = (),
    metrics_topic: str | None = None,
    read_committed: bool = False,
    on_progress: Callable[[str], None] = lambda step: None,
) -> Summary:
    """Audits everything that is in the topics now.

    ``config`` has client configs with Kafka's names, including bootstrap.servers; ``delivery_logs`` are files, or
    topics as ``topic:NAME``. With ``read_committed`` the topics are read once more, as readers of committed records do.
    ``place`` is a directory of this machine, or of a file system that Spark can reach, such as ``s3a://bucket/audit``:
    all tasks must be able to write there. Cancelling it cancels Spark's jobs.
    """
    written = Place(place)
    written.check_writable(spark)
    bounds = await find_bounds(topics, config)

    def work() -> Summary:
        written.make()
        source = Source(spark, config)
        summary = audit(
            source.records(bounds, values=options.unique),
            bounds_frame(spark, bounds),
            str(written),
            options,
            events=_events(source, spark, delivery_logs),
            committed=source.committed_records(bounds) if read_committed else None,
            reports=None if metrics_topic is None else metrics_reports(source.values(metrics_topic)),
            on_progress=on_progress,
        )
        written.write_text(spark, REPORT, html(summary))
        return summary

    return await run_job(spark, work, description=f"audit of {', '.join(topics)}")


def _events(source: Source, spark: SparkSession, delivery_logs: Sequence[str]) -> DataFrame | None:
    files = [log for log in delivery_logs if not log.startswith(TOPIC)]
    frames = [events_of_topic(source.values(log.removeprefix(TOPIC))) for log in delivery_logs if log not in files]
    if files:
        frames.append(events_of_files(spark, files))
    if not frames:
        return None
    first, *others = frames
    for other in others:
        first = first.unionByName(other)
    return first
