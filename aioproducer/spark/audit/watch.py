"""Watches a running system: its topics by the rules for streams, its producers by what they report of themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StreamingQuery

from aioproducer import HealthFinding, Severity
from aioproducer.spark.audit.alerts import Alert, Report, Watched, alerts
from aioproducer.spark.audit.finding import Finding
from aioproducer.spark.audit.frames.metrics_reports import metrics_reports
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.place import Place
from aioproducer.spark.audit.source import Source
from aioproducer.spark.audit.stream import StreamAudit

FINDINGS = "watched-findings.parquet"
TAILS = "tails"


class ProducerWatch:
    """Takes the micro-batches of a metrics topic, and the time; reports alerts.

    Its memory depends on the number of producers that reported within the last hour. ``lag_ms``: how late a report that
    was written in time may be read; silence is judged as of that long ago.
    """

    def __init__(self, on_alert: Callable[[Alert], None], lag_ms: int) -> None:
        self._on_alert = on_alert
        self._lag_ms = lag_ms
        self._known: dict[str, Watched] = {}
        self._one_at_a_time = threading.Lock()

    def take(self, source: DataFrame, number: int) -> None:
        """The values of the records that came."""
        self._judge([report_of(row) for row in metrics_reports(source).collect()])

    def look(self) -> None:
        """Raises the alerts for producers that have fallen silent."""
        self._judge([])

    def _judge(self, reports: Sequence[Report]) -> None:
        with self._one_at_a_time:
            self._known, changes = alerts(self._known, reports, round(time.time() * 1000) - self._lag_ms)
        for alert in changes:
            self._on_alert(alert)


def report_of(row: Row) -> Report:
    """A row of ``metrics_reports``."""
    health = tuple(
        HealthFinding(
            found["metric"], found["value"], found["threshold"], Severity[found["severity"]], found["what_to_do"]
        )
        for found in row["health"] or ()
    )
    return Report(
        row["client_id"], row["instance"], row["number"], row["time_ms"], row["interval_ms"], row["last"], health
    )


def watch_topics(
    source: Source,
    topics: Sequence[str],
    start: str,
    options: AuditOptions,
    on_batch: Callable[[int, Sequence[Finding], int], None],
    place: Place,
    checkpoint: Place,
    interval: str,
) -> StreamingQuery:
    """A query that audits topics every ``interval`` (``10 seconds``); findings go to Parquet below ``place``.

    ``checkpoint`` has everything that the next query needs to follow this one: ``start`` is for the first only.
    """
    watch = blake2b(str(checkpoint).encode(), digest_size=8).hexdigest()
    taking = StreamAudit(options, on_batch, f"{checkpoint}/{TAILS}", f"{place}/{FINDINGS}/watch=of-{watch}")
    stream = source.record_stream(topics, start).writeStream.queryName("audit of " + ", ".join(topics))
    stream = stream.option("checkpointLocation", str(checkpoint))
    return stream.foreachBatch(taking.take).trigger(processingTime=interval).start()


def watch_producers(source: Source, topic: str, start: str, watching: ProducerWatch, interval: str) -> StreamingQuery:
    """A query that reads a metrics topic every ``interval``."""
    stream = source.value_stream(topic, start).writeStream.queryName(f"alerts of {topic}")
    return stream.foreachBatch(watching.take).trigger(processingTime=interval).start()
