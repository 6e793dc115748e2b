"""A socket server with a handler that does what the test says."""

from __future__ import annotations

import asyncio
from typing import Any

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.broker.network.socket_server import SocketServer
from aioproducer.broker.requests.request import Request
from aioproducer.broker.requests.request_handler import KafkaRequestHandlerPool
from aioproducer.protocol.messages.metadata import MetadataResponse
from aioproducer.timing.clock import SystemClock
from tests.support.manual_clock import ManualClock

from .raw_client import RawClient


class Handler:
    """Keeps requests until the test answers them."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.arrived = asyncio.Event()
        self.fail = False

    def is_supported(self, api_key: int, api_version: int) -> bool:
        return True

    def handle(self, request: Request, frame: bytes | memoryview, body_at: int) -> None:
        if self.fail:
            raise ZeroDivisionError("a bug")
        self.requests.append(request)
        self.arrived.set()

    async def next(self) -> Request:
        while not self.requests:
            self.arrived.clear()
            await self.arrived.wait()
        return self.requests.pop(0)


class Served:
    """One listener on a free port of this machine, its handlers, and clients of it."""

    def __init__(self, clock: ManualClock | None = None, handler: Any = None, **configs: object) -> None:
        self.handler: Handler = handler or Handler()
        self.config = BrokerConfig.of({"connections_max_idle_ms": -1, **configs})
        self.server = SocketServer(0, self.config, clock or SystemClock(), is_supported=self.handler.is_supported)
        self.handlers = KafkaRequestHandlerPool("handler", self.server.requests, self.handler, clock or SystemClock())
        self.clients: list[RawClient] = []
        self.port = 0

    async def __aenter__(self) -> Served:
        self.port = (await self.server.open([EndPoint("PLAINTEXT", "127.0.0.1", 0)]))["PLAINTEXT"].port
        self.handlers.resize(self.config.num_io_threads)
        await self.server.enable_request_processing()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for client in self.clients:
            await client.close()
        await self.close()

    async def close(self) -> None:
        self.handlers.abort()
        await self.server.close()
        await self.handlers.wait_closed()

    async def connect(self) -> RawClient:
        client = await RawClient.connect(f"127.0.0.1:{self.port}")
        self.clients.append(client)
        return client


async def exchange(served: Served, client: RawClient, frame: bytes) -> None:
    """One request and its response."""
    await client.send_bytes(frame)
    (await served.handler.next()).respond(MetadataResponse())
    await client.receive_frame()
