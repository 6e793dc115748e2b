"""The metrics of a node, under Kafka's names (``docs/broker-metrics.md``). They are computed when they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from aioproducer.broker.broker_server import BrokerServer
from aioproducer.broker.quotas.client_quota_manager import Client
from aioproducer.broker.requests.broker_topic_metrics import RATES
from aioproducer.broker.requests.request_handler import avg_idle_percent
from aioproducer.broker.requests.request_metrics import HISTOGRAMS
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics.histogram import Histogram
from aioproducer.metrics.metric_name import MetricName, Tags

PERCENTILES = {"p50": 0.5, "p75": 0.75, "p95": 0.95, "p98": 0.98, "p99": 0.99, "p999": 0.999}

Metric = tuple[MetricName, float]


def cluster_metrics(servers: Collection[BrokerServer], now: float) -> Iterator[Metric]:
    """Every metric of the running nodes; those of a single node are tagged with its id."""
    if servers:
        yield _handlers_idle("RequestHandlerAvgIdlePercent", servers, (), now)
    for server in servers:
        yield from _broker_metrics(server, now)


def _broker_metrics(server: BrokerServer, now: float) -> Iterator[Metric]:
    node: Tags = (("node-id", f"node-{server.context.node_id}"),)
    yield from _threads(server, node, now)
    yield from _memory(server, node, now)
    yield from _purgatory(server, node)
    yield from _fetch_sessions(server, node, now)
    yield from _topics(server, node, now)
    yield from _requests(server, node, now)
    yield from _connections(server, node, now)
    yield from _quotas(server, node, now)


def _threads(server: BrokerServer, node: Tags, now: float) -> Iterator[Metric]:
    sockets = server.sockets
    idle = [processor.idle_share(now) for processor in sockets.processors]
    average = sum(idle) / len(idle) if idle else 1.0
    yield MetricName("NetworkProcessorAvgIdlePercent", "SocketServer", node), average
    yield _handlers_idle("BrokerRequestHandlerAvgIdlePercent", [server], node, now)
    yield MetricName("RequestQueueSize", "RequestChannel", node), len(sockets.requests)
    yield MetricName("ResponseQueueSize", "RequestChannel", node), sum(p.queued_responses for p in sockets.processors)
    for processor in sockets.processors:
        id = str(processor.id)
        yield MetricName("IdlePercent", "Processor", (("networkProcessor", id), *node)), processor.idle_share(now)
        yield (
            MetricName("ResponseQueueSize", "RequestChannel", (*node, ("processor", id))),
            processor.queued_responses,
        )
    for listener, acceptor in sockets.acceptors.items():
        tags = (("listener", listener), *node)
        yield MetricName("AcceptorBlockedPercent", "Acceptor", tags), acceptor.blocked_percent(now)


def _handlers_idle(name: str, servers: Collection[BrokerServer], tags: Tags, now: float) -> Metric:
    idle = avg_idle_percent((server.handlers for server in servers), now)
    return MetricName(name, "KafkaRequestHandlerPool", tags), idle


def _memory(server: BrokerServer, node: Tags, now: float) -> Iterator[Metric]:
    memory = server.sockets.memory
    yield MetricName("MemoryPoolAvailable", "SocketServer", node), memory.available
    yield MetricName("MemoryPoolUsed", "SocketServer", node), memory.used
    yield MetricName("MemoryPoolAvgDepletedPercent", "socket-server-metrics", node), memory.depleted_percent(now)
    yield MetricName("MemoryPoolDepletedTimeTotal", "socket-server-metrics", node), memory.depleted_time(now) * 1e9


def _purgatory(server: BrokerServer, node: Tags) -> Iterator[Metric]:
    for purgatory in server.context.purgatories:
        tags = (("delayedOperation", purgatory.name), *node)
        yield MetricName("PurgatorySize", "DelayedOperationPurgatory", tags), purgatory.watched
        yield MetricName("NumDelayedOperations", "DelayedOperationPurgatory", tags), purgatory.num_delayed


def _fetch_sessions(server: BrokerServer, node: Tags, now: float) -> Iterator[Metric]:
    sessions = server.context.fetch_sessions
    group = "FetchSessionCache"
    yield MetricName("NumIncrementalFetchSessions", group, node), len(sessions)
    yield MetricName("NumIncrementalFetchPartitionsCached", group, node), sessions.partitions
    yield MetricName("IncrementalFetchSessionEvictionsPerSec", group, node), sessions.evictions.count_rate(now)


def _topics(server: BrokerServer, node: Tags, now: float) -> Iterator[Metric]:
    of_all = [0.0] * len(RATES)
    for topic, rates in server.context.topic_metrics:
        tags = (*node, ("topic", topic))
        for number, (name, rate) in enumerate(zip(RATES, rates.rates(now), strict=True)):
            of_all[number] += rate
            yield MetricName(name, "BrokerTopicMetrics", tags), rate
    for name, rate in zip(RATES, of_all, strict=True):
        yield MetricName(name, "BrokerTopicMetrics", node), rate


def _requests(server: BrokerServer, node: Tags, now: float) -> Iterator[Metric]:
    for api, metrics in server.request_metrics:
        tags = (*node, ("request", api))
        for version, rate in metrics.rates.items():
            by_version = (*tags, ("version", str(version)))
            yield MetricName("RequestsPerSec", "RequestMetrics", by_version), rate.count_rate(now)
        for code, rate in metrics.errors.items():
            by_error = (("error", ErrorCode(code).name), *tags)
            yield MetricName("ErrorsPerSec", "RequestMetrics", by_error), rate.rate(now)
        for name, histogram in zip(HISTOGRAMS, metrics.histograms, strict=True):
            unit = 1000.0 if name.endswith("Ms") else 1.0  # times are recorded in microseconds
            for figure, value in _figures(histogram, now):
                yield MetricName(f"{name}-{figure}", "RequestMetrics", tags), value / unit
            yield MetricName(f"{name}-count", "RequestMetrics", tags), float(histogram.count)


def _figures(histogram: Histogram, now: float) -> Iterator[tuple[str, float]]:
    yield "mean", histogram.mean(now)
    yield "max", histogram.maximum(now)
    for name, rank in PERCENTILES.items():
        yield name, histogram.percentile(rank, now)


def _connections(server: BrokerServer, node: Tags, now: float) -> Iterator[Metric]:
    group = "socket-server-metrics"
    gate, sockets = server.gate, server.sockets
    quotas = gate.quotas
    yield MetricName("broker-connection-accept-rate", group, node), quotas.accept_rate(now)
    for listener in sockets.acceptors:
        tags = (("listener", listener), *node)
        of_listener, of_addresses = quotas.throttle_times(listener, now)
        yield MetricName("connection-count", group, tags), quotas.listener_count(listener)
        yield MetricName("connections-waiting", group, tags), quotas.waiting(listener)
        yield MetricName("connection-accept-rate", group, tags), quotas.accept_rate(now, listener)
        yield MetricName("connection-accept-throttle-time", group, tags), of_listener
        yield MetricName("ip-connection-accept-throttle-time", group, tags), of_addresses
        security = sockets.securities[listener]
        if security.protocol != "PLAINTEXT":
            for name, value in security.metrics.figures(now):
                yield MetricName(name, group, tags), value
    yield MetricName("connections-throttled", group, node), gate.throttled
    for address, rate in quotas.ip_accept_rates(now).items():
        yield MetricName("connection-accept-rate", group, (("ip", address), *node)), rate
    software = Counter(channel.software for processor in sockets.processors for channel in processor.open_channels())
    for of, count in software.items():
        if of is not None:
            named = (("client-software-name", of.name), ("client-software-version", of.version), *node)
            yield MetricName("connections", group, named), count


def _quotas(server: BrokerServer, node: Tags, now: float) -> Iterator[Metric]:
    quotas = server.context.quotas
    for group, name, manager in (
        ("Produce", "byte-rate", quotas.produce),
        ("Fetch", "byte-rate", quotas.fetch),
        ("Request", "request-time", quotas.request),
    ):
        for client, rate, throttle_time in manager.usage(now):
            yield MetricName(name, group, _client(client, node)), rate
            yield MetricName("throttle-time", group, _client(client, node)), throttle_time
    for client, tokens in quotas.controller_mutation.tokens(now):
        yield MetricName("tokens", "ControllerMutation", _client(client, node)), tokens
    yield MetricName("throttled-clients", "Quotas", node), quotas.throttled


def _client(client: Client, node: Tags) -> Tags:
    user, client_id = client
    return (("client-id", client_id), *node, ("user", user))
