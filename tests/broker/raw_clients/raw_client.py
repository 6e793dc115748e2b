"""A client that sends what a test likes, frame by frame."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.framing import decode_response, encode_request
from aioproducer.protocol.schema import Request


class RawClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._correlation_id = 0

    @classmethod
    async def connect(cls, server: str) -> Self:
        """``server`` is ``host:port``."""
        host, _, port = server.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def frame(self, request: Request, version: int) -> tuple[int, bytes]:
        """The next request with its correlation id."""
        self._correlation_id += 1
        parts = encode_request(request, version=version, correlation_id=self._correlation_id, client_id="raw")
        return self._correlation_id, b"".join(parts)

    async def send(self, request: Request, version: int) -> int:
        """Sends a request without waiting for its response; returns its correlation id."""
        correlation_id, frame = self.frame(request, version)
        await self.send_bytes(frame)
        return correlation_id

    async def send_bytes(self, data: bytes | memoryview) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive_frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def receive(self, api_key: ApiKey, version: int) -> tuple[int, Any]:
        """The next response, which is taken for one of this API and version, and its correlation id."""
        return decode_response(APIS[api_key].response, version, await self.receive_frame())

    async def request(self, request: Request, version: int) -> Any:
        """Sends a request and returns its response."""
        sent = await self.send(request, version)
        received, response = await self.receive(request.API_KEY, version)
        assert received == sent
        return response

    async def receive_rest(self) -> bytes:
        """What comes until the broker closes the connection."""
        received = b""
        try:
            while chunk := await self.reader.read(65536):
                received += chunk
        except ConnectionError:
            pass  # so it ends if the broker had something left to read
        return received

    async def is_closed(self) -> bool:
        """Waits for the broker to close the connection; False if it sends something instead."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass  # the broker dropped it first


Connect = Callable[..., Awaitable[RawClient]]
"""Opens a connection: ``await connect()`` or ``await connect(node_id)``."""
