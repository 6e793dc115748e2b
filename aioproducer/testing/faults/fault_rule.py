"""The rules of a ``FaultScript``: when they apply, and what they have hit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from aioproducer.broker import AppendFault, Partition, ReceivedRequest, RequestFault
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.testing.faults.message_entries import entries


class FaultScriptError(ValueError):
    """A rule is impossible; the message says why, and what would be possible."""


class Hit(NamedTuple):
    """What a rule hit. ``api`` is None for a connection, ``topic`` and ``partition`` for a whole request."""

    node_id: int
    api: ApiKey | None = None
    client_id: str | None = None
    topic: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """The requests a rule applies to: those that match everything that is not None. With ``api`` None, connections."""

    api: ApiKey | None
    node: int | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    nth: int = 1
    times: int | None = 1

    def matches(self, request: ReceivedRequest) -> bool:
        """Whether the rule applies to a request, which may also name other topics and partitions."""
        if self.api != request.header.api_key or not self._is_from(request.node_id, request.header.client_id):
            return False
        if self.topic is None:
            return True
        message = request.message()
        if isinstance(message, MetadataRequest):  # it names topics, or asks for all of them
            topics = message.topics
            return topics is None or any(entry.topic == self.topic for entry in entries(message, request.topic_name))
        return any(self.is_about(entry.topic, entry.partition) for entry in entries(message, request.topic_name))

    def matches_append(self, node_id: int, client_id: str | None, partition: Partition) -> bool:
        """Whether the rule applies to a batch of a Produce request."""
        return self._is_from(node_id, client_id) and self.is_about(partition.topic, partition.index)

    def matches_connection(self, node_id: int) -> bool:
        return self.api is None and self.node in (None, node_id)

    def is_about(self, topic: str, partition: int | None) -> bool:
        return self.topic in (None, topic) and (self.partition is None or self.partition == partition)

    def _is_from(self, node_id: int, client_id: str | None) -> bool:
        return self.node in (None, node_id) and self.client_id in (None, client_id)

    def __str__(self) -> str:
        words = ["a connection" if self.api is None else self.api.name]
        if self.topic is not None:
            words.append(f"for {self.topic}" + ("" if self.partition is None else f"-{self.partition}"))
        if self.client_id is not None:
            words.append(f"from client {self.client_id!r}")
        if self.node is not None:
            words.append(f"at node {self.node}")
        if self.times is None:
            words.append("every time" if self.nth == 1 else f"every time from number {self.nth} on")
        elif self.times == 1:
            words.append(f"number {self.nth}")
        else:
            words.append(f"numbers {self.nth} to {self.nth + self.times - 1}")
        return " ".join(words)


@dataclass(slots=True, eq=False)
class FaultRule:
    """``hits`` are what the rule hit, oldest first; ``seen`` counts everything that matched it."""

    when: When
    effect: str
    optional: bool = False
    seen: int = 0
    hits: list[Hit] = field(default_factory=list)

    def strikes(self) -> bool:
        """Counts a match, and returns whether the rule is due for it."""
        self.seen += 1
        return self.is_due()

    def is_due(self) -> bool:
        return self.seen >= self.when.nth and (self.when.times is None or len(self.hits) < self.when.times)

    def __str__(self) -> str:
        return f"{self.when}: {self.effect}"


Effect = Callable[[ReceivedRequest], RequestFault | None]
"""What a rule does to a request."""


@dataclass(slots=True, eq=False)
class ScriptedRules:
    """The rules of a script so far, for a cluster with this many ``nodes`` (None: any number)."""

    nodes: int | None
    begun: list[When] = field(default_factory=list)
    """Rules that have a condition, but no effect yet."""
    connections: list[FaultRule] = field(default_factory=list)
    requests: list[tuple[FaultRule, Effect]] = field(default_factory=list)
    appends: list[tuple[FaultRule, AppendFault]] = field(default_factory=list)

    def begin(self, when: When) -> When:
        """Raises :class:`FaultScriptError` for what is impossible."""
        if when.node is not None:
            self.check_node(when.node)
        if when.nth < 1:
            raise FaultScriptError(f"nth counts from 1, so it cannot be {when.nth}")
        if when.times is not None and when.times < 1:
            raise FaultScriptError(f"times must be at least 1, or None for every time, not {when.times}")
        self.begun.append(when)
        return when

    def add(self, when: When, effect: str, optional: bool) -> FaultRule:
        """Completes a rule with its effect."""
        self.begun = [begun for begun in self.begun if begun is not when]
        return FaultRule(when, effect, optional)

    def all(self) -> list[FaultRule]:
        """Connections first, then requests, then appends, each in the order they were written."""
        return [*self.connections, *(rule for rule, _ in self.requests), *(rule for rule, _ in self.appends)]

    def check_node(self, node: int) -> None:
        if node < 0 or (self.nodes is not None and node >= self.nodes):
            has = "" if self.nodes is None else f": the cluster has nodes 0 to {self.nodes - 1}"
            raise FaultScriptError(f"there is no node {node}{has}")
