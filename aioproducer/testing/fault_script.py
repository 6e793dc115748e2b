"""Faults of the embedded broker, written down before a test: what goes wrong, when, how often.

::

    faults.on(ApiKey.PRODUCE, partition=("orders", 0), nth=2).answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, appended=True)
    faults.on(ApiKey.FETCH, node=1, times=None).delay_response(0.2)
    faults.on_connection(times=3).refuse()

``docs/testing.md`` has a table of it all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aioproducer.broker import AppendFault, Faults, Partition, ReceivedRequest, RequestFault
from aioproducer.broker.config_changes import ConfigChange, OpType
from aioproducer.broker.kafka_apis import APIS as SERVED
from aioproducer.error_code import ErrorCode
from aioproducer.protocol.api_keys import APIS, ApiKey
from aioproducer.protocol.schema import Response, Versions
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.fault_rule import FaultRule, FaultScriptError, Hit, When
from aioproducer.testing.message_entries import (
    entries,
    has_error,
    mirrors,
    names_partitions,
    names_topics,
    set_errors,
    with_error,
)

_CHANGES_NOTHING: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.LIST_GROUPS,
        ApiKey.LIST_OFFSETS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.METADATA,
        ApiKey.OFFSET_FETCH,
    }
)
"""Whether their requests are handled before they are answered with an error makes no difference."""

_EVERY_VERSION = Versions.parse("0+")
_WINDOW = "producer.state.batches.to.retain"

Effect = Callable[[ReceivedRequest], RequestFault | None]


class FaultScript(Faults):
    """The faults of a cluster: ``EmbeddedCluster(faults=script)``, or the ``faults`` of a fixture's cluster.

    Rules may be added at any time, from any thread. Each strikes once unless told otherwise. Each counts what it is
    about by itself; where several are due, the one that was written first strikes, and the others are due the next
    time: rules written one below the other happen one after the other.
    """

    def __init__(self, *, nodes: int | None = None) -> None:
        self._nodes = nodes
        self._begun: list[When] = []
        self._connections: list[FaultRule] = []
        self._requests: list[tuple[FaultRule, Effect]] = []
        self._appends: list[tuple[FaultRule, AppendFault]] = []

    # writing

    def on(
        self,
        api: ApiKey,
        *,
        node: int | None = None,
        topic: str | None = None,
        partition: tuple[str, int] | None = None,
        client_id: str | None = None,
        nth: int = 1,
        times: int | None = 1,
        optional: bool = False,
    ) -> RequestRule:
        """The ``nth`` request of this API (counted from 1), and as many after it as make ``times``; None: all of them.

        Only those to this node, from the client with this id, that name this topic or this ``(topic, partition)``.
        An ``optional`` rule need not strike. Raises :class:`FaultScriptError`.
        """
        if not isinstance(api, ApiKey):
            raise FaultScriptError(f"api must be an ApiKey, such as ApiKey.PRODUCE, not {api!r}")
        if api not in SERVED and api is not ApiKey.API_VERSIONS:
            raise FaultScriptError(f"the embedded broker has no {api.name}, so no rule can be about it")
        index = None
        if partition is not None:
            if topic is not None:
                raise FaultScriptError("a rule is about a topic or about a partition: leave out topic=")
            topic, index = _partition(partition)
        if topic is not None and not names_topics(APIS[api].request):
            raise FaultScriptError(f"{api.name} names no topics: leave out topic= and partition=")
        if index is not None and not names_partitions(APIS[api].request) and api is not ApiKey.METADATA:
            raise FaultScriptError(f"{api.name} names no partitions, only topics: say topic={topic!r}")
        when = When(api=api, node=node, topic=topic, partition=index, client_id=client_id, nth=nth, times=times)
        return RequestRule(self, self._begin(when), optional)

    def on_connection(
        self, *, node: int | None = None, nth: int = 1, times: int | None = 1, optional: bool = False
    ) -> ConnectionRule:
        """The ``nth`` connection to this node, or to any; see :meth:`on`."""
        return ConnectionRule(self, self._begin(When(api=None, node=node, nth=nth, times=times)), optional)

    def _begin(self, when: When) -> When:
        if when.node is not None and (when.node < 0 or (self._nodes is not None and when.node >= self._nodes)):
            has = "" if self._nodes is None else f": the cluster has nodes 0 to {self._nodes - 1}"
            raise FaultScriptError(f"there is no node {when.node}{has}")
        if when.nth < 1:
            raise FaultScriptError(f"nth counts from 1, so it cannot be {when.nth}")
        if when.times is not None and when.times < 1:
            raise FaultScriptError(f"times must be at least 1, or None for every time, not {when.times}")
        self._begun.append(when)
        return when

    def _add(self, when: When, effect: str, optional: bool) -> FaultRule:
        self._begun = [begun for begun in self._begun if begun is not when]
        return FaultRule(when, effect, optional)

    # afterwards

    @property
    def rules(self) -> list[FaultRule]:
        """Every rule: connections first, then requests, then appends, each in the order they were written."""
        return [*self._connections, *(rule for rule, _ in self._requests), *(rule for rule, _ in self._appends)]

    def verify(self) -> None:
        """Raises ``AssertionError`` if a rule that is not optional never struck, or says when and not what."""
        wrong = [f"  {when}: says when, and not what shall happen" for when in self._begun]
        unused = [rule for rule in self.rules if not rule.optional and not rule.hits]
        wrong += [f"  {rule} ({_so_far(rule)})" for rule in unused]
        if wrong:
            raise AssertionError("these faults were scripted and never happened:\n" + "\n".join(wrong))

    # what the broker asks

    def refuses_connection(self, node_id: int) -> bool:
        due = [rule for rule in self._connections if rule.when.matches_connection(node_id) and rule.strikes()]
        if due:
            due[0].hits.append(Hit(node_id))
        return bool(due)

    def on_request(self, request: ReceivedRequest) -> RequestFault | None:
        due = [pair for pair in tuple(self._requests) if pair[0].when.matches(request) and pair[0].strikes()]
        if not due:
            return None
        rule, effect = due[0]
        header, when = request.header, rule.when
        rule.hits.append(Hit(request.node_id, ApiKey(header.api_key), header.client_id, when.topic, when.partition))
        return effect(request)

    def on_append(
        self, node_id: int, partition: Partition, batch: RecordBatch, client_id: str | None
    ) -> AppendFault | None:
        about = [pair for pair in tuple(self._appends) if pair[0].when.matches_append(node_id, client_id, partition)]
        due = [pair for pair in about if pair[0].strikes()]
        if not due:
            return None
        rule, fault = due[0]
        rule.hits.append(Hit(node_id, ApiKey.PRODUCE, client_id, partition.topic, partition.index))
        return fault


class ConnectionRule:
    """What shall happen to connections; see :meth:`FaultScript.on_connection`."""

    def __init__(self, script: FaultScript, when: When, optional: bool) -> None:
        self._script = script
        self._when = when
        self._optional = optional

    def refuse(self) -> FaultRule:
        """Dropped as soon as they are there."""
        rule = self._script._add(self._when, "refused", self._optional)
        self._script._connections.append(rule)
        return rule


class RequestRule:
    """What shall happen to requests: one of these methods says it; see :meth:`FaultScript.on`. Times are seconds.

    Each returns the rule, whose ``hits`` tell afterwards what it struck.
    """

    def __init__(self, script: FaultScript, when: When, optional: bool) -> None:
        assert when.api is not None
        self._script = script
        self._when = when
        self._api = when.api
        self._optional = optional

    def answer(self, code: ErrorCode, *, appended: bool = False) -> FaultRule:
        """An error in place of success; ``appended``: what was asked for is done all the same.

        For Produce it is batches that are counted, not requests. Elsewhere a rule about a topic or a partition puts the
        error where the response speaks of that; else it is the error of the whole response, or, where responses of this
        API have none, of everything in it.
        """
        _check_error(code)
        said = f"answered {code.name}" + (", appended" if appended else "")
        if self._api is ApiKey.PRODUCE:
            rule = self._script._add(self._when, said, self._optional)
            self._script._appends.append((rule, AppendFault(code, appended)))
            return rule
        return self._strike(said, self._answer(code, appended))

    def _answer(self, code: ErrorCode, appended: bool) -> Effect:
        request, response, _ = APIS[self._api]
        if self._when.topic is None and not appended:
            if any(wire.name == "error_code" and wire.versions == _EVERY_VERSION for wire in response.FIELDS):
                return lambda _: RequestFault(code=code)
            if self._api not in _CHANGES_NOTHING and mirrors(request, response):
                return lambda received: RequestFault(
                    response=with_error(received.message(), response, code, received.header.api_version)
                )
        if not has_error(response):
            raise FaultScriptError(f"a response to {self._api.name} has no error code")
        if self._api not in _CHANGES_NOTHING and not appended:
            raise FaultScriptError(
                f"{self._api.name} can be answered like this only after it is done: say appended=True"
                + (", or leave out topic= and partition=" if self._when.topic is not None else "")
            )
        return lambda received: RequestFault(edit=lambda answer: self._set_error(received, answer, code))

    def _set_error(self, received: ReceivedRequest, response: Response, code: ErrorCode) -> None:
        version = received.header.api_version
        if self._when.topic is not None:
            for entry in entries(response, received.topic_name):
                if entry.struct is not None and self._when.is_about(entry.topic, entry.partition):
                    set_errors(entry.struct, code, version)
            return
        own = next((wire for wire in response.FIELDS if wire.name == "error_code"), None)
        if own is not None and version in own.versions:
            setattr(response, own.name, code)
        else:
            set_errors(response, code, version)

    def drop_request(self) -> FaultRule:
        """Its connection is dropped, and it is not handled."""
        return self._strike("the request dropped", lambda _: RequestFault(lost=True))

    def drop_response(self) -> FaultRule:
        """It is handled, and its connection dropped in place of a response."""
        return self._strike("the response dropped", lambda _: RequestFault(unanswered=True))

    def cut_response(self, after: int) -> FaultRule:
        """It is handled; of the response so many bytes are sent (the first four are its size), then the connection is
        dropped."""
        if after < 0:
            raise FaultScriptError(f"a response cannot be cut after {after} bytes")
        return self._strike(f"the response cut after {after} bytes", lambda _: RequestFault(cut_after=after))

    def delay_request(self, seconds: float) -> FaultRule:
        """It waits so long before it is handled, and is handled even if its client has gone meanwhile."""
        seconds = _seconds(seconds)
        return self._strike(f"handled {seconds:g} s late", lambda _: RequestFault(handled_after=seconds))

    def delay_response(self, seconds: float) -> FaultRule:
        """It is handled at once and answered so much later."""
        seconds = _seconds(seconds)
        return self._strike(f"answered {seconds:g} s late", lambda _: RequestFault(answered_after=seconds))

    def never_answer(self) -> FaultRule:
        """It is handled, and its client left waiting."""
        return self._strike("never answered", lambda _: RequestFault(silent=True))

    def send_bytes(self, data: bytes) -> FaultRule:
        """It is handled, and answered with these bytes."""
        return self._strike(f"answered with {len(data)} bytes of garbage", lambda _: RequestFault(garbage=data))

    def throttle(self, seconds: float) -> FaultRule:
        """The response asks the client to be quiet for so long."""
        ms = round(_seconds(seconds) * 1000)
        if not any(wire.name == "throttle_time_ms" for wire in APIS[self._api].response.FIELDS):
            raise FaultScriptError(f"a response to {self._api.name} cannot throttle")
        return self.edit_response(lambda response: setattr(response, "throttle_time_ms", ms), f"throttled for {ms} ms")

    def edit_response(self, edit: Callable[[Any], object], name: str = "the response edited") -> FaultRule:
        """``edit`` is called with the response (``aioproducer.protocol.messages``) before that is sent."""
        return self._strike(name, lambda _: RequestFault(edit=edit))

    # what happens to the cluster, just before the request is handled

    def move_leader(self, topic: str, partition: int, *, to: int) -> FaultRule:
        """Another node becomes the leader."""
        self._check_node(to)
        return self._before(
            f"the leader of {topic}-{partition} moves to node {to}",
            lambda request: request.state.move_leader(topic, partition, to),
        )

    def move_coordinator(self, key: str, *, to: int) -> FaultRule:
        """Another node becomes the coordinator of a group or transactional id."""
        self._check_node(to)
        return self._before(
            f"the coordinator of {key!r} moves to node {to}",
            lambda request: request.state.move_coordinator(key, to),
        )

    def expire_producers(self, topic: str, partition: int, *, producer_id: int | None = None) -> FaultRule:
        """The partition forgets one idempotent producer, or all of them."""
        return self._before(
            f"{topic}-{partition} forgets its producers",
            lambda request: request.state.partition(topic, partition).log.producer_state.expire(producer_id),
        )

    def set_window(self, topic: str, batches: int) -> FaultRule:
        """The partitions of the topic remember so many batches of a producer from now on (KIP-1269)."""
        if batches < 5:
            raise FaultScriptError(f"brokers remember at least 5 batches of a producer, so not {batches}")
        change = ConfigChange.of(_WINDOW, OpType.SET, str(batches))
        return self._before(
            f"the window of {topic} becomes {batches}",
            lambda request: request.state.alter_topic_configs(topic, [change]),
        )

    def call(self, function: Callable[[], object]) -> FaultRule:
        """``function`` is called, on the broker's event loop; it must not block."""
        return self._before(f"{getattr(function, '__qualname__', function)} is called", lambda request: function())

    def _before(self, said: str, act: Callable[[ReceivedRequest], object]) -> FaultRule:
        def effect(request: ReceivedRequest) -> None:
            act(request)

        return self._strike(said, effect)

    def _strike(self, said: str, effect: Effect) -> FaultRule:
        rule = self._script._add(self._when, said, self._optional)
        self._script._requests.append((rule, effect))
        return rule

    def _check_node(self, node: int) -> None:
        nodes = self._script._nodes
        if node < 0 or (nodes is not None and node >= nodes):
            raise FaultScriptError(f"there is no node {node}")


def _check_error(code: object) -> None:
    if not isinstance(code, ErrorCode) or code is ErrorCode.NONE:
        raise FaultScriptError(f"an answer needs an error, such as ErrorCode.REQUEST_TIMED_OUT, not {code!r}")


def _partition(partition: object) -> tuple[str, int]:
    match partition:
        case (str(topic), int(index)) if index >= 0:
            return topic, index
    raise FaultScriptError(f"a partition is (topic, number), such as ('orders', 0), not {partition!r}")


def _seconds(seconds: float) -> float:
    if not 0 < seconds < float("inf"):
        raise FaultScriptError(f"a time must be some seconds, not {seconds!r}")
    return float(seconds)


def _so_far(rule: FaultRule) -> str:
    return f"{rule.seen} came by" if rule.seen else "nothing of the kind came by"
