from __future__ import annotations

import pytest

from aioproducer.metrics.registry import MetricRegistry

TAGS = (("client-id", "me"),)


def test_parts_of_a_client_share_a_group() -> None:
    registry = MetricRegistry()
    registry.group("g", TAGS).gauge("one", "", lambda now: 1.0)
    registry.group("g", TAGS).gauge("two", "", lambda now: 2.0)
    with pytest.raises(AssertionError, match="there already"):
        registry.group("g", TAGS).gauge("one", "", lambda now: 3.0)
    assert len(registry) == len(registry.values(0.0)) == 2


def test_no_metric_is_there_twice() -> None:
    registry = MetricRegistry()
    group, other = registry.group("g", TAGS), registry.group("g", TAGS)
    group.gauge("one", "", lambda now: 1.0)
    with pytest.raises(AssertionError, match="another group"):
        other.gauge("one", "", lambda now: 2.0)


def test_a_group_that_was_removed_makes_room_for_another() -> None:
    registry = MetricRegistry()
    group = registry.group("g", TAGS)
    group.gauge("one", "", lambda now: 1.0)
    group.remove()
    assert (len(registry), registry.values(0.0)) == (0, {})
    registry.group("g", TAGS).gauge("one", "", lambda now: 2.0)
    assert list(registry.values(0.0).values()) == [2.0]
