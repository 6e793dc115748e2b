"""The user's partitioner (``partitioner.class``), and how its answers are handled."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from aioproducer.errors import ConfigException, PartitionerException
from aioproducer.tasks.coroutine_functions import is_async
from aioproducer.types import PartitionInfo, TopicPartitions


class CustomPartitioner:
    """Asks a :class:`~aioproducer.partitioners.Partitioner`, or a plain callable with its parameters."""

    def __init__(self, plugin: Any) -> None:
        self._name = getattr(plugin, "__qualname__", type(plugin).__qualname__)
        self._ask: Callable[..., Any] = getattr(plugin, "partition", plugin)
        if is_async(self._ask):
            raise ConfigException(
                f"config 'partitioner.class' is {plugin!r:.100}, which is asynchronous: send() calls it, and does not "
                "await it",
                name="partitioner.class",
                value=plugin,
            )
        self._topics: dict[str, tuple[Sequence[PartitionInfo], TopicPartitions]] = {}

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        infos: Sequence[PartitionInfo],
    ) -> int:
        """The index of one of the topic's partitions; PartitionerException for any other result."""
        known, partitions = self._topics.get(topic, (None, None))
        if partitions is None or known is not infos:
            partitions = TopicPartitions(infos)
            self._topics[topic] = infos, partitions
        try:
            answer = self._ask(topic, key, key_bytes, value, value_bytes, partitions)
        except Exception as error:
            raise PartitionerException(
                f"the partitioner {self._name} failed for a record of topic {topic!r}: {type(error).__name__}: {error}"
            ) from error
        try:
            index = operator.index(answer)
        except TypeError:
            index = -1
        if not 0 <= index < len(partitions):
            raise PartitionerException(
                f"the partitioner {self._name} answered {answer!r:.100} for a record of topic {topic!r}, which has "
                f"{len(partitions)} partitions: it must answer with an int from 0 to {len(partitions) - 1}"
            )
        return index
