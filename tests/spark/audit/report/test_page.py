from __future__ import annotations

from typing import Any

import pytest

from aioproducer import Severity
from aioproducer.spark.audit.checks import Check
from aioproducer.spark.audit.finding import Finding, Kind, shown
from aioproducer.spark.audit.report.page import html
from aioproducer.spark.audit.summary import Found, Summary

TOTALS = {
    "records": 3,
    "batches": 1,
    "bytes": 300,
    "stamped": 0,
    "streams": 0,
    "acknowledged": 0,
    "first_ms": 0,
    "last_ms": 1000,
}


def finding(kind: Kind, **columns: Any) -> Finding:
    names = dict.fromkeys(Finding.__slots__)
    return Finding(**{**names, "records": 1, "what": "so it is", **columns, "kind": kind})


def summary(*found: Found, **more: Any) -> Summary:
    given = {"topics": ["t"], "checks": [], **more}
    return Summary(now_ms=0, found=found, totals=TOTALS, transactions={}, **given)


HOLDS = Check("offsets follow each other", [Kind.HOLE], 3, 3)
UNKNOWN = Check("no record is there twice", [Kind.DUPLICATE], 1, 3, "they have no stamps")
OPTIONAL = Check("each key is in one partition", [Kind.SPLIT_KEY], 0, 3, "only on request", optional=True)


def test_a_verdict_without_findings() -> None:
    text = html(summary(checks=[HOLDS, OPTIONAL]))
    assert '<p class="verdict ok">OK: 3 records, and every check passed</p>' in text
    assert "<h2>Findings</h2>" not in text
    assert "No latency data" in text


def test_a_verdict_says_what_was_not_checked() -> None:
    """Nothing found is no proof: it is not called OK."""
    made = summary(checks=[HOLDS, UNKNOWN, OPTIONAL])
    verdict = "Nothing found in 3 records, but not everything could be checked; unknown: no record is there twice"
    assert (made.ok, made.proved, made.verdict) == (True, False, verdict)
    assert made.checked == ["offsets follow each other"]
    assert made.not_checked == [
        "no record is there twice (not checked for 2 of 3 records: they have no stamps)",
        "each key is in one partition (not checked for any record: only on request)",
    ]
    text = html(made)
    assert f'<p class="verdict warning">{verdict}</p>' in text
    assert ">they have no stamps</td>" in text
    assert summary(Found(Kind.GAP, 1, 1, []), checks=[UNKNOWN]).verdict == "3 records, and found: gap (1)"


@pytest.mark.parametrize(("kind", "color"), [(Kind.GAP, "critical"), (Kind.SKEW, "warning")])
def test_the_verdict_has_the_color_of_the_worst(kind: Kind, color: str) -> None:
    text = html(summary(Found(kind, 7, 9, [finding(kind, topic="t")])))
    assert f'<p class="verdict {color}">3 records, and found: {kind.value} (9)</p>' in text
    assert "… and 6 more, in the Parquet files" in text


def test_the_content_of_records_is_escaped_in_html() -> None:
    text = html(summary(Found(Kind.EQUAL, 1, 1, [finding(Kind.EQUAL, topic="t", key=b"<script>", what="<b>")])))
    assert ">key &lt;script&gt;</td>" in text
    assert ">&lt;b&gt;</td>" in text


TOPICS = ["a-topic-with-a-long-name", "another-topic-with-a-long-name"]
PARTITION = {"first": 0, "end": 9, "records": 9, "batches": 1, "bytes": 90, "aborted": 0}
MINUTE = {"what": "appended", "minute_ms": 60_000, "records": 9, "p50": 1, "p95": 2, "p99": 3, "p100": 4}


def of_topics(topics: list[str], partitions: int = 3) -> Summary:
    examples = [finding(Kind.GAP, topic=topic, partition=7, first_offset=5, last_offset=6) for topic in topics]
    return summary(
        Found(Kind.GAP, 2, 2, examples),
        topics=topics,
        partitions=[{"topic": t, "partition": p, **PARTITION} for t in topics for p in range(partitions)],
        latencies=[{"topic": topic, **MINUTE} for topic in topics],
        keys=[{"topic": topic, "key": b"k", "records": 9, "low": 0, "high": 1} for topic in topics],
    )


@pytest.mark.parametrize(("topics", "shown"), [(TOPICS[:1], "a-topic-with-a-long-name"), (["t"] * 9, "9 topics")])
def test_the_title_names_topics_if_they_are_few(topics: list[str], shown: str) -> None:
    assert f"<h1>Delivery audit of {shown}</h1>" in html(summary(topics=topics))


def test_a_long_name_is_a_heading_and_is_not_in_every_row() -> None:
    parts = html(of_topics(TOPICS, partitions=50)).split("<section>")
    per_section = [sum(part.count(f">{topic}<") for topic in TOPICS) for part in parts]
    assert max(per_section) == 2, "each is there once in a section"
    (one,) = (part for part in html(of_topics(TOPICS[:1])).split("<section>") if "<h2>Partitions</h2>" in part)
    assert TOPICS[0] not in one, "the only topic is in the title"


def test_an_example_has_columns_for_partition_and_offsets() -> None:
    short = '<td class="short">'
    row = f'<tr><td class="number" data-value="7">7</td>{short}5…6</td>{short}</td>{short}so it is</td>'
    assert row in html(of_topics(["t"]))


def test_a_finding_names_place_client_and_cause() -> None:
    place = {"topic": "t", "partition": 3, "first_offset": 17, "last_offset": 19}
    who = {"producer_id": 7, "producer_epoch": 1, "stream": "s", "first_counter": 5, "last_counter": 5, "key": b"k"}
    found = finding(Kind.GAP, **place, **who)
    assert str(found) == "gap · t-3@17…19 · producer 7 epoch 1, stream s number 5, key k · so it is"
    assert str(finding(Kind.INCOMPLETE_LOG)) == "incomplete delivery log · so it is"


def test_keys_are_shown_as_text_if_they_are_some() -> None:
    assert [shown(key) for key in ("köln".encode(), b"\xff\x00", b"a\nb", bytes(100))] == [
        "köln",
        "0xff00",
        "'a\\nb'",
        repr("\0" * 100)[:60] + "…",
    ]


def test_every_kind_has_a_meaning_and_a_severity() -> None:
    assert all(kind.meaning.endswith(".") for kind in Kind)
    assert {kind.severity for kind in Kind} == {Severity.WARNING, Severity.CRITICAL}
