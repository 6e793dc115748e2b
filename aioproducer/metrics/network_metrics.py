"""Traffic of connections, in total and per broker (Kafka's ``Selector`` and ``NetworkClient``)."""

from __future__ import annotations

from aioproducer.metrics.authentication_metrics import AuthenticationMetrics
from aioproducer.metrics.metric_name import NODE_GROUP, PRODUCER_GROUP, Tags
from aioproducer.metrics.registry import MetricGroup, MetricRegistry


class NetworkMetrics:
    """The sums over all brokers, and the metrics of each.

    Bytes are counted per request written and per answer read, with their four bytes of size.
    """

    def __init__(self, registry: MetricRegistry, tags: Tags = ()) -> None:
        self._registry = registry
        self._tags = tags
        self._nodes: dict[int, NodeMetrics] = {}
        self.sent = registry.sensor()
        self.received = registry.sensor()
        self.opened = registry.sensor()
        self.closed = registry.sensor()
        group = registry.group(PRODUCER_GROUP, tags)
        self.authentications = AuthenticationMetrics(registry, group)
        _traffic(group, self)
        sent, received = self.sent, self.received
        doc = "requests written and answers read"
        group.gauge(
            "network-io-rate", f"per second: {doc}", lambda now: sent.count_rate(now) + received.count_rate(now)
        )
        group.gauge("network-io-total", f"in all: {doc}", lambda now: float(sent.count + received.count))
        group.count_meter("connection-creation", "connections made", self.opened)
        group.count_meter("connection-close", "connections closed", self.closed)
        group.gauge(
            "connection-count", "connections there are now", lambda now: float(self.opened.count - self.closed.count)
        )

    def node(self, node_id: int) -> NodeMetrics:
        """A broker's metrics, made when it is first connected to."""
        node = self._nodes.get(node_id)
        if node is None:
            group = self._registry.group(NODE_GROUP, (*self._tags, ("node-id", f"node-{node_id}")))
            node = self._nodes[node_id] = NodeMetrics(self, self._registry, group)
        return node

    def forget_node(self, node_id: int) -> None:
        """Drops a broker that is gone or has moved; what its last connection still carries counts in the sums."""
        node = self._nodes.pop(node_id, None)
        if node is not None:
            node.group.remove()

    def node_answered(self, node_id: int, latency_ms: float, now: float) -> None:
        """Records the answer to a produce request to this broker."""
        node = self._nodes.get(node_id)
        if node is not None:
            node.latency.record(latency_ms, now)


class NodeMetrics:
    """One broker's."""

    def __init__(self, network: NetworkMetrics, registry: MetricRegistry, group: MetricGroup) -> None:
        self._network = network
        self.group = group
        self.sent = registry.sensor()
        self.received = registry.sensor()
        self.latency = registry.sensor()
        _traffic(group, self)
        group.average_and_max("request-latency", "milliseconds from a produce request to its answer", self.latency)

    def connected(self, now: float) -> None:
        self._network.opened.record(1.0, now)

    def disconnected(self, now: float) -> None:
        self._network.closed.record(1.0, now)

    def request_sent(self, size: int, now: float) -> None:
        self.sent.record(size, now)
        self._network.sent.record(size, now)

    def response_received(self, size: int, now: float) -> None:
        self.received.record(size, now)
        self._network.received.record(size, now)


def _traffic(group: MetricGroup, of: NetworkMetrics | NodeMetrics) -> None:
    group.meter("outgoing-byte", "bytes of requests", of.sent)
    group.count_meter("request", "requests sent", of.sent)
    group.average_and_max("request-size", "bytes of a request", of.sent)
    group.meter("incoming-byte", "bytes of responses", of.received)
    group.count_meter("response", "responses received", of.received)
