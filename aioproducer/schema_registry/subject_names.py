"""The subject that a schema is registered under: ``subject.name.strategy``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from aioproducer.errors import ConfigException

SubjectNameStrategy = Callable[[str, bool, str], str]
"""(topic, is_key, record name) → subject. The record name is the full name of an Avro record or a Protobuf message, or
the title of a JSON schema; empty if there is none."""

SubjectNameStrategyLike = (
    Literal["TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy"] | SubjectNameStrategy
)
"""What ``subject.name.strategy`` may be."""


def topic_name_strategy(topic: str, is_key: bool, record_name: str) -> str:
    """``orders-value`` and ``orders-key``: one schema for a topic."""
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name_strategy(topic: str, is_key: bool, record_name: str) -> str:
    """``shop.Order``: one schema for a type of record, in any topic."""
    return _needed(record_name, "RecordNameStrategy")


def topic_record_name_strategy(topic: str, is_key: bool, record_name: str) -> str:
    """``orders-shop.Order``: one schema for a type of record in a topic."""
    return f"{topic}-{_needed(record_name, 'TopicRecordNameStrategy')}"


STRATEGIES: Final[Mapping[str, SubjectNameStrategy]] = {
    "TopicNameStrategy": topic_name_strategy,
    "RecordNameStrategy": record_name_strategy,
    "TopicRecordNameStrategy": topic_record_name_strategy,
}

_CONFIG = "subject.name.strategy"
_JAVA = "io.confluent.kafka.serializers.subject."


def strategy_of(given: SubjectNameStrategyLike) -> SubjectNameStrategy:
    """A strategy by its name, also that of Confluent's class in Java; a callable is one. Else ConfigException."""
    if callable(given):
        return given
    if (found := STRATEGIES.get(str(given).removeprefix(_JAVA))) is not None:
        return found
    raise ConfigException(
        f"config {_CONFIG!r} is {given!r:.100}; it must be one of {', '.join(STRATEGIES)}, or a callable", name=_CONFIG
    )


def _needed(record_name: str, strategy: str) -> str:
    if not record_name:
        raise ConfigException(
            f"config {_CONFIG!r} is {strategy}, and the schema has no name: name the Avro record, or give the JSON"
            " schema a title",
            name=_CONFIG,
        )
    return record_name
