"""Every metric at one moment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aioproducer.metrics.distribution import Buckets
from aioproducer.metrics.metric_name import NODE_GROUP, PRODUCER_GROUP, TOPIC_GROUP, MetricName
from aioproducer.metrics.text_table import text_table


class MetricsSnapshot(Mapping[MetricName, float]):
    """Values by :class:`MetricName`; never changes.

    ``snapshot["record-send-rate"]``: a plain name means the group ``producer-metrics`` or, if that does not have it, as
    in ``snapshot.topic("orders")``, the only metric with the name. A value is NaN if there is none yet, such as the
    average of no samples. ``print(snapshot)`` prints a table.
    """

    __slots__ = ("_plain", "_values", "distributions")

    def __init__(self, values: Mapping[MetricName, float], distributions: Sequence[Buckets] = ()) -> None:
        self._values = dict(values)
        self.distributions = tuple(distributions)
        """What is counted by bounds; not a part of the mapping."""
        self._plain: dict[str, float] | None = None

    def __getitem__(self, name: MetricName | str) -> float:
        return self._values[name] if isinstance(name, MetricName) else self._by_plain_name()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._by_plain_name()

    def __iter__(self) -> Iterator[MetricName]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<MetricsSnapshot of {len(self._values)} metrics>"

    def __str__(self) -> str:
        blocks: dict[str, list[tuple[str, float]]] = {}
        for name, value in self._values.items():
            blocks.setdefault(" ".join([name.group, *_parts(name)]), []).append((name.name, value))
        return text_table((heading, sorted(rows)) for heading, rows in sorted(blocks.items()))

    def _by_plain_name(self) -> dict[str, float]:
        if self._plain is None:
            plain: dict[str, float] = {}
            ambiguous: set[str] = set()
            for name, value in self._values.items():
                if name.group != PRODUCER_GROUP:
                    if name.name in plain:
                        ambiguous.add(name.name)
                    plain[name.name] = value
            for known in ambiguous:
                del plain[known]
            plain.update((name.name, value) for name, value in self._values.items() if name.group == PRODUCER_GROUP)
            self._plain = plain
        return self._plain

    def select(self, group: str | None = None, **tags: str) -> MetricsSnapshot:
        """The metrics of a group, and with these tags (write ``_`` for ``-``): ``select(node_id="node-0")``."""
        wanted = {key.replace("_", "-"): value for key, value in tags.items()}
        return MetricsSnapshot(
            {
                name: value
                for name, value in self._values.items()
                if group in (None, name.group) and all(name.tag(key) == tag for key, tag in wanted.items())
            }
        )

    def topic(self, topic: str) -> MetricsSnapshot:
        """The metrics of one topic; empty until a record is sent to it, and again when the topic is forgotten."""
        return self.select(TOPIC_GROUP, topic=topic)

    def node(self, node_id: int) -> MetricsSnapshot:
        """The metrics of one broker; bootstrap servers have ids from -1 down."""
        return self.select(NODE_GROUP, node_id=f"node-{node_id}")

    def as_dict(self) -> dict[str, Any]:
        """For JSON: by group and name; metrics of a node, a topic or anything else by that first. NaN becomes None."""
        found: dict[str, Any] = {}
        for name, value in self._values.items():
            into = found.setdefault(name.group, {})
            for part in _parts(name):
                into = into.setdefault(part, {})
            into[name.name] = value if math.isfinite(value) else None
        return found


def _parts(name: MetricName) -> list[str]:
    """What a metric belongs to, the largest first. All metrics of a producer belong to its client id."""
    tags = [tag for tag in name.tags if tag[0] != "client-id" or not name.group.startswith("producer-")]
    return [value for _, value in sorted(tags, key=lambda tag: tag[0] not in ("node-id", "topic"))]
