from __future__ import annotations

import json
import math

import pytest

from aioproducer import MetricName, MetricsSnapshot

CLIENT = ("client-id", "me")


def test_names_groups_and_tags() -> None:
    ours = MetricName("byte-rate", "producer-topic-metrics", (CLIENT, ("topic", "a")))
    assert (ours.tag("topic"), ours.tag("node-id")) == ("a", None)
    assert ours == MetricName("byte-rate", "producer-topic-metrics", (CLIENT, ("topic", "a")))
    assert ours != MetricName("byte-rate", "producer-topic-metrics", (CLIENT, ("topic", "b")))


def sample() -> MetricsSnapshot:
    return MetricsSnapshot(
        {
            MetricName("request-rate", "producer-node-metrics", (CLIENT, ("node-id", "node-1"))): 1.0,
            MetricName("request-rate", "producer-metrics", (CLIENT,)): 3.0,
            MetricName("request-rate", "producer-node-metrics", (CLIENT, ("node-id", "node--2"))): 2.0,
            MetricName("byte-rate", "producer-topic-metrics", (CLIENT, ("topic", "a"))): 10.0,
            MetricName("byte-rate", "producer-topic-metrics", (CLIENT, ("topic", "b"))): 20.0,
            MetricName("compression-rate", "producer-topic-metrics", (CLIENT, ("topic", "b"))): math.nan,
        }
    )


def test_a_plain_name_is_the_producers() -> None:
    found = sample()
    assert found["request-rate"] == 3.0
    known: object = "request-rate"
    assert known in found
    assert found[MetricName("request-rate", "producer-node-metrics", (CLIENT, ("node-id", "node-1")))] == 1.0
    for unknown in ("byte-rate", "nothing"):
        anything: object = unknown
        assert anything not in found
        with pytest.raises(KeyError):
            found[unknown]


def test_selected_by_topic_node_group_and_tag() -> None:
    found = sample()
    assert found.topic("b")["byte-rate"] == 20.0
    assert found.node(1)["request-rate"] == 1.0
    assert found.node(-2)["request-rate"] == 2.0
    assert len(found.topic("c")) == 0
    assert len(found.select("producer-node-metrics")) == 2
    assert found.select(node_id="node-1") == found.node(1)
    assert found.select(client_id="me") == found
    assert found.select(client_id="you") == {}


def test_a_snapshot_cannot_be_changed() -> None:
    values = {MetricName("a", "producer-metrics"): 1.0}
    found = MetricsSnapshot(values)
    values.clear()
    assert found["a"] == 1.0
    with pytest.raises(TypeError):
        found["a"] = 2.0  # type: ignore[index]


def test_for_people() -> None:
    found = MetricsSnapshot({**sample(), MetricName("record-send-total", "producer-metrics", (CLIENT,)): 1234567})
    assert str(found).splitlines() == [
        "producer-metrics",
        "  record-send-total  1,234,567",
        "  request-rate               3",
        "",
        "producer-node-metrics node--2",
        "  request-rate               2",
        "",
        "producer-node-metrics node-1",
        "  request-rate               1",
        "",
        "producer-topic-metrics a",
        "  byte-rate                 10",
        "",
        "producer-topic-metrics b",
        "  byte-rate                 20",
        "  compression-rate           -",
    ]
    assert repr(found) == "<MetricsSnapshot of 7 metrics>"
    assert str(MetricsSnapshot({MetricName("a", "g"): 1234.5, MetricName("b", "g"): math.inf})).splitlines() == [
        "g",
        "  a  1,234.500",
        "  b        inf",
    ]
    assert str(MetricsSnapshot({})) == ""


def test_for_json() -> None:
    found = sample().as_dict()
    assert found == {
        "producer-metrics": {"request-rate": 3.0},
        "producer-node-metrics": {"node-1": {"request-rate": 1.0}, "node--2": {"request-rate": 2.0}},
        "producer-topic-metrics": {"a": {"byte-rate": 10.0}, "b": {"byte-rate": 20.0, "compression-rate": None}},
    }
    assert json.loads(json.dumps(found, allow_nan=False)) == found
