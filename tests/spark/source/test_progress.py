"""The lag of a stream, computed from Spark's reports. ``queries/test_source.py`` checks the reports themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioproducer.spark.source.progress import offsets_behind
from aioproducer.types import TopicPartition


def test_each_partition_has_its_own() -> None:
    source = {"endOffset": '{"t": {"0": 7, "1": 0}}', "latestOffset": '{"t": {"0": 9, "1": 0}, "u": {"0": 4}}'}
    expected = {TopicPartition("t", 0): 2, TopicPartition("t", 1): 0, TopicPartition("u", 0): 4}
    assert offsets_behind(source) == expected
    assert offsets_behind({name: json.loads(value) for name, value in source.items()}) == expected


def test_a_partition_read_beyond_its_known_end_is_not_behind() -> None:
    assert offsets_behind({"endOffset": '{"t": {"0": 9}}', "latestOffset": '{"t": {"0": 7}}'}) == {("t", 0): 0}


@pytest.mark.parametrize("source", [{}, {"endOffset": None, "latestOffset": "null"}, {"latestOffset": None}])
def test_before_the_first_batch_nothing_is_known(source: dict[str, Any]) -> None:
    assert offsets_behind(source) == {}
