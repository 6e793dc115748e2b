"""Findings counted by kind, and examples of each with everything that the records themselves say."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import Finding, Kind
from aioproducer.spark.audit.frames.local_frame import local_frame
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.rules.findings import finding_of
from aioproducer.spark.audit.summary import Found

_PLACE: Final = "topic string, partition int, offset long"
Place = tuple[str, int, int]


def found_in(findings: DataFrame, records: DataFrame, options: AuditOptions) -> list[Found]:
    """By kind, worst first; ``records`` are the observations that the findings are about."""
    counted = findings.groupBy("kind").agg(F.count("*").alias("findings"), F.sum("records").alias("records"))
    counts = {Kind(row["kind"]): row for row in counted.collect()}
    kinds = sorted(counts, key=lambda kind: (-kind.severity, list(Kind).index(kind)))
    some = {kind: _first(findings.where(F.col("kind") == kind.value), options.examples) for kind in kinds}
    named = _named((finding for examples in some.values() for finding in examples), records)
    return [
        Found(
            kind,
            counts[kind]["findings"],
            counts[kind]["records"],
            [_with_names(finding, named) for finding in some[kind]],
        )
        for kind in kinds
    ]


def _first(findings: DataFrame, count: int) -> list[Finding]:
    ordered = findings.orderBy("topic", "partition", "first_offset", "stream", "first_counter")
    return [finding_of(row) for row in ordered.limit(count).collect()]


def _place(finding: Finding) -> Place | None:
    if finding.topic is None or finding.partition is None or finding.first_offset is None:
        return None
    return finding.topic, finding.partition, finding.first_offset


def _named(findings: Iterable[Finding], records: DataFrame) -> dict[Place, Row]:
    """The records at which findings begin."""
    places = sorted({place for finding in findings if (place := _place(finding)) is not None})
    if not places:
        return {}
    wanted = local_frame(records.sparkSession, places, _PLACE)
    columns = ("topic", "partition", "offset", "producer_id", "producer_epoch", "stream", "key")
    near = records.where(
        F.col("offset").isin([offset for _, _, offset in places])
    )  # Parquet skips what has none of them
    found = near.join(F.broadcast(wanted), ["topic", "partition", "offset"]).select(*columns)
    return {(row["topic"], row["partition"], row["offset"]): row for row in found.collect()}


def _with_names(finding: Finding, named: Mapping[Place, Row]) -> Finding:
    """Takes from the first record what the rule did not say because it looks at whole batches."""
    place = _place(finding)
    if place is None or place not in named:
        return finding
    row = named[place]
    names = {
        name: row[name]
        for name in ("producer_id", "producer_epoch", "stream")
        if getattr(finding, name) is None and row[name] is not None
    }
    key = finding.key if finding.key is not None or row["key"] is None else bytes(row["key"])
    return dataclasses.replace(finding, key=key, **names)
