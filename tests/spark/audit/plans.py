"""The plans that Spark has executed, in their final form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Node:
    """One node of a plan; ``rows``: how many it gave, if Spark counts them."""

    name: str
    text: str
    rows: int | None


@contextmanager
def executed(spark: Any) -> Iterator[Callable[[], list[Node]]]:
    """The nodes of everything that is executed in the block."""
    before = spark.conf.get("spark.sql.maxMetadataStringLength")
    spark.conf.set("spark.sql.maxMetadataStringLength", 10_000)
    store = spark._jsparkSession.sharedState().statusStore()
    first = 1 + max((one.executionId() for one in _all(store.executionsList())), default=-1)

    def nodes() -> list[Node]:
        spark._jsc.sc().listenerBus().waitUntilEmpty()
        found = []
        for execution in _all(store.executionsList()):
            number = execution.executionId()
            if number >= first:
                metrics = store.executionMetrics(number)
                found += [_node(node, metrics) for node in _all(store.planGraph(number).allNodes())]
        return found

    try:
        yield nodes
    finally:
        spark.conf.set("spark.sql.maxMetadataStringLength", before)


def _all(of_scala: Any) -> list[Any]:
    return [of_scala.apply(place) for place in range(of_scala.size())]


def _node(node: Any, metrics: Any) -> Node:
    rows = None
    for metric in _all(node.metrics()):
        value = metrics.get(metric.accumulatorId())
        if metric.name() == "number of output rows" and value.isDefined():
            rows = int(value.get().replace(",", ""))
    return Node(node.name(), node.desc(), rows)
