from __future__ import annotations

import asyncio
import struct

from aioproducer.broker.kafka_channel import KafkaChannel
from aioproducer.broker.processor import Processor
from aioproducer.broker.request import Request
from aioproducer.clock import SystemClock
from aioproducer.protocol.messages.metadata import MetadataResponse


class FakeTransport(asyncio.Transport):
    """Takes what is written, and says that the kernel does not while ``full``."""

    def __init__(self) -> None:
        super().__init__()
        self.channel: KafkaChannel | None = None
        self.full = False
        self.reading = True
        self.closing = False
        self.written: list[bytes] = []

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0

    def write(self, data: object) -> None:
        self.written.append(bytes(data))  # type: ignore[call-overload]
        if self.full and self.channel is not None:
            self.channel.pause_writing()

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.closing = True


class Handler:
    """Keeps requests until the test ends them."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def is_supported(self, api_key: int, api_version: int) -> bool:
        return True

    def handle(self, request: Request, frame: bytes, body_at: int) -> None:
        self.requests.append(request)


class Channel:
    """A channel with nothing real around it."""

    def __init__(self) -> None:
        self.handler = Handler()
        self.processor = Processor(self.handler, SystemClock(), max_receive_size=1000, max_idle_ms=-1)
        self.channel = self.processor.open_channel()
        self.transport = FakeTransport()
        self.transport.channel = self.channel
        self.channel.connection_made(self.transport)

    def receive(self, *correlation_ids: int) -> None:
        data = b"".join(struct.pack(">ihhih", 10, 3, 1, correlation_id, -1) for correlation_id in correlation_ids)
        self.channel.get_buffer(-1)[: len(data)] = data
        self.channel.buffer_updated(len(data))

    @property
    def pending(self) -> list[int]:
        return [request.header.correlation_id for request in self.handler.requests]

    @property
    def answered(self) -> list[int]:
        return [int.from_bytes(data[4:8], "big") for data in self.transport.written]


async def test_one_request_at_a_time() -> None:
    channel = Channel()
    channel.receive(1, 2, 3)
    assert channel.pending == [1]
    assert not channel.transport.reading
    for correlation_id in (1, 2, 3):
        assert channel.pending == [correlation_id]
        channel.handler.requests.pop().respond(MetadataResponse())
    assert channel.answered == [1, 2, 3]
    assert channel.transport.reading


async def test_a_request_without_response_lets_the_next_one_through() -> None:
    channel = Channel()
    channel.receive(1, 2)
    channel.handler.requests.pop().no_response()
    assert channel.pending == [2]
    assert channel.answered == []


async def test_muted_until_the_response_is_gone() -> None:
    channel = Channel()
    channel.transport.full = True
    channel.receive(1, 2)
    channel.handler.requests.pop().respond(MetadataResponse())
    assert channel.pending == []
    assert not channel.transport.reading
    channel.channel.resume_writing()
    assert channel.pending == [2]


async def test_what_was_received_before_the_client_left_is_handled() -> None:
    channel = Channel()
    channel.receive(1, 2, 3)
    gone: list[int] = []
    channel.handler.requests.pop().on_abandon(lambda: gone.append(1))
    channel.channel.connection_lost(None)
    assert gone == [1]
    assert channel.pending == [2, 3]
    assert all(request.abandoned for request in channel.handler.requests)
    for request in channel.handler.requests:
        request.respond(MetadataResponse())
    assert channel.answered == []
    assert channel.processor.connection_count == 0


async def test_nothing_is_handled_after_a_close() -> None:
    channel = Channel()
    channel.receive(1, 2)
    channel.handler.requests.pop().close_connection("enough")
    assert channel.transport.closing
    channel.channel.connection_lost(None)
    assert channel.pending == []


async def test_nothing_is_handled_after_an_abort() -> None:
    channel = Channel()
    channel.receive(1, 2)
    channel.channel.abort()
    channel.channel.connection_lost(None)
    assert channel.pending == [1]
    assert channel.handler.requests[0].abandoned


async def test_a_connection_during_the_close_is_dropped() -> None:
    channel = Channel()
    closing = asyncio.create_task(channel.processor.close())
    await asyncio.sleep(0)
    late, transport = channel.processor.open_channel(), FakeTransport()
    late.connection_made(transport)
    assert transport.closing
    for open_channel in (channel.channel, late):
        open_channel.connection_lost(None)
    await closing
