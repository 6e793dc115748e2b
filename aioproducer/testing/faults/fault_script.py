"""Scripted faults of the embedded broker: what goes wrong, when, and how often.

::

    faults.on(ApiKey.PRODUCE, partition=("orders", 0), nth=2).answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, appended=True)
    faults.on(ApiKey.FETCH, node=1, times=None).delay_response(0.2)
    faults.on_connection(times=3).refuse()

``docs/testing.md`` has a table of all rules.
"""

from __future__ import annotations

from aioproducer.broker import AppendFault, Faults, Partition, ReceivedRequest, RequestFault
from aioproducer.broker.kafka_apis import APIS as BROKER_APIS
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.faults.fault_rule import FaultRule, FaultScriptError, Hit, ScriptedRules, When
from aioproducer.testing.faults.message_entries import names_partitions, names_topics
from aioproducer.testing.faults.request_rule import ConnectionRule, RequestRule


class FaultScript(Faults):
    """The faults of a cluster: ``EmbeddedCluster(faults=script)``, or the ``faults`` of a fixture's cluster.

    Rules may be added at any time, from any thread. A rule applies once by default, and counts its own requests. If
    several rules are due, the one that was written first applies, and the others are due the next time. So rules apply
    one after the other, in the order they are written.
    """

    def __init__(self, *, nodes: int | None = None) -> None:
        self._rules = ScriptedRules(nodes)

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
        """A rule for ``times`` requests of this API, beginning with the ``nth`` (counted from 1); None means all.

        It applies only to requests to this node, from the client with this id, that name this topic or this
        ``(topic, partition)``. An ``optional`` rule need not apply. Raises :class:`FaultScriptError`.
        """
        if not isinstance(api, ApiKey):
            raise FaultScriptError(f"api must be an ApiKey, such as ApiKey.PRODUCE, not {api!r}")
        if api not in BROKER_APIS and api is not ApiKey.API_VERSIONS:
            raise FaultScriptError(f"the embedded broker has no {api.name}, so no rule can be about it")
        index = None
        if partition is not None:
            if topic is not None:
                raise FaultScriptError("a rule names a topic or a partition: leave out topic=")
            topic, index = _partition(partition)
        if topic is not None and not names_topics(APIS[api].request):
            raise FaultScriptError(f"{api.name} names no topics: leave out topic= and partition=")
        if index is not None and not names_partitions(APIS[api].request) and api is not ApiKey.METADATA:
            raise FaultScriptError(f"{api.name} names no partitions, only topics: say topic={topic!r}")
        when = When(api=api, node=node, topic=topic, partition=index, client_id=client_id, nth=nth, times=times)
        return RequestRule(self._rules, self._rules.begin(when), optional)

    def on_connection(
        self, *, node: int | None = None, nth: int = 1, times: int | None = 1, optional: bool = False
    ) -> ConnectionRule:
        """A rule for the ``nth`` connection to this node, or to any node; see :meth:`on`."""
        when = When(api=None, node=node, nth=nth, times=times)
        return ConnectionRule(self._rules, self._rules.begin(when), optional)

    # afterwards

    @property
    def rules(self) -> list[FaultRule]:
        """Every rule: connections first, then requests, then appends, each in the order they were written."""
        return self._rules.all()

    def verify(self) -> None:
        """Raises ``AssertionError`` if a rule that is not optional never applied, or has no effect defined."""
        wrong = [f"  {when}: has no effect; call a method of the rule" for when in self._rules.begun]
        unused = [rule for rule in self.rules if not rule.optional and not rule.hits]
        wrong += [f"  {rule} ({_so_far(rule)})" for rule in unused]
        if wrong:
            raise AssertionError("these faults were scripted and never happened:\n" + "\n".join(wrong))

    # what the broker asks

    def refuses_connection(self, node_id: int) -> bool:
        due = [rule for rule in self._rules.connections if rule.when.matches_connection(node_id) and rule.strikes()]
        if due:
            due[0].hits.append(Hit(node_id))
        return bool(due)

    def on_request(self, request: ReceivedRequest) -> RequestFault | None:
        due = [pair for pair in tuple(self._rules.requests) if pair[0].when.matches(request) and pair[0].strikes()]
        if not due:
            return None
        rule, effect = due[0]
        header, when = request.header, rule.when
        rule.hits.append(Hit(request.node_id, ApiKey(header.api_key), header.client_id, when.topic, when.partition))
        return effect(request)

    def on_append(
        self, node_id: int, partition: Partition, batch: RecordBatch, client_id: str | None
    ) -> AppendFault | None:
        about = [
            pair for pair in tuple(self._rules.appends) if pair[0].when.matches_append(node_id, client_id, partition)
        ]
        due = [pair for pair in about if pair[0].strikes()]
        if not due:
            return None
        rule, fault = due[0]
        rule.hits.append(Hit(node_id, ApiKey.PRODUCE, client_id, partition.topic, partition.index))
        return fault


def _partition(partition: object) -> tuple[str, int]:
    match partition:
        case (str(topic), int(index)) if index >= 0:
            return topic, index
    raise FaultScriptError(f"a partition is (topic, number), such as ('orders', 0), not {partition!r}")


def _so_far(rule: FaultRule) -> str:
    return f"matched {rule.seen}" if rule.seen else "matched nothing"
