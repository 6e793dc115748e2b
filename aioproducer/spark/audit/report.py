"""The report: one HTML file that needs no others, with the verdict on top."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from aioproducer import Severity
from aioproducer.spark.audit.charts import Columns, TimeLines
from aioproducer.spark.audit.finding import Finding, shown
from aioproducer.spark.audit.options import QUANTILES, quantile_name
from aioproducer.spark.audit.summary import Found, Row, Summary
from aioproducer.svg import Drawn, svg

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2328; max-width: 72em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.2em; margin-top: 2em; }
.verdict { padding: .8em 1em; border-left: 6px solid; font-size: 1.1em; }
.ok { border-color: #1a7f37; background: #dafbe1; } .critical { border-color: #cf222e; background: #ffebe9; }
.warning { border-color: #bf8700; background: #fff8c5; }
table { border-collapse: collapse; margin: .5em 0; } th { text-align: left; background: #f6f8fa; }
th, td { border: 1px solid #d0d7de; padding: .25em .6em; vertical-align: top; } td.number { text-align: right; }
.left { color: #57606a; } svg { max-width: 100%; height: auto; }
"""


def html(summary: Summary) -> str:
    """The whole file."""
    when = datetime.fromtimestamp(summary.now_ms / 1000, UTC)
    title = f"Delivery audit of {', '.join(summary.topics)}"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            f'<p class="verdict {_color(summary)}">{escape(summary.verdict)}</p>',
            *_checks(summary),
            f"<p>As of {when:%Y-%m-%d %H:%M:%S} UTC.</p>",
            *_facts(summary),
            *_findings(summary.found),
            *_latencies(summary.latencies),
            *_partitions(summary),
            *_batches(summary),
            *_producers(summary),
            *_keys(summary),
            "</body></html>",
            "",
        ]
    )


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
    totals = summary.totals
    rows: list[tuple[str, object]] = [
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


def _findings(found: Sequence[Found]) -> Iterator[str]:
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
        yield from table(("where", "who", "what", "records"), [_example(finding) for finding in one.examples])
        yield from _more(one.findings - len(one.examples))


def _example(finding: Finding) -> tuple[str, str, str, int]:
    return finding.where, finding.who, finding.what, finding.records


def _latencies(rows: Sequence[Row]) -> Iterator[str]:
    yield "<h2>Latency</h2>"
    if not rows:
        yield (
            "<p>No latency data: records have no stamps of a DeliveryLog, or their timestamps are "
            "their producers' own (message.timestamp.type=CreateTime) and there is no delivery log.</p>"
        )
        return
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["what"], row["topic"] or "all topics"].append(row)
    yield from _drawn(
        TimeLines(
            f"{topic}: from send to {what}",
            "ms",
            [(name, [(row["minute_ms"], row[name]) for row in minutes]) for name in map(quantile_name, QUANTILES[:-1])],
        )
        for (what, topic), minutes in groups.items()
    )
    names = [quantile_name(quantile) for quantile in QUANTILES]
    yield from table(
        ("topic", "from send to", "minutes", "records", *(f"worst {name}, ms" for name in names)),
        [
            (topic, what, len(minutes), sum(row["records"] for row in minutes), *_worst(minutes, names))
            for (what, topic), minutes in groups.items()
        ],
    )


def _worst(minutes: Sequence[Row], names: Sequence[str]) -> list[int]:
    return [max(row[name] for row in minutes) for name in names]


def _partitions(summary: Summary) -> Iterator[str]:
    yield "<h2>Partitions</h2>"
    topics: dict[str, list[Row]] = defaultdict(list)
    for row in summary.partitions:
        topics[row["topic"]].append(row)
    yield from _drawn(
        Columns(topic, "partition", "records", [(str(row["partition"]), row["records"]) for row in rows])
        for topic, rows in topics.items()
    )
    columns = ("topic", "partition", "first", "end", "records", "batches", "bytes", "aborted")
    yield from _rows(columns, summary.partitions)
    yield from _more(summary.left_out.get("partitions", 0))


def _batches(summary: Summary) -> Iterator[str]:
    yield "<h2>Batches and windows</h2>"
    columns = ("topic", "batches", *(f"{of}_{of_all}" for of in ("records", "bytes") for of_all in _OF_ALL))
    yield from _rows(columns, summary.batch_sizes)
    if summary.windows:
        yield "<p>In-flight windows that leaders announced, by the producers' metrics:</p>"
        yield from _rows(("topic", "partition", "smallest", "largest", "in_flight"), summary.windows)


_OF_ALL = ("avg", "median", "max")


def _producers(summary: Summary) -> Iterator[str]:
    yield "<h2>Producers</h2>"
    columns = ("producer_id", "records", "batches", "first_epoch", "last_epoch", "aborted")
    yield from _rows(columns, summary.producers)
    yield from _more(summary.left_out.get("producers", 0))


def _keys(summary: Summary) -> Iterator[str]:
    yield "<h2>Keys</h2>"
    rows = [
        (row["topic"], shown(bytes(row["key"])), row["records"], _partitions_of(row["low"], row["high"]))
        for row in summary.keys
    ]
    yield from table(("topic", "key", "records", "partitions"), rows)
    yield from _more(summary.left_out.get("keys", 0))


def _partitions_of(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} … {high}"


def _rows(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    heads = [column.replace("_", " ") for column in columns]
    yield from table(heads, [tuple(row[column] for column in columns) for row in rows])


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Numbers to the right, everything else as text."""
    yield "<table>"
    if any(columns):
        yield f"<tr>{''.join(f'<th>{escape(column)}</th>' for column in columns)}</tr>"
    for row in rows:
        yield f"<tr>{''.join(_cell(value) for value in row)}</tr>"
    yield "</table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td class="number">{f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"}</td>'
    return f"<td>{escape('none' if value is None else str(value))}</td>"


def _more(count: int) -> Iterator[str]:
    if count > 0:
        yield f'<p class="left">… and {count:,} more, in the Parquet files beside this report.</p>'


def _drawn(charts: Iterator[Drawn]) -> Iterator[str]:
    yield from (svg(chart) for chart in charts)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))


def _time(milliseconds: Any) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"
