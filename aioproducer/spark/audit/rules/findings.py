"""Turns rows of a rule into findings: the columns that it has, and nulls for all others."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from aioproducer.spark.audit.finding import FINDING_SCHEMA, Finding, Kind

_FIELDS = [field.split() for field in FINDING_SCHEMA.split(", ")]

ONE_RECORD: Final = {
    "first_offset": "offset",
    "last_offset": "offset",
    "first_counter": "counter",
    "last_counter": "counter",
}
"""The columns of a finding about a single record, whose row has ``offset`` and ``counter``."""


def findings_of(rows: DataFrame, kind: Kind | Column, what: Column, **columns: Column | str) -> DataFrame:
    """A finding for each row. ``columns`` are the finding's by name; those with a name of the schema are taken as they
    are, and ``records`` is 1 unless given."""
    given: dict[str, Column | str] = {
        "kind": F.lit(kind.value) if isinstance(kind, Kind) else kind,
        "what": what,
        "records": F.lit(1),
    }
    given.update({name: name for name in rows.columns if name not in given})
    given.update(columns)
    return rows.select(
        *((_column(given[name]) if name in given else F.lit(None)).cast(kind).alias(name) for name, kind in _FIELDS)
    )


def _column(given: Column | str) -> Column:
    return F.col(given) if isinstance(given, str) else given


def finding_of(row: Row) -> Finding:
    """A row of a rule as a finding."""
    values = row.asDict()
    key = values["key"]
    return Finding(**{**values, "kind": Kind(values["kind"]), "key": None if key is None else bytes(key)})
