"""One node of the cluster, from its ports to its APIs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.connection_overrides import host_names
from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.broker.faults.faults import NO_FAULTS
from aioproducer.broker.faults.faulty_gate import FaultyGate
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.network.gate.connection_gate import Arrival, ConnectionGate, Gate
from aioproducer.broker.network.gate.listening_socket import Listen
from aioproducer.broker.network.listener_changes import ListenerChanges
from aioproducer.broker.network.socket_server import NOTHING_TO_WAIT_FOR, SocketServer
from aioproducer.broker.quotas.connection_quotas import ConnectionLimits, ConnectionQuotas
from aioproducer.broker.quotas.override_hosts import OverrideHosts
from aioproducer.broker.quotas.rate_quota import QuotaWindow
from aioproducer.broker.requests import request_log
from aioproducer.broker.requests.error_counts import error_counts
from aioproducer.broker.requests.fatal_exit_error import FatalExitError
from aioproducer.broker.requests.request import Request
from aioproducer.broker.requests.request_handler import KafkaRequestHandlerPool, RequestHandler
from aioproducer.broker.requests.request_metrics import RequestMetrics, RequestTimes
from aioproducer.broker.requests.response import CloseConnectionResponse, RequestEnd, SendResponse
from aioproducer.protocol.messages.fetch import FetchResponse

_DRAIN_TIME = 1.0
"""Seconds that clients have to read their responses when a node shuts down properly."""


class BrokerServer:
    """Kafka's class of this name: a :class:`SocketServer`, its pool of request handlers, and their context."""

    def __init__(
        self,
        context: BrokerContext,
        apis: RequestHandler,
        listen: Listen,
        host: str,
        on_listeners: Callable[[], object] = lambda: None,
        on_fatal: Callable[[FatalExitError], object] = lambda error: None,
    ) -> None:
        """``host`` is the host of listeners whose config names none. ``on_listeners`` is called when listeners or their
        advertised addresses have changed. ``on_fatal`` is called with the error when a handler raises a
        :class:`FatalExitError`; it must stop the node."""
        self.context = context
        self._config = config = context.state.configs.broker(context.node_id)
        window = QuotaWindow(config.quota_window_size_seconds, config.quota_window_num)
        connections = ConnectionQuotas[Arrival](
            ConnectionLimits.of(config, {}), window, protected=config.listening.inter_broker
        )
        self.hosts = OverrideHosts(context.node_id, context.threads, self._configure_gate)
        self.gate = ConnectionGate(connections, context.clock, self._make_room)
        gate: Gate = self.gate
        if context.faults is not NO_FAULTS:
            gate = FaultyGate(gate, context.node_id, context.faults)
        self.sockets = SocketServer(
            context.node_id,
            config,
            context.clock,
            is_supported=apis.is_supported,
            gate=gate,
            quotas=context.quotas,
            listen=listen,
            random=context.state.random,
            scram_credentials=context.state.scram_credentials,
            slices=context.slices,
            on_complete=self._completed,
        )
        self.handlers = KafkaRequestHandlerPool(
            f"data-plane-kafka-request-handler-{context.node_id}",
            self.sockets.requests,
            apis,
            context.clock,
            on_fatal,
        )
        self.listeners = ListenerChanges(
            context.node_id, host, self.sockets, self.gate, context.clock, on_change=on_listeners
        )
        self.request_metrics = RequestMetrics()

    async def open(self, end_points: Collection[EndPoint]) -> dict[str, EndPoint]:
        """Opens the ports of its listeners, and returns their addresses. No client is admitted yet.

        Raises :class:`ConfigException` if a host name in the configs of the cluster's start cannot be resolved.
        """
        configs = self.context.state.configs
        essential = host_names(configs.static.max_connections_per_ip_overrides)
        await self.hosts.start(configs.broker(self.node_id).max_connections_per_ip_overrides, essential)
        for end_point in end_points:
            self.gate.open_listener(end_point.listener)
        return await self.sockets.open(end_points)

    async def enable_request_processing(self) -> None:
        """Admits clients to each listener as soon as the authorizer is ready for it. Returns when all listeners admit
        them; raises the error of an authorizer that fails."""
        self.context.state.configs.follow(self)
        self.context.slices.urgent[self.sockets.is_urgent] = None
        self.context.state.on_topic_deleted.append(self.context.topic_metrics.forget)
        self.context.state.client_quotas.listeners.add(self._configure_ip_rates)
        self.reconfigure()
        self._configure_ip_rates()
        authorizer = self.context.authorizer
        listeners = tuple(self.sockets.acceptors)
        ready = NOTHING_TO_WAIT_FOR if authorizer is None else authorizer.start(self.node_id, listeners)
        await self.sockets.enable_request_processing(ready)

    @property
    def node_id(self) -> int:
        return self.context.node_id

    def validate_reconfiguration(self, config: BrokerConfig) -> None:
        """Raises :class:`ConfigException` if the node cannot apply these configs."""
        self.sockets.validate_reconfiguration(config)

    def reconfigure(self) -> None:
        """Applies the changed configs."""
        self._config = config = self.context.state.configs.broker(self.context.node_id)
        self.handlers.resize(config.num_io_threads)
        self.context.threads.resize(config.background_threads)
        self.sockets.reconfigure(config)
        self.hosts.follow(config.max_connections_per_ip_overrides)
        self._configure_gate()
        self.listeners.follow(config.listening)

    async def settled(self) -> None:
        """Returns when changed configs are applied. Raises OSError or ConfigException for one that cannot be."""
        await self.listeners.settled()
        await self.hosts.settled()

    async def shutdown(self, committed: Callable[[], Awaitable[object]]) -> None:
        """Shuts down properly: handles received requests, answers waiting ones, writes the responses, and then drops
        the connections. ``committed`` returns when all handled changes are on disk; answers wait for that.
        """
        await self.listeners.close()
        deadline = self.context.clock.monotonic() + _DRAIN_TIME
        self.sockets.stop_accepting()
        await self.sockets.drain(self.handlers.is_idle, deadline)
        self.context.purgatories.shutdown()
        await self.sockets.drain(self.handlers.is_idle, deadline)
        with contextlib.suppress(TimeoutError):  # the disk is too slow
            async with asyncio.timeout(max(0.0, deadline - self.context.clock.monotonic())):
                await committed()
        await self.sockets.drain(self.handlers.is_idle, deadline)
        await self.abort()

    def crash(self) -> None:
        """Stops sending to clients, as a crash does; :meth:`abort` completes it."""
        self.sockets.abort()

    async def abort(self) -> None:
        """Ends like a crash: drops connections, and unhandled requests are lost."""
        self.context.slices.urgent.pop(self.sockets.is_urgent, None)
        self.context.state.client_quotas.listeners.discard(self._configure_ip_rates)
        self.context.state.configs.follow_no_more(self)
        self.context.state.on_topic_deleted.remove(self.context.topic_metrics.forget)
        self.gate.close()
        self.handlers.abort()
        await self.hosts.close()
        await self.listeners.close()
        await self.sockets.close()
        await self.handlers.wait_closed()
        self.context.quotas.close()
        self.context.purgatories.shutdown()

    def _configure_gate(self) -> None:
        self.gate.configure(ConnectionLimits.of(self._config, self.hosts.addresses))

    def _configure_ip_rates(self) -> None:
        self.gate.quotas.configure_ip_rates(*self.context.state.client_quotas.ip_rates())

    def _make_room(self, count: int) -> int:
        return self.sockets.close_least_active(count, self.gate.quotas.protected)

    def _completed(self, request: Request, end: RequestEnd, now: float) -> None:
        times = RequestTimes(request, now)
        response = end.response if isinstance(end, SendResponse | CloseConnectionResponse) else None
        if isinstance(response, FetchResponse):
            self._fetched(response, now)
        errors = end.errors if isinstance(end, SendResponse) else None
        if errors is None:
            errors = {} if response is None else error_counts(response)
        self.request_metrics.record(request, times, errors, now)
        if request_log.enabled():
            request_log.log_request(request, end, times)

    def _fetched(self, response: FetchResponse, now: float) -> None:
        state, metrics = self.context.state, self.context.topic_metrics
        for fetched in response.responses:
            topic = state.topics.get(fetched.topic) or state.topic_by_id(fetched.topic_id)
            if topic is not None:
                failed = sum(1 for one in fetched.partitions if one.error_code)
                size = sum(sum(map(len, one.records)) for one in fetched.partitions if isinstance(one.records, tuple))
                metrics.of(topic.name).fetched(len(fetched.partitions), failed, size, now)
