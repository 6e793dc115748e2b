"""The source's options: those of Spark's own Kafka source, where they have a meaning here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

from aioproducer.configs.client_config import client_config
from aioproducer.configs.unsupported import BY_READERS
from aioproducer.errors import IllegalArgumentException
from aioproducer.reader import ReaderConfig
from aioproducer.spark.options import (
    check_known,
    duration_ms,
    flag,
    kafka_configs,
    number,
    one_of,
    text,
    without_ignored,
)
from aioproducer.types import TopicPartition

LATEST, EARLIEST = -1, -2
"""Offsets with a special meaning in Spark's JSON."""

FETCH_BYTES = "4194304"
"""Default of max.partition.fetch.bytes: a task reads nothing but its partition."""

_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_STARTING = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDING = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_STRATEGY = "startingOffsetsByTimestampStrategy"
_INCLUDE = ("includeHeaders", "includeBatch")
_PLANNING = ("failOnDataLoss", "minPartitions", "maxRecordsPerPartition")
_LIMIT = "maxOffsetsPerTrigger"
_LEAST = "minOffsetsPerTrigger"
_LONGEST_DELAY = "maxTriggerDelay"
_DELAY_MS = 15 * 60_000
"""Spark's default."""

BATCH_OPTIONS = (*_SUBSCRIPTIONS, *_STARTING, *_ENDING, _STRATEGY, *_PLANNING, *_INCLUDE)
STREAM_OPTIONS = (*_SUBSCRIPTIONS, *_STARTING, _STRATEGY, *_PLANNING, _LIMIT, _LEAST, _LONGEST_DELAY, *_INCLUDE)

_NO_GROUP = "there is no consumer group, and a stream's offsets are in its checkpoint"
_OWN_TIMES = "requests are repeated until default.api.timeout.ms"
_IGNORED = {
    "groupIdPrefix": _NO_GROUP,
    "kafka.group.id": _NO_GROUP,
    "fetchOffset.numRetries": _OWN_TIMES,
    "fetchOffset.retryIntervalMs": _OWN_TIMES,
    "kafkaConsumer.pollTimeoutMs": _OWN_TIMES,
    "useDeprecatedOffsetFetching": "offsets are looked up without a consumer",
}
_REFUSED = {
    "key.deserializer": "keys and values are bytes: cast the columns",
    "value.deserializer": "keys and values are bytes: cast the columns",
    "auto.offset.reset": 'set option "startingOffsets"',
    "enable.auto.commit": "nothing is committed: a stream's offsets are in its checkpoint",
    "interceptor.classes": "records are read as columns, not one by one",
}


class Position(NamedTuple):
    """A position in a partition: an offset, possibly LATEST or EARLIEST, or the first record from a time (ms) on."""

    kind: Literal["offset", "time"]
    value: int

    @property
    def is_offset(self) -> bool:
        """Whether the offset is known without a request to a broker."""
        return self.kind == "offset" and self.value >= 0


@dataclass(frozen=True, slots=True)
class Positions:
    """Where to begin or to end: the same in all partitions, or as ``each`` says."""

    option: str
    everywhere: Position | None
    each: Mapping[TopicPartition, Position] = field(default_factory=dict)

    def of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
        """The position in each partition; IllegalArgumentException unless there is one for exactly these."""
        wanted = sorted(partitions)
        if self.everywhere is not None:
            return dict.fromkeys(wanted, self.everywhere)
        missing = [str(partition) for partition in wanted if partition not in self.each]
        beyond = [str(partition) for partition in sorted(self.each) if partition not in set(wanted)]
        wrong = [
            *([f"it does not name {', '.join(missing)}"] if missing else []),
            *([f"it names {', '.join(beyond)}, which are not read"] if beyond else []),
        ]
        if wrong:
            raise IllegalArgumentException(
                f'option "{self.option}" must name every partition that is read, and no other: {"; ".join(wrong)} '
                "(as an offset, -2 is the earliest and -1 the latest)"
            )
        return {partition: self.each[partition] for partition in wanted}


@dataclass(frozen=True, slots=True)
class Subscription:
    """What is read; one of the three: topics, topics by a pattern, or partitions."""

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    partitions: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Checked, as far as that can be done without a broker."""

    configs: Mapping[str, str] = field(repr=False)
    """The configs of the readers, by their dotted names, including ``bootstrap.servers``."""
    subscription: Subscription
    starting: Positions
    ending: Positions
    """Of a batch."""
    latest_if_none: bool
    """Whether to begin at the end of a partition that has no record from the starting time on; otherwise an error."""
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    """All three of a stream. A batch waits for the least number of offsets, but no longer than this."""

    @classmethod
    def of(cls, given: Mapping[str, str], *, streaming: bool) -> Self:
        """IllegalArgumentException or ConfigException for what is wrong with them."""
        options = without_ignored(given, _IGNORED, "source")
        mine, others = (STREAM_OPTIONS, BATCH_OPTIONS) if streaming else (BATCH_OPTIONS, STREAM_OPTIONS)
        for name in others:
            if name not in mine and name.lower() in map(str.lower, options):
                raise IllegalArgumentException(f'option "{name}" is for {"batches" if streaming else "streams"} only')
        check_known(options, mine, "source")
        configs = _configs(options)
        starting = _positions(options, _STARTING, LATEST if streaming else EARLIEST)
        ending = _positions(options, _ENDING, LATEST)
        if not streaming:
            _check_not(starting, LATEST, "a batch cannot begin at the latest offset, where there is nothing yet")
        _check_not(ending, EARLIEST, "a batch cannot end at the earliest offset, before which there is nothing")
        least, most = number(options, _LEAST, at_least=1), number(options, _LIMIT, at_least=1)
        if least is not None and most is not None and least > most:
            raise IllegalArgumentException(
                f'option "{_LEAST}" is {least}, more than option "{_LIMIT}", which is {most}'
            )
        return cls(
            configs=configs,
            subscription=_subscription(options),
            starting=starting,
            ending=ending,
            latest_if_none=one_of(options, _STRATEGY, ("error", "latest"), "error") == "latest",
            fail_on_data_loss=flag(options, "failOnDataLoss", default=True),
            min_partitions=number(options, "minPartitions", at_least=1),
            max_records_per_partition=number(options, "maxRecordsPerPartition", at_least=1),
            max_offsets_per_trigger=most,
            min_offsets_per_trigger=least,
            max_trigger_delay_ms=duration_ms(options, _LONGEST_DELAY, _DELAY_MS),
        )

    @property
    def read_committed(self) -> bool:
        return self.configs.get("isolation.level") == "read_committed"


def check_loaded(given: Mapping[str, str]) -> None:
    """The errors of options that neither a batch nor a stream has: ``load()`` does not say which of them it is for."""
    ignored = {name.lower() for name in _IGNORED}
    options = {name: value for name, value in given.items() if name.lower() not in ignored}
    check_known(options, {*BATCH_OPTIONS, *STREAM_OPTIONS}, "source")
    _configs(options)
    _subscription(options)


def _configs(options: Mapping[str, str]) -> dict[str, str]:
    configs = {"max.partition.fetch.bytes": FETCH_BYTES, **kafka_configs(options, _REFUSED)}
    client_config(ReaderConfig, configs, owner="reader", unsupported=BY_READERS)
    return configs


def _subscription(options: Mapping[str, str]) -> Subscription:
    given = {name: value for name in _SUBSCRIPTIONS if (value := text(options, name)) is not None}
    if len(given) != 1:
        said = " and ".join(f'"{name}"' for name in given) or "none of them is"
        raise IllegalArgumentException(
            f'exactly one of the options "subscribe", "subscribePattern" and "assign" says what is read; {said} given'
        )
    ((option, value),) = given.items()
    if option == "subscribe":
        topics = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
        if not topics:
            raise IllegalArgumentException('option "subscribe" names no topic; it is names, separated by commas')
        return Subscription(topics=topics)
    if option == "subscribePattern":
        try:
            return Subscription(pattern=re.compile(value))
        except re.error as error:
            raise IllegalArgumentException(
                f'option "subscribePattern" is "{value}", which is not a regular expression of Python: {error}'
            ) from error
    example = '{"topic": [0, 1]}'
    partitions = {
        TopicPartition(topic, _number(option, number, example))
        for topic, numbers in _mapping(option, value, example).items()
        for number in _list(option, numbers, example)
    }
    if not partitions:
        raise IllegalArgumentException(f'option "assign" names no partition; write, for example, {example}')
    return Subscription(partitions=frozenset(partitions))


def _positions(options: Mapping[str, str], names: tuple[str, str, str], default: int) -> Positions:
    """Of the three ways to give it, the first that is present counts, as in Spark."""
    everywhere, by_timestamp, by_offset = names
    value = text(options, everywhere)
    if value is not None:
        return Positions(everywhere, Position("time", _time(everywhere, value)))
    value = text(options, by_timestamp)
    if value is not None:
        example = '{"topic": {"0": 1700000000000, "1": 1700000000000}}'
        each = _each(by_timestamp, value, example, lambda given: Position("time", _time(by_timestamp, given)))
        return Positions(by_timestamp, None, each)
    value = text(options, by_offset)
    if value is None:
        return Positions(by_offset, Position("offset", default))
    if value.strip().lower() in ("earliest", "latest"):
        return Positions(by_offset, Position("offset", EARLIEST if value.strip().lower() == "earliest" else LATEST))
    example = 'earliest, latest, or {"topic": {"0": 23, "1": -2}}'
    return Positions(by_offset, None, _each(by_offset, value, example, lambda given: _offset(by_offset, given)))


def _check_not(positions: Positions, offset: int, why: str) -> None:
    refused = Position("offset", offset)
    if positions.everywhere == refused or refused in positions.each.values():
        raise IllegalArgumentException(f'option "{positions.option}": {why}')


def _each(option: str, value: str, example: str, position: Callable[[Any], Position]) -> dict[TopicPartition, Position]:
    return {
        TopicPartition(topic, _number(option, partition, example)): position(given)
        for topic, of_topic in _mapping(option, value, example).items()
        for partition, given in _mapping(option, of_topic, example).items()
    }


def _offset(option: str, given: object) -> Position:
    if not isinstance(given, int) or isinstance(given, bool) or given < EARLIEST:
        raise IllegalArgumentException(
            f'option "{option}": {given!r} is not an offset: give at least 0, or -1 for the latest, -2 for the earliest'
        )
    return Position("offset", given)


def _time(option: str, given: object) -> int:
    time = _integer(given)
    if time is None or time < 0:
        raise IllegalArgumentException(f'option "{option}": {given!r} is not a time in milliseconds since 1970')
    return time


def _number(option: str, given: object, example: str) -> int:
    partition = _integer(given)
    if partition is None or partition < 0:
        raise IllegalArgumentException(f'option "{option}": {given!r} is not a partition as in {example}')
    return partition


def _integer(given: object) -> int | None:
    if isinstance(given, bool) or not isinstance(given, int | str):
        return None
    try:
        return int(given)
    except ValueError:
        return None


def _mapping(option: str, value: object, example: str) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise IllegalArgumentException(
                f'option "{option}" is "{value}", which is not JSON ({error}); write, for example, {example}'
            ) from error
    if not isinstance(value, dict):
        raise IllegalArgumentException(f'option "{option}": {value!r} is not a JSON object as in {example}')
    return value


def _list(option: str, value: object, example: str) -> list[Any]:
    if not isinstance(value, list):
        raise IllegalArgumentException(f'option "{option}": {value!r} is not a JSON list as in {example}')
    return value
