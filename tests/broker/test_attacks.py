"""Malicious clients: each loses its own connection, and no other client notices.

That one that never reads is not read either is in ``test_processor.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import tracemalloc
import zlib
from collections import Counter
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.log.log_validator import MAX_DECOMPRESSED_SIZE
from aioproducer.broker.network.channel.receive_deadlines import PROGRESS
from aioproducer.broker.requests import long_work, slices
from aioproducer.broker.requests.long_work import LongWork
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.records.compression import CompressionType
from aioproducer.records.record_batch_header import encode_batch_header
from tests.support.manual_clock import ManualClock

from .raw_clients.batches import NOW_MS, make_batch
from .raw_clients.raw_client import Connect, RawClient
from .raw_clients.served import Served, exchange

HEADER = struct.Struct(">ihhih")
METADATA = HEADER.pack(HEADER.size - 4, 3, 0, 1, -1)
"""A request without a body."""


async def is_well(connect: Connect) -> bool:
    """Whether others are served."""
    return bool((await (await connect()).request(MetadataRequest([]), 13)).brokers)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">i", 104857601), "above the limit"),
        (b"\x7f\xff\xff\xff", "above the limit"),
        (b"\xff\xff\xff\xff", "negative"),
        (b"\x80\0\0\0", "negative"),
        (b"\x15\x03\x03\0\x02\x02\x46", "TLS alert"),
    ],
)
async def test_impossible_frame_lengths_cost_the_connection(
    client: RawClient, connect: Connect, data: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    await client.send_bytes(data)
    assert await client.is_closed()
    assert [reason in record.getMessage() for record in caplog.records] == [True]
    assert await is_well(connect)


async def test_a_request_that_drips_in_is_cut_off_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with Served(socket_request_receive_timeout_ms=50) as served:
        slow, other = await served.connect(), await served.connect()
        await slow.send_bytes(struct.pack(">i", 1000))

        async def drip() -> None:
            while True:
                slow.writer.write(b"\0")
                await asyncio.sleep(0.005)

        dripping = asyncio.create_task(drip())
        assert await slow.is_closed()
        dripping.cancel()
        await exchange(served, other, METADATA)
    reason = "incomplete: fewer than 262144 bytes arrived in 50 ms"
    assert any(reason in record.getMessage() for record in caplog.records)


async def test_a_large_request_on_a_slow_line_is_not_cut_off_while_bytes_arrive() -> None:
    clock = ManualClock()  # the timers are real and short, and see this one
    async with Served(clock, socket_request_receive_timeout_ms=10) as served:
        client = await served.connect()
        await client.send_bytes(struct.pack(">i", 10 * PROGRESS) + b"\0")
        incomplete = [processor._receive_deadlines._incomplete for processor in served.server.processors]
        while not (waiting := [channel for channels in incomplete for channel in channels]):  # noqa: ASYNC110
            await asyncio.sleep(0)
        (channel,) = waiting
        (deadlines,) = [channels for channels in incomplete if channel in channels]
        for more in range(1, 5):
            await client.send_bytes(bytes(PROGRESS))
            while channel.pending <= more * PROGRESS:  # noqa: ASYNC110
                await asyncio.sleep(0)
            clock.advance(0.011)
            while deadlines[channel][1] != clock.monotonic():  # noqa: ASYNC110
                await asyncio.sleep(0)
        await client.send_bytes(bytes(PROGRESS - 1))
        while channel.pending < 5 * PROGRESS:  # noqa: ASYNC110
            await asyncio.sleep(0)
        clock.advance(0.011)
        assert await client.is_closed()


async def test_time_in_which_the_broker_does_not_read_is_not_the_clients() -> None:
    async with Served(socket_request_receive_timeout_ms=20) as served:
        client = await served.connect()
        await client.send_bytes(METADATA * 2 + METADATA[:7])  # handled; waits; not whole
        first = await served.handler.next()
        await asyncio.sleep(0.06)
        first.respond(MetadataResponse())
        (await served.handler.next()).respond(MetadataResponse())
        await client.send_bytes(METADATA[7:])
        (await served.handler.next()).respond(MetadataResponse())
        for _ in range(3):
            await client.receive_frame()


async def test_a_size_that_is_only_announced_reserves_nothing() -> None:
    async with Served() as served:
        clients = [await served.connect() for _ in range(50)]
        for client in clients:
            await client.send_bytes(struct.pack(">i", 100 * 1024 * 1024))
        tracemalloc.start()
        try:
            for client in clients:
                await client.send_bytes(bytes(1000))
            for _ in range(20):
                await asyncio.sleep(0)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 16 * 1024 * 1024


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\0\x10\0\0"])
async def test_counts_larger_than_the_bytes_cost_the_connection(
    client: RawClient, connect: Connect, count: bytes
) -> None:
    tracemalloc.start()
    try:
        await client.send_bytes(HEADER.pack(HEADER.size, 3, 1, 1, -1) + count)
        assert await client.is_closed()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024 * 1024
    assert await is_well(connect)


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@pytest.mark.parametrize("in_header", [True, False])
async def test_20_million_tagged_fields_cost_the_connection_and_nothing_else(
    client: RawClient, connect: Connect, in_header: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tags = varint(20_000_000) + bytes(40_000_000)
    head = struct.pack(">hhih", 3, 12, 1, -1)
    frame = head + tags if in_header else head + b"\0" + b"\0" + b"\0\0" + tags
    data = memoryview(struct.pack(">i", len(frame)) + frame)
    tracemalloc.start()
    try:
        with contextlib.suppress(ConnectionError):  # it may be gone before the last of it is known to be sent
            for at in range(0, len(data), 2**20):  # so that sending costs next to nothing
                await client.send_bytes(data[at : at + 2**20])
        assert await client.is_closed()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The buffer that it came in, and the frame that was made of it; nothing for any of the fields.
    assert peak < 2.1 * len(frame)
    assert ["20000000 tagged fields" in record.getMessage() for record in caplog.records] == [True]
    assert await is_well(connect)


async def test_memory_that_is_used_up_stops_reading_and_is_given_back() -> None:
    async with Served(socket_request_max_bytes=100_000, queued_max_request_bytes=100_000) as served:
        memory = served.server.memory
        body = bytes(60_000)
        frame = HEADER.pack(HEADER.size - 4 + len(body), 3, 0, 1, -1) + body
        clients = [await served.connect() for _ in range(5)]
        sending = [asyncio.create_task(client.send_bytes(frame)) for client in clients]
        handled = 0
        while handled < 5:
            request = await served.handler.next()
            # One frame beyond the limit, and for each client a size and the bytes of one read.
            assert memory.available >= -(100_000 + 5 * 65_536)
            handled += 1
            request.respond(MetadataResponse())
        await asyncio.gather(*sending)
        for client in clients:
            await client.receive_frame()
        assert memory.available == 100_000


async def test_small_requests_are_read_though_parts_of_large_ones_use_up_the_memory() -> None:
    async with Served(socket_request_max_bytes=100_000, queued_max_request_bytes=100_000) as served:
        memory = served.server.memory
        for _ in range(5):
            hostile = await served.connect()
            await hostile.send_bytes(struct.pack(">i", 90_000) + bytes(60_000))
        while memory.available > 0:  # noqa: ASYNC110
            await asyncio.sleep(0)
        honest = await served.connect()
        body = bytes(10_000)
        frame = HEADER.pack(HEADER.size - 4 + len(body), 3, 0, 1, -1) + body
        for start in range(0, len(frame), 3000):
            await honest.send_bytes(frame[start : start + 3000])
            await asyncio.sleep(0.001)
        (await served.handler.next()).respond(MetadataResponse())
        await honest.receive_frame()


async def test_parts_of_requests_do_not_use_up_the_memory_for_ever() -> None:
    """Ten clients have sent almost all of a request each, far more than there is memory for; all get their answer."""
    async with Served(socket_request_max_bytes=50_000, queued_max_request_bytes=50_000) as served:
        body = bytes(40_000)
        frame = HEADER.pack(HEADER.size - 4 + len(body), 3, 0, 1, -1) + body
        clients = [await served.connect() for _ in range(10)]
        for client in clients:
            await client.send_bytes(frame[:20_000])
            for _ in range(10):
                await asyncio.sleep(0)
        assert served.server.memory.available <= 0
        sending = [asyncio.create_task(client.send_bytes(frame[20_000:])) for client in clients]
        for _ in clients:
            (await served.handler.next()).respond(MetadataResponse())
        await asyncio.gather(*sending)
        for client in clients:
            await client.receive_frame()
        assert served.server.memory.available == 50_000


async def test_a_disconnect_releases_memory() -> None:
    async with Served(socket_request_max_bytes=100_000, queued_max_request_bytes=100_000) as served:
        client = await served.connect()
        await client.send_bytes(struct.pack(">i", 90_000) + bytes(50_000))
        while served.server.memory.available == 100_000:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await client.close()
        while served.server.connection_count:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert served.server.memory.available == 100_000


async def test_a_client_that_never_reads_is_closed_as_idle() -> None:
    """However much of an answer it has not read."""
    clock = ManualClock()
    async with Served(clock, connections_max_idle_ms=10) as served:
        client, other = await served.connect(), await served.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send_bytes(METADATA)
        (await served.handler.next()).respond_bytes([bytes(32 * 1024 * 1024)])  # more than any socket buffer takes
        (channel,) = [
            channel for one in served.server.processors for channel in one.open_channels() if channel.in_flight
        ]
        while not channel.is_writing:  # noqa: ASYNC110
            await asyncio.sleep(0)
        clock.advance(0.007)
        await exchange(served, other, METADATA)
        clock.advance(0.007)
        while served.server.connection_count > 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert not channel.is_open
        await exchange(served, other, METADATA)


async def test_a_decompression_bomb_is_refused(cluster: EmbeddedCluster, client: RawClient, connect: Connect) -> None:
    cluster.create_topic("t")
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = b"".join([bomb.compress(bytes(1 << 20)) for _ in range(MAX_DECOMPRESSED_SIZE // 2**20 + 8)]) + bomb.flush()
    header = encode_batch_header(body, count=1, base_timestamp=NOW_MS, max_timestamp=NOW_MS, codec=CompressionType.GZIP)
    data = TopicProduceData("t", cluster.topic("t").id, [PartitionProduceData(0, header + body)])
    response = await client.request(ProduceRequest(acks=-1, topic_data=[data]), 13)
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert "decompressed" in answer.error_message
    assert await is_well(connect)


@pytest.fixture
def slices_taken(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the slices of long work; each has one step."""
    taken: Counter[str] = Counter()
    advance = LongWork._advance

    def counted(work: LongWork, of: Any, until: float) -> bool:
        taken[of.request.header.client_id] += 1
        return advance(work, of, until)

    monkeypatch.setattr(LongWork, "_advance", counted)
    monkeypatch.setattr(long_work, "FIRST_SLICE", -1)
    monkeypatch.setattr(long_work, "AT_ONCE", -1)
    monkeypatch.setattr(slices, "SLICE", -1)
    return taken


async def test_a_short_request_does_not_wait_for_the_long_work_of_others(
    cluster: EmbeddedCluster, connect: Connect, slices_taken: Counter[str]
) -> None:
    """Between the request of an honest client and its answer there are few slices, however many there are to come."""
    cluster.create_topic("honest")
    cluster.create_topic("wide", partitions=3_000)
    honest, attackers = await connect(), [await connect() for _ in range(10)]
    data = TopicProduceData("honest", cluster.topic("honest").id, [PartitionProduceData(0, make_batch(b"a"))])
    partitions = [DeleteRecordsPartition(index, -1) for index in range(3_000)]
    for attacker in attackers:
        await attacker.send(DeleteRecordsRequest([DeleteRecordsTopic("wide", partitions)], 5_000), 2)
    while slices_taken.total() < 30:  # noqa: ASYNC110
        await asyncio.sleep(0)
    waited = []
    for _ in range(10):
        before = slices_taken.total()
        answer = await honest.request(ProduceRequest(acks=-1, topic_data=[data]), 13)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        waited.append(slices_taken.total() - before)
    to_come = 10 * (3_000 // 32) * 2
    assert slices_taken.total() < to_come, "the attack goes on"
    assert sum(waited) / len(waited) <= 10
    for attacker in attackers:
        await attacker.receive(ApiKey.DELETE_RECORDS, 2)


async def test_a_long_request_waits_for_one_slice_of_each_other_request(
    cluster: EmbeddedCluster, connect: Connect, slices_taken: Counter[str]
) -> None:
    cluster.create_topic("wide", partitions=3_000)
    honest, attackers = await connect(), [await connect() for _ in range(4)]

    def delete(count: int) -> DeleteRecordsRequest:
        return DeleteRecordsRequest(
            [DeleteRecordsTopic("wide", [DeleteRecordsPartition(index, -1) for index in range(count)])], 5_000
        )

    for attacker in attackers:
        await attacker.send(delete(3_000), 2)
    while slices_taken.total() < 30:  # noqa: ASYNC110
        await asyncio.sleep(0)
    before = slices_taken.total()
    await honest.request(delete(320), 2)
    # Some 20 steps of its own, and as many of each other one; its response has some more.
    assert slices_taken.total() - before < 40 * (len(attackers) + 1)
    for attacker in attackers:
        await attacker.receive(ApiKey.DELETE_RECORDS, 2)
