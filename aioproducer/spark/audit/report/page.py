"""The sections of the report, with the verdict on top."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import Any, Final

from aioproducer import Severity
from aioproducer.spark.audit.finding import Finding, shown
from aioproducer.spark.audit.options import QUANTILES, quantile_name
from aioproducer.spark.audit.report.plots import Bars, TimeLines
from aioproducer.spark.audit.report.table import Rows, by_heading, grouped_table, table
from aioproducer.spark.audit.summary import Row, Summary

_MANY_TOPICS: Final = 3
"""So many have their names in the title."""


def html(summary: Summary) -> str:
    """The whole file."""
    when = datetime.fromtimestamp(summary.now_ms / 1000, UTC)
    title = f"Delivery audit of {_named(summary.topics)}"
    sections = (_checks, _facts, _findings, _latencies, _partitions, _batches, _producers, _keys)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
            f"<style>{_static('uplot/uPlot.min.css')}{_static('report.css')}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            f'<p class="verdict {_color(summary)}">{escape(summary.verdict)}</p>',
            f"<p>As of {when:%Y-%m-%d %H:%M:%S} UTC.</p>",
            *(line for section in sections for line in _section(section(summary))),
            f"<script>/*\n{_static('uplot/LICENSE')}*/\n{_static('uplot/uPlot.iife.min.js')}</script>",
            f"<script>{_static('report.js')}</script>",
            "</body></html>",
            "",
        ]
    )


def _static(name: str) -> str:
    return files("aioproducer.spark.audit.report").joinpath("static", *name.split("/")).read_text(encoding="utf-8")


def _named(topics: Sequence[str]) -> str:
    return ", ".join(topics) if len(topics) <= _MANY_TOPICS else f"{len(topics)} topics"


def _section(lines: Iterator[str]) -> Iterator[str]:
    """Nothing for a section that has nothing."""
    if inside := list(lines):
        yield from ("<section>", *inside, "</section>")


def _color(summary: Summary) -> str:
    if summary.ok:
        return "ok" if summary.proved else "warning"
    return "critical" if summary.found[0].kind.severity is Severity.CRITICAL else "warning"


def _checks(summary: Summary) -> Iterator[str]:
    yield "<h2>What was checked</h2>"
    rows = [
        (check.claim, check.checked, check.records, "" if check.complete else check.why_not) for check in summary.checks
    ]
    yield from table(("what should hold", "records checked", "of", "why not all"), rows)


def _facts(summary: Summary) -> Iterator[str]:
    yield "<h2>Records</h2>"
    totals = summary.totals
    rows: list[tuple[str, object]] = [
        ("topics", len(summary.topics)),
        ("records", totals["records"]),
        ("batches", totals["batches"]),
        ("bytes in the log", totals["bytes"]),
        ("partitions", len(summary.partitions) + summary.left_out.get("partitions", 0)),
        ("stamped records", f"{totals['stamped']:,} from {totals['streams']:,} streams"),
        ("acknowledged by their delivery logs", totals["acknowledged"]),
        ("parts of transactions", _counts(summary.transactions) or "none"),
    ]
    if totals["first_ms"] is not None:
        rows.append(("timestamps", f"{_time(totals['first_ms'])} … {_time(totals['last_ms'])} UTC"))
    yield from table(("", ""), rows)


def _findings(summary: Summary) -> Iterator[str]:
    found = summary.found
    if not found:
        return
    yield "<h2>Findings</h2>"
    columns = ("finding", "severity", "places", "records", "what it means")
    yield from table(
        columns,
        [(one.kind.value, one.kind.severity.name, one.findings, one.records, one.kind.meaning) for one in found],
    )
    for one in found:
        yield f"<h3>{escape(one.kind.value)}</h3>"
        rows = by_heading((finding.topic or "", _example(finding)) for finding in one.examples)
        yield from _by_topic(("partition", "offsets", "who", "what", "records"), rows, summary)
        yield from _more(one.findings - len(one.examples))


def _example(finding: Finding) -> Sequence[object]:
    partition = "" if finding.partition is None else finding.partition
    return partition, finding.offsets, finding.who, finding.what, finding.records


def _latencies(summary: Summary) -> Iterator[str]:
    yield "<h2>Latency</h2>"
    if not summary.latencies:
        yield (
            "<p>No latency data: records have no stamps of a DeliveryLog, or their timestamps are "
            "their producers' own (message.timestamp.type=CreateTime) and there is no delivery log.</p>"
        )
        return
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in summary.latencies:
        groups[row["topic"] or "all topics", row["what"]].append(row)
    names = [quantile_name(quantile) for quantile in QUANTILES]
    yield '<div class="plots">'
    for (topic, what), minutes in groups.items():
        lines = [(name, [(row["minute_ms"], row[name]) for row in minutes]) for name in names[:-1]]
        yield from TimeLines(_of(topic, f"from send to {what}", summary), "ms", lines).html()
    yield "</div>"
    rows = by_heading(
        (topic, (what, len(minutes), sum(row["records"] for row in minutes), *_worst(minutes, names)))
        for (topic, what), minutes in groups.items()
    )
    columns = ("from send to", "minutes", "records", *(f"worst {name}, ms" for name in names))
    yield from _by_topic(columns, rows, summary)


def _worst(minutes: Sequence[Row], names: Sequence[str]) -> list[int]:
    return [max(row[name] for row in minutes) for name in names]


def _partitions(summary: Summary) -> Iterator[str]:
    yield "<h2>Partitions</h2>"
    topics: dict[str, list[Row]] = defaultdict(list)
    for row in summary.partitions:
        topics[row["topic"]].append(row)
    yield '<div class="plots">'
    for topic, rows in topics.items():
        bars = [(row["partition"], row["records"]) for row in rows]
        yield from Bars(_of(topic, "records by partition", summary), "partition", "records", bars).html()
    yield "</div>"
    columns = ("partition", "first", "end", "records", "batches", "bytes", "aborted")
    yield from _rows_by_topic(columns, summary.partitions, summary)
    yield from _more(summary.left_out.get("partitions", 0))


def _batches(summary: Summary) -> Iterator[str]:
    yield "<h2>Batches and windows</h2>"
    columns = ("topic", "batches", *(f"{of}_{of_all}" for of in ("records", "bytes") for of_all in _OF_ALL))
    yield from _rows(columns, summary.batch_sizes)
    if summary.windows:
        yield "<p>In-flight windows that leaders announced, by the producers' metrics:</p>"
        yield from _rows_by_topic(("partition", "smallest", "largest", "in_flight"), summary.windows, summary)


_OF_ALL = ("avg", "median", "max")


def _producers(summary: Summary) -> Iterator[str]:
    yield "<h2>Producers</h2>"
    columns = ("producer_id", "records", "batches", "first_epoch", "last_epoch", "aborted")
    yield from _rows(columns, summary.producers)
    yield from _more(summary.left_out.get("producers", 0))


def _keys(summary: Summary) -> Iterator[str]:
    yield "<h2>Keys</h2>"
    rows = by_heading(
        (row["topic"], (shown(bytes(row["key"])), row["records"], _partitions_of(row["low"], row["high"])))
        for row in summary.keys
    )
    yield from _by_topic(("key", "records", "partitions"), rows, summary)
    yield from _more(summary.left_out.get("keys", 0))


def _partitions_of(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} … {high}"


def _rows(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    yield from table(_heads(columns), [_cells(columns, row) for row in rows])


def _rows_by_topic(columns: Sequence[str], rows: Sequence[Row], summary: Summary) -> Iterator[str]:
    groups = by_heading((row["topic"], _cells(columns, row)) for row in rows)
    yield from _by_topic(_heads(columns), groups, summary)


def _by_topic(columns: Sequence[str], groups: Mapping[str, Rows], summary: Summary) -> Iterator[str]:
    """A single topic is in the title."""
    if len(summary.topics) == 1:
        yield from table(columns, [row for rows in groups.values() for row in rows])
    else:
        yield from grouped_table(columns, groups)


def _of(topic: str, what: str, summary: Summary) -> str:
    return what if len(summary.topics) == 1 else f"{topic}: {what}"


def _heads(columns: Sequence[str]) -> list[str]:
    return [column.replace("_", " ") for column in columns]


def _cells(columns: Sequence[str], row: Row) -> Sequence[object]:
    return [row[column] for column in columns]


def _more(count: int) -> Iterator[str]:
    if count > 0:
        yield f'<p class="left">… and {count:,} more, in the Parquet files beside this report.</p>'


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))


def _time(milliseconds: Any) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"
