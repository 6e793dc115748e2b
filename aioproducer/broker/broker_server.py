"""One node of the cluster, from its ports to its APIs."""

from __future__ import annotations

from collections.abc import Sequence

from aioproducer.broker.context import BrokerContext
from aioproducer.broker.end_point import EndPoint
from aioproducer.broker.faults import NO_FAULTS
from aioproducer.broker.faulty_gate import FaultyGate
from aioproducer.broker.gate import OPEN_GATE, Gate
from aioproducer.broker.listening_socket import Listen
from aioproducer.broker.request_handler import KafkaRequestHandlerPool, RequestHandler
from aioproducer.broker.socket_server import SocketServer

_DRAIN_TIME = 1.0
"""Seconds that a node that shuts down in good order gives clients to read their responses."""


class BrokerServer:
    """Kafka's class of this name: a :class:`SocketServer`, the pool of handlers behind it, and what they work with."""

    def __init__(self, context: BrokerContext, apis: RequestHandler, listen: Listen) -> None:
        self.context = context
        self._config = context.state.configs.broker(context.node_id)
        gate: Gate = OPEN_GATE
        if context.faults is not NO_FAULTS:
            gate = FaultyGate(gate, context.node_id, context.faults)
        self.sockets = SocketServer(
            context.node_id, self._config, context.clock, is_supported=apis.is_supported, listen=listen, gate=gate
        )
        self.handlers = KafkaRequestHandlerPool(
            f"kafka-request-handler-{context.node_id}", self.sockets.requests, apis, context.clock
        )

    async def open(self, end_points: Sequence[EndPoint]) -> dict[str, int]:
        """Opens the ports of its listeners and returns them. Nobody is let in yet."""
        return await self.sockets.open(end_points)

    def enable_request_processing(self) -> None:
        """Clients are let in from now on."""
        self.handlers.resize(self._config.num_io_threads)
        self.sockets.enable_request_processing()

    def reconfigure(self) -> None:
        """Obeys configs that were changed while it runs."""
        self._config = config = self.context.state.configs.broker(self.context.node_id)
        self.handlers.resize(config.num_io_threads)
        self.sockets.reconfigure(config)

    async def shutdown(self) -> None:
        """Ends in good order: what was received is handled, what waits is answered, responses get written; then
        connections are dropped."""
        deadline = self.context.clock.monotonic() + _DRAIN_TIME
        self.sockets.stop_accepting()
        await self.sockets.drain(self.handlers.is_idle, deadline)
        self.context.fetch_purgatory.shutdown()
        await self.sockets.drain(self.handlers.is_idle, deadline)
        await self.abort()

    async def abort(self) -> None:
        """Ends as if it had crashed: connections drop, and what was not handled is lost."""
        self.handlers.abort()
        await self.sockets.close()
        await self.handlers.wait_closed()
        self.context.fetch_purgatory.shutdown()
