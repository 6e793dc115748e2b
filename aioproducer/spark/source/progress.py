"""Computes how far a stream is behind its topics, from the progress of a query as Spark reports it.

Spark's Kafka source reports such metrics itself; a source in Python cannot add any to the progress.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aioproducer.spark.source.offset_plan import from_json
from aioproducer.types import TopicPartition


def offsets_behind(source: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """For each partition, how many offsets had not been read at the end of a batch.

    ``source`` is one of ``query.lastProgress["sources"]``, and of the format ``aioproducer``. Empty before the first
    batch. Transactions' markers have offsets, too.
    """
    ends, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    return {partition: max(latest[partition] - ends.get(partition, 0), 0) for partition in sorted(latest)}


def _offsets(given: object) -> dict[TopicPartition, int]:
    """Spark gives JSON, in which null is "null"."""
    found = json.loads(given) if isinstance(given, str) else given
    return from_json(found) if isinstance(found, Mapping) else {}
