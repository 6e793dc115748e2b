"""A client that does nothing wrong: it produces a small record now and then, and fetches it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any, Self

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.framing import decode_response, encode_request
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.produce import ProduceRequest
from aioproducer.protocol.schema import Request
from benchmarks.harness.produce_frame import VERSION as PRODUCE_VERSION
from benchmarks.harness.produce_frame import produce_frame

HONEST = "honest"
"""The topic whose partition 0 it uses. Hostile clients may fetch it, too."""

EVERY = 0.01
"""Seconds from one record to the next."""

_ADDRESS = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
"""Not that of the hostile clients, as on a network. Other systems have no second one unless it is configured."""

_FETCH_VERSION = 11
_VALUE = b"x" * 100


class HonestClient:
    """One connection, and one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._produce = produce_frame(HONEST, _VALUE, acks=-1)

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(_ADDRESS, 0))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def latencies(self, go_on: Callable[[], bool]) -> list[float]:
        """Milliseconds from when each record was due until it was acknowledged and fetched again."""
        found: list[float] = []
        due = time.perf_counter()
        while go_on():
            await self._produce_and_fetch()
            found.append((time.perf_counter() - due) * 1000)
            due += EVERY
            await asyncio.sleep(due - time.perf_counter())
        return found

    async def _produce_and_fetch(self) -> None:
        produced = await self._ask(self._produce, ProduceRequest, PRODUCE_VERSION)
        acknowledged = produced.responses[0].partition_responses[0]
        if acknowledged.error_code != ErrorCode.NONE:
            raise RuntimeError(f"an honest record was refused: {ErrorCode(acknowledged.error_code).name}")
        partition = FetchPartition(0, fetch_offset=acknowledged.base_offset, partition_max_bytes=1 << 20)
        fetch = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(HONEST, partitions=[partition])])
        frame = b"".join(encode_request(fetch, version=_FETCH_VERSION, correlation_id=1, client_id="honest"))
        fetched = await self._ask(frame, FetchRequest, _FETCH_VERSION)
        if _VALUE not in bytes(fetched.responses[0].partitions[0].records or b""):
            raise RuntimeError(f"offset {acknowledged.base_offset} was acknowledged, and is not in the partition")

    async def _ask(self, frame: bytes, request: type[Request], version: int) -> Any:
        self._writer.write(frame)
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        answer = await self._reader.readexactly(size)
        return decode_response(APIS[request.API_KEY].response, version, answer)[1]
