from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from random import Random

import pytest

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.network.channel.channel_mute_state import ChannelMuteState
from aioproducer.broker.network.channel.kafka_channel import KafkaChannel
from aioproducer.broker.network.channel.memory_pool import MemoryPool
from aioproducer.broker.network.channel.receive_deadlines import ReceiveDeadlines
from aioproducer.broker.network.channel.unread_responses import UnreadResponses
from aioproducer.broker.network.gate.connection_gate import OPEN_GATE
from aioproducer.broker.network.processor import _CLOSED_AT_ONCE, LEAST_AT_ONCE, MOST_AT_ONCE, Processor
from aioproducer.broker.requests.request import Request
from aioproducer.broker.requests.request_channel import RequestChannel
from aioproducer.broker.requests.slices import Slices
from aioproducer.broker.security.listener_security import ListenerSecurity
from aioproducer.broker.security.scram_credentials import ScramCredentials
from aioproducer.protocol.messages.metadata import MetadataResponse
from aioproducer.protocol.primitives import Buffer
from aioproducer.timing.clock import SystemClock

UNLIMITED = MemoryPool(-1, Random(0), SystemClock())


class FakeTransport(asyncio.Transport):
    """Accepts writes, and reports a full kernel buffer while ``full``."""

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

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        self.closing = True
        if self.channel is not None:
            asyncio.get_running_loop().call_soon(self.channel.connection_lost, None)


PLAIN = ListenerSecurity("PLAINTEXT", BrokerConfig.of({"socket.request.max.bytes": 1000}), ScramCredentials())


def make_channel(
    processor: Processor, *, address: str = "127.0.0.1", index: int = 0, security: ListenerSecurity = PLAIN
) -> KafkaChannel:
    return KafkaChannel(
        processor,
        "PLAINTEXT",
        address,
        index,
        security=security,
        memory=UNLIMITED,
        deadlines=ReceiveDeadlines(-1, SystemClock().monotonic),
        spare_buffers=[],
        log_close=lambda connection_id, reason: None,
    )


class Channel:
    """A channel and its processor with nothing real around them; the test is the handler."""

    def __init__(self) -> None:
        self.requests = RequestChannel(500, SystemClock())
        self.processor = Processor(
            0,
            "processor",
            "PLAINTEXT",
            self.requests,
            OPEN_GATE,
            SystemClock(),
            is_supported=lambda key, version: True,
            next_connection_index=lambda: 0,
            log_close=lambda connection_id, reason: None,
            security=PLAIN,
            max_idle_ms=-1,
            receive_timeout_ms=-1,
            memory=UNLIMITED,
            unread=UnreadResponses(),
            slices=Slices(SystemClock()),
        )
        self.requests.add_processor(0, self.processor)
        self.processor.start()
        self.channel, self.transport = self.connect()
        self.pending: list[Request] = []

    def connect(self) -> tuple[KafkaChannel, FakeTransport]:
        channel = make_channel(self.processor)
        transport = FakeTransport()
        transport.channel = channel
        channel.connection_made(transport)
        return channel, transport

    async def receive(self, *correlation_ids: int) -> list[int]:
        self.read(*correlation_ids)
        return await self.handled()

    def read(self, *correlation_ids: int) -> None:
        """The loop reads these from the socket at once; nobody has handled them yet."""
        data = b"".join(struct.pack(">ihhih", 10, 3, 1, correlation_id, -1) for correlation_id in correlation_ids)
        self.channel.get_buffer(-1)[: len(data)] = data
        self.channel.buffer_updated(len(data))

    async def handled(self) -> list[int]:
        """The requests that handlers have got and not ended, after some rounds."""
        for _ in range(5):
            await asyncio.sleep(0)
            while (item := self.requests.poll()) is not None:
                assert isinstance(item, Request)
                self.pending.append(item)
        return [request.header.correlation_id for request in self.pending]

    @property
    def answered(self) -> list[int]:
        return [int.from_bytes(data[4:8], "big") for data in self.transport.written]


@pytest.fixture
async def channel() -> AsyncIterator[Channel]:
    channel = Channel()
    yield channel
    await channel.processor.close()


async def test_one_request_at_a_time(channel: Channel) -> None:
    assert await channel.receive(1, 2, 3) == [1]
    assert not channel.transport.reading
    for correlation_id in (1, 2, 3):
        assert await channel.handled() == [correlation_id]
        channel.pending.pop().respond(MetadataResponse())
    assert await channel.handled() == []
    assert channel.answered == [1, 2, 3]
    assert channel.transport.reading


async def test_one_whole_request_may_wait_behind_the_one_that_is_handled(channel: Channel) -> None:
    await channel.receive(1)
    assert channel.transport.reading
    assert await channel.receive(2) == [1]
    assert not channel.transport.reading
    channel.pending.pop().respond(MetadataResponse())
    assert await channel.handled() == [2]
    assert channel.transport.reading


async def test_requests_of_several_reads_are_handled_in_order(channel: Channel) -> None:
    channel.read(1, 2)
    channel.read(3, 4)
    for correlation_id in (1, 2, 3, 4):
        assert await channel.handled() == [correlation_id]
        channel.pending.pop().respond(MetadataResponse())


async def test_a_request_without_response_lets_the_next_one_through(channel: Channel) -> None:
    await channel.receive(1, 2)
    channel.pending.pop().no_response()
    assert await channel.handled() == [2]
    assert channel.answered == []


async def test_muted_until_the_response_is_gone(channel: Channel) -> None:
    channel.transport.full = True
    await channel.receive(1, 2)
    channel.pending.pop().respond(MetadataResponse())
    assert await channel.handled() == []
    assert not channel.transport.reading
    channel.channel.resume_writing()
    assert await channel.handled() == [2]


async def test_muted_while_throttled(channel: Channel) -> None:
    await channel.receive(1, 2)
    request = channel.pending.pop()
    request.start_throttling()
    request.respond(MetadataResponse())
    assert await channel.handled() == []
    assert channel.answered == [1]
    assert channel.channel.mute_state is ChannelMuteState.MUTED_AND_THROTTLED
    request.end_throttling()
    assert await channel.handled() == [2]


async def test_throttling_may_end_before_the_response_is_there(channel: Channel) -> None:
    await channel.receive(1, 2)
    request = channel.pending.pop()
    request.start_throttling()
    request.end_throttling()
    assert await channel.handled() == []
    request.respond(MetadataResponse())
    assert await channel.handled() == [2]


async def test_a_client_that_left_while_it_was_throttled(channel: Channel) -> None:
    await channel.receive(1)
    request = channel.pending.pop()
    request.start_throttling()
    request.respond(MetadataResponse())
    await channel.handled()
    channel.channel.connection_lost(None)
    request.end_throttling()
    assert await channel.handled() == []
    assert channel.processor.connection_count == 0


async def test_requests_received_before_the_client_disconnected_are_handled(channel: Channel) -> None:
    await channel.receive(1, 2, 3)
    gone: list[int] = []
    channel.pending.pop().on_abandon(lambda: gone.append(1))
    channel.channel.connection_lost(None)
    assert await channel.handled() == [2, 3]
    assert gone == [1]
    assert all(request.abandoned for request in channel.pending)
    for request in channel.pending:
        request.respond(MetadataResponse())
    await channel.handled()
    assert channel.answered == []
    assert channel.processor.connection_count == 0


async def test_nothing_is_handled_after_a_close(channel: Channel) -> None:
    await channel.receive(1, 2)
    channel.pending.pop().close_connection("enough")
    assert await channel.handled() == []
    assert channel.transport.closing


async def test_nothing_is_handled_after_an_abort(channel: Channel) -> None:
    await channel.receive(1, 2)
    channel.channel.abort()
    assert await channel.handled() == [1]
    assert channel.pending[0].abandoned


async def test_a_connection_during_the_close_is_dropped(channel: Channel) -> None:
    closing = asyncio.create_task(channel.processor.close())
    await asyncio.sleep(0)
    _, transport = channel.connect()
    assert transport.closing
    await closing


async def test_a_connection_id_has_both_ends(channel: Channel) -> None:
    class Named(FakeTransport):
        def get_extra_info(self, name: str, default: object = None) -> object:
            return {"sockname": ("10.0.0.1", 9092), "peername": ("10.0.0.2", 40000)}.get(name)

    late, transport = make_channel(channel.processor, address="10.0.0.2", index=7), Named()
    transport.channel = late
    late.connection_made(transport)
    assert late.id == "10.0.0.1:9092-10.0.0.2:40000-7"


async def test_a_large_request_is_gathered_and_not_copied() -> None:
    """The event loop would stand still for tens of milliseconds where 100 MB are copied."""
    one = Channel()
    security = ListenerSecurity("PLAINTEXT", BrokerConfig.of({}), ScramCredentials())
    channel = make_channel(one.processor, security=security)
    channel.connection_made(FakeTransport())
    size = 5_000_000
    data = struct.pack(">ihhih", size, 10, 3, 1, -1) + bytes(size - 10) + struct.pack(">ihhih", 10, 10, 3, 2, -1)
    while data:
        buffer = channel.get_buffer(-1)
        assert len(buffer) <= 64 * 1024
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        channel.buffer_updated(count)
        data = data[count:]
    large, small = channel.take_receive(), channel.take_receive()
    assert isinstance(large, memoryview)
    assert (len(large), len(small)) == (size, 10), "in their order"
    channel.connection_lost(None)


async def test_a_large_response_goes_to_the_kernel_in_pieces(channel: Channel) -> None:
    """Each in a slice, as long as the kernel accepts them; the next request waits for the last one."""
    await channel.receive(1, 2)
    request = channel.pending.pop()
    large = bytes(range(256)) * (2 * MOST_AT_ONCE // 256)
    parts: list[Buffer] = [b"head", large, memoryview(large)[:MOST_AT_ONCE], b"tail"]
    channel.transport.full = True
    request.respond_bytes(parts)
    sizes = [MOST_AT_ONCE, *[MOST_AT_ONCE // 2] * 4]  # it counts as one that is being sent
    for pieces in range(1, 6):
        assert await channel.handled() == []
        written = sum(map(len, channel.transport.written))
        assert written == sum(sizes[:pieces]), "one piece, and no more before the kernel has accepted it"
        channel.transport.full = pieces < 5
        channel.channel.resume_writing()
    assert await channel.handled() == [2]
    assert b"".join(channel.transport.written) == b"".join(parts)


async def test_the_rest_of_a_response_is_dropped_with_the_connection(channel: Channel) -> None:
    await channel.receive(1)
    channel.pending.pop().respond_bytes([bytes(3 * MOST_AT_ONCE)])
    while not channel.transport.written:  # noqa: ASYNC110
        await asyncio.sleep(0)
    channel.channel.connection_lost(None)
    written = len(channel.transport.written)
    await channel.handled()
    assert (len(channel.transport.written), channel.channel.is_writing) == (written, False)
    assert channel.processor.connection_count == 0


async def test_nothing_is_written_to_a_connection_that_is_lost(channel: Channel) -> None:
    """asyncio would warn of it, each time."""
    transport = channel.transport
    transport.closing = True
    channel.channel.send([b"head", b"the rest"])
    assert transport.written == []
    transport.closing = False
    channel.channel.send([b"head", b"the rest"])
    assert b"".join(transport.written) == b"headthe rest"


async def test_connections_whose_clients_leave_are_closed_in_slices(channel: Channel) -> None:
    """Thousands may leave in the same turn of the loop."""
    others = [channel.connect() for _ in range(3 * _CLOSED_AT_ONCE)]
    for other, _ in others:
        assert other.eof_received(), "asyncio does not close it"
    closed: list[int] = []
    while not closed or closed[-1] < len(others):
        await asyncio.sleep(0)
        closed.append(sum(transport.closing for _, transport in others))
    assert sorted(set(closed) - {0}) == [_CLOSED_AT_ONCE, 2 * _CLOSED_AT_ONCE, 3 * _CLOSED_AT_ONCE]
    await channel.handled()
    assert channel.processor.connection_count == 1


async def test_what_a_client_that_has_left_is_to_get_is_sent_first(channel: Channel) -> None:
    await channel.receive(1)
    channel.transport.full = True
    channel.pending.pop().respond_bytes([bytes(3 * MOST_AT_ONCE)])
    await channel.handled()
    assert channel.channel.eof_received()
    await channel.handled()
    assert sum(map(len, channel.transport.written)) == 3 * MOST_AT_ONCE
    assert channel.transport.closing


async def test_a_client_that_has_left_occupies_no_buffer(channel: Channel) -> None:
    channel.channel.get_buffer(-1)[:4] = struct.pack(">i", 100)
    channel.channel.buffer_updated(4)
    assert channel.channel.pending == 4
    channel.channel.eof_received()
    assert (channel.channel.pending, channel.transport.reading) == (0, False)


async def test_the_more_responses_are_being_sent_the_smaller_are_their_pieces(channel: Channel) -> None:
    others = [channel.connect() for _ in range(50)]
    sizes = []
    for other, transport in others:
        channel.channel, transport.full = other, True
        await channel.receive(1)
        channel.pending.pop().respond_bytes([bytes(2 * MOST_AT_ONCE)])
        await channel.handled()
        sizes.append(sum(map(len, transport.written)))
    assert sizes == [max(LEAST_AT_ONCE, MOST_AT_ONCE // (count + 1)) for count in range(50)]
    assert sizes[-1] == LEAST_AT_ONCE
