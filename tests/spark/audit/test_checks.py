from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from aioproducer.spark.audit.checks import Evidence, checks
from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.options import AuditOptions

ALL = Evidence(
    records=100,
    sequenced=100,
    stamped=100,
    logged=100,
    timed=100,
    transactional=10,
    matched=10,
    has_log=True,
    read_committed=True,
)


def unchecked(options: dict[str, Any] | None = None, **seen: Any) -> dict[str, int]:
    """Claims that are not optional, and for how many records they were not checked."""
    made = checks(dataclasses.replace(ALL, **seen), AuditOptions(now_ms=0, **(options or {})))
    return {check.claim: check.unchecked for check in made if not (check.optional or check.complete)}


def test_everything_is_checked_of_records_with_stamps_and_logs() -> None:
    assert unchecked() == {}


@pytest.mark.parametrize(
    ("seen", "options", "claims"),
    [
        (
            {"stamped": 0, "logged": 0, "has_log": False},
            {},
            {
                "no record is there twice": 100,
                "acknowledged records are there, and failed ones are not": 100,
                "no number of a stream is missing": 100,
                "records are in the order in which they were sent": 100,
            },
        ),
        ({"sequenced": 60}, {}, {"sequences of producers follow each other": 40}),
        ({"logged": 99}, {}, {"acknowledged records are there, and failed ones are not": 1}),
        ({"matched": 3}, {}, {"transactions ended, in the same way in all their partitions": 7}),
        ({"read_committed": False}, {}, {"readers of committed records get those, and no others": 100}),
        ({}, {"partial": True}, {"no number of a stream is missing": 100}),
        (
            {"stamped": 90},
            {"unique": True},
            {
                "no number of a stream is missing": 10,
                "records are in the order in which they were sent": 10,
            },
        ),
        ({"timed": 0}, {}, {}),
    ],
)
def test_claims_that_cannot_be_checked_are_listed(
    seen: dict[str, Any], options: dict[str, Any], claims: dict[str, int]
) -> None:
    assert unchecked(options, **seen) == claims


def test_every_kind_of_finding_belongs_to_a_check() -> None:
    assert {kind for check in checks(ALL, AuditOptions(now_ms=0)) for kind in check.kinds} == set(Kind)


def test_every_gap_has_a_reason() -> None:
    nothing = Evidence(9, 0, 0, 0, 0, 9, 0, has_log=False, read_committed=False)
    assert all(check.complete or check.why_not for check in checks(nothing, AuditOptions(now_ms=0)))
