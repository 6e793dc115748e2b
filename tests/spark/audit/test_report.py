from __future__ import annotations

from typing import Any

import pytest

from aioproducer import Severity
from aioproducer.spark.audit.charts import ceiling, short
from aioproducer.spark.audit.checks import Check
from aioproducer.spark.audit.finding import Finding, Kind, shown
from aioproducer.spark.audit.report import html
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
    return Summary(topics=["t"], now_ms=0, found=found, totals=TOTALS, transactions={}, **{"checks": [], **more})


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
    assert "<td>they have no stamps</td>" in text
    assert summary(Found(Kind.GAP, 1, 1, []), checks=[UNKNOWN]).verdict == "3 records, and found: gap (1)"


@pytest.mark.parametrize(("kind", "color"), [(Kind.GAP, "critical"), (Kind.SKEW, "warning")])
def test_the_verdict_has_the_color_of_the_worst(kind: Kind, color: str) -> None:
    text = html(summary(Found(kind, 7, 9, [finding(kind, topic="t")])))
    assert f'<p class="verdict {color}">3 records, and found: {kind.value} (9)</p>' in text
    assert "… and 6 more, in the Parquet files" in text


def test_what_records_contain_is_not_taken_for_html() -> None:
    text = html(summary(Found(Kind.EQUAL, 1, 1, [finding(Kind.EQUAL, topic="t", key=b"<script>", what="<b>")])))
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_a_finding_says_where_who_and_what() -> None:
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


def test_axes_end_at_round_numbers() -> None:
    assert [ceiling(value) for value in (0, 1, 1.1, 3, 6, 11, 0.3)] == [1, 1, 2, 5, 10, 20, 0.5]
    assert [short(value) for value in (0, 12, 1500, 2_000_000, 5e9)] == ["0", "12", "1.5 k", "2 M", "5 G"]
