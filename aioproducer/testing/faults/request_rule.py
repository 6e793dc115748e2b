"""The effects of a script's rules: on connections, on requests, on the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aioproducer.broker import AppendFault, ReceivedRequest, RequestFault
from aioproducer.broker.configs.config_changes import ConfigChange, OpType
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.schema import Response, Versions
from aioproducer.testing.faults.fault_rule import Effect, FaultRule, FaultScriptError, ScriptedRules, When
from aioproducer.testing.faults.message_entries import entries, has_error, mirrors, set_errors, with_error

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
"""Requests that change nothing, so they may be handled before they are answered with an error."""

_EVERY_VERSION = Versions.parse("0+")
_WINDOW = "producer.state.batches.to.retain"


class ConnectionRule:
    """What happens to connections; see :meth:`FaultScript.on_connection`."""

    def __init__(self, rules: ScriptedRules, when: When, optional: bool) -> None:
        self._rules = rules
        self._when = when
        self._optional = optional

    def refuse(self) -> FaultRule:
        """Drops connections as soon as they are made."""
        rule = self._rules.add(self._when, "refused", self._optional)
        self._rules.connections.append(rule)
        return rule


class RequestRule:
    """What happens to requests: call one of these methods; see :meth:`FaultScript.on`. Times are in seconds.

    Each method returns the rule; its ``hits`` show afterwards what it applied to.
    """

    def __init__(self, rules: ScriptedRules, when: When, optional: bool) -> None:
        assert when.api is not None
        self._rules = rules
        self._when = when
        self._api = when.api
        self._optional = optional

    def answer(self, code: ErrorCode, *, appended: bool = False) -> FaultRule:
        """Answers with an error; with ``appended`` the request is carried out all the same.

        For Produce, batches are counted instead of requests. For other APIs, a rule for a topic or a partition puts
        the error at that entry of the response. Otherwise it is the error of the whole response or, if responses of
        this API have none, of every entry in it.
        """
        _check_error(code)
        said = f"answered {code.name}" + (", appended" if appended else "")
        if self._api is ApiKey.PRODUCE:
            rule = self._rules.add(self._when, said, self._optional)
            self._rules.appends.append((rule, AppendFault(code, appended)))
            return rule
        return self._strike(said, self._answer(code, appended))

    def _answer(self, code: ErrorCode, appended: bool) -> Effect:
        request, response = APIS[self._api].request, APIS[self._api].response
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
                f"{self._api.name} can be answered like this only after it is carried out: add appended=True"
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
        """The request is not handled, and its connection is dropped."""
        return self._strike("the request dropped", lambda _: RequestFault(lost=True))

    def drop_response(self) -> FaultRule:
        """The request is handled, and its connection is dropped instead of a response."""
        return self._strike("the response dropped", lambda _: RequestFault(unanswered=True))

    def cut_response(self, after: int) -> FaultRule:
        """The request is handled. The first ``after`` bytes of the response are sent (four of them are its size), then
        the connection is dropped."""
        if after < 0:
            raise FaultScriptError(f"a response cannot be cut after {after} bytes")
        return self._strike(f"the response cut after {after} bytes", lambda _: RequestFault(cut_after=after))

    def delay_request(self, seconds: float) -> FaultRule:
        """The request waits this long before it is handled, even if its client disconnects meanwhile."""
        seconds = _seconds(seconds)
        return self._strike(f"handled {seconds:g} s late", lambda _: RequestFault(handled_after=seconds))

    def delay_response(self, seconds: float) -> FaultRule:
        """The request is handled at once, and answered after these seconds."""
        seconds = _seconds(seconds)
        return self._strike(f"answered {seconds:g} s late", lambda _: RequestFault(answered_after=seconds))

    def never_answer(self) -> FaultRule:
        """The request is handled, and its client never gets an answer."""
        return self._strike("never answered", lambda _: RequestFault(silent=True))

    def send_bytes(self, data: bytes) -> FaultRule:
        """The request is handled, and answered with these bytes."""
        return self._strike(f"answered with {len(data)} bytes of garbage", lambda _: RequestFault(garbage=data))

    def throttle(self, seconds: float) -> FaultRule:
        """The response asks the client to pause for this long."""
        ms = round(_seconds(seconds) * 1000)
        if not any(wire.name == "throttle_time_ms" for wire in APIS[self._api].response.FIELDS):
            raise FaultScriptError(f"a response to {self._api.name} cannot throttle")
        return self.edit_response(lambda response: setattr(response, "throttle_time_ms", ms), f"throttled for {ms} ms")

    def edit_response(self, edit: Callable[[Any], object], name: str = "the response edited") -> FaultRule:
        """``edit`` is called with the response (``aioproducer.protocol.messages``) before the response is sent."""
        return self._strike(name, lambda _: RequestFault(edit=edit))

    # effects on the cluster, just before the request is handled

    def move_leader(self, topic: str, partition: int, *, to: int) -> FaultRule:
        """Another node becomes the leader."""
        self._rules.check_node(to)
        return self._before(
            f"the leader of {topic}-{partition} moves to node {to}",
            lambda request: request.state.move_leader(topic, partition, to),
        )

    def move_coordinator(self, key: str, *, to: int) -> FaultRule:
        """Another node becomes the coordinator of a group or transactional id."""
        self._rules.check_node(to)
        return self._before(
            f"the coordinator of {key!r} moves to node {to}",
            lambda request: request.state.nodes.move_coordinator(key, to),
        )

    def expire_producers(self, topic: str, partition: int, *, producer_id: int | None = None) -> FaultRule:
        """The partition forgets one idempotent producer, or all of them."""
        return self._before(
            f"{topic}-{partition} forgets its producers",
            lambda request: request.state.partition(topic, partition).log.producer_state.expire(producer_id),
        )

    def set_window(self, topic: str, batches: int) -> FaultRule:
        """From now on the partitions of the topic remember this many batches of a producer (KIP-1269)."""
        if batches < 5:
            raise FaultScriptError(f"brokers remember at least 5 batches of a producer, so not {batches}")
        change = ConfigChange.of(_WINDOW, OpType.SET, str(batches))
        return self._before(
            f"the window of {topic} becomes {batches}",
            lambda request: request.state.alter_topic_configs(topic, [change]),
        )

    def hold_replica(self, topic: str, partition: int, *, node: int, in_sync: bool = True) -> FaultRule:
        """The replica on a node stops copying; see ``EmbeddedCluster.hold_replica``."""
        self._rules.check_node(node)
        return self._before(
            f"node {node} copies nothing more of {topic}-{partition}" + ("" if in_sync else ", and is out of sync"),
            lambda request: request.state.hold_replica(topic, partition, node, in_sync=in_sync),
        )

    def release_replica(self, topic: str, partition: int, *, node: int) -> FaultRule:
        """The replica copies again, and catches up at once."""
        self._rules.check_node(node)
        return self._before(
            f"node {node} has caught up with {topic}-{partition}",
            lambda request: request.state.release_replica(topic, partition, node),
        )

    def call(self, function: Callable[[], object]) -> FaultRule:
        """``function`` is called, on the broker's event loop; it must not block."""
        return self._before(f"{getattr(function, '__qualname__', function)} is called", lambda request: function())

    def _before(self, said: str, act: Callable[[ReceivedRequest], object]) -> FaultRule:
        def effect(request: ReceivedRequest) -> None:
            act(request)

        return self._strike(said, effect)

    def _strike(self, said: str, effect: Effect) -> FaultRule:
        rule = self._rules.add(self._when, said, self._optional)
        self._rules.requests.append((rule, effect))
        return rule


def _check_error(code: object) -> None:
    if not isinstance(code, ErrorCode) or code is ErrorCode.NONE:
        raise FaultScriptError(f"an answer needs an error, such as ErrorCode.REQUEST_TIMED_OUT, not {code!r}")


def _seconds(seconds: float) -> float:
    if not 0 < seconds < float("inf"):
        raise FaultScriptError(f"a time must be some seconds, not {seconds!r}")
    return float(seconds)
