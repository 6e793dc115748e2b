"""subject.name.strategy."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.errors import ConfigException
from aioproducer.schema_registry.subject_names import strategy_of


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("TopicNameStrategy", "orders-key", "orders-value"),
        ("RecordNameStrategy", "shop.Order", "shop.Order"),
        ("TopicRecordNameStrategy", "orders-shop.Order", "orders-shop.Order"),
        ("io.confluent.kafka.serializers.subject.TopicRecordNameStrategy", "orders-shop.Order", "orders-shop.Order"),
    ],
)
def test_names(name: Any, key: str, value: str) -> None:
    strategy = strategy_of(name)
    assert (strategy("orders", True, "shop.Order"), strategy("orders", False, "shop.Order")) == (key, value)


def test_a_callable_is_one() -> None:
    assert strategy_of(lambda topic, is_key, name: f"{topic}.{is_key}.{name}")("t", True, "n") == "t.True.n"


@pytest.mark.parametrize("name", ["TopicName", "", None, 5])
def test_no_strategy(name: Any) -> None:
    with pytest.raises(ConfigException, match=r"subject\.name\.strategy.*TopicNameStrategy, RecordNameStrategy"):
        strategy_of(name)


@pytest.mark.parametrize("name", ["RecordNameStrategy", "TopicRecordNameStrategy"])
def test_a_schema_without_a_name(name: Any) -> None:
    assert strategy_of("TopicNameStrategy")("t", False, "") == "t-value"
    with pytest.raises(ConfigException, match=f"{name}, and the schema has no name"):
        strategy_of(name)("t", False, "")
