from __future__ import annotations

import asyncio
import logging
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.network.gate.new_connections import CONNECTION_QUEUE_SIZE
from aioproducer.broker.requests.request import Request
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.raw_clients.raw_client import Connect, RawClient
from tests.broker.raw_clients.served import Served

HEADER = struct.Struct(">ihhih")


def frame(api_key: int, version: int, body: bytes = b"") -> bytes:
    """A request of client id null."""
    return HEADER.pack(HEADER.size - 4 + len(body), api_key, version, 1, -1) + body


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff\xff\xff", "negative"),
        (b"\x7f\xff\xff\xff", "above the limit"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (b"\x15\x03\x01\x00\x02\x02\x28", "TLS"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "TLS"),
        (b"\0\0\0\0", "header"),
        (b"\0\0\0\x02\0\0", "header"),
        (frame(99, 0), "API 99 version 0"),
        (frame(0, 2), "API 0 version 2"),
        (frame(3, 14, b"\0"), "API 3 version 14"),
        (frame(3, -1), "API 3 version -1"),
        (frame(3, 1, b"\x7f\xff\xff\xff"), "MetadataRequest"),
        (frame(3, 1, b"\0\0\0\1more"), "MetadataRequest"),
    ],
)
async def test_a_malformed_request_closes_the_connection_with_one_log_line(
    client: RawClient, connect: Connect, data: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    for broken in (client, await connect(), await connect()):
        await broken.send_bytes(data)
        assert await broken.is_closed()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert reason in line
    # Other clients are served as before.
    assert (await (await connect()).request(MetadataRequest([]), 13)).brokers


@pytest.mark.parametrize("newest", [0, 1])
async def test_the_body_of_an_unsupported_version_is_not_read(newest: int, caplog: pytest.LogCaptureFixture) -> None:
    """A node that has version 1 finds its body malformed; one that has only version 0 does not look at the body."""
    async with EmbeddedCluster(newest_versions={ApiKey.METADATA: newest}) as cluster:
        client = await RawClient.connect(cluster.bootstrap_servers)
        await client.send_bytes(frame(ApiKey.METADATA, 1, b"\x7f\xff\xff\xff"))
        assert await client.is_closed()
        await client.close()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert ("API 3 version 1, which is not supported" in line) == (newest == 0)
    assert ("MetadataRequest" in line) == (newest == 1)


@given(
    data=st.one_of(
        st.binary(max_size=200), st.binary(max_size=200).map(lambda data: struct.pack(">i", len(data)) + data)
    )
)
def test_no_bytes_upset_it(data: bytes) -> None:
    async def send() -> None:
        async with EmbeddedCluster() as cluster:
            client = await RawClient.connect(cluster.bootstrap_servers)
            try:
                await client.send_bytes(data)
                client.writer.write_eof()
                await client.reader.read()
            except ConnectionError:
                pass  # dropped at once, as it should be
            await client.close()
            client = await RawClient.connect(cluster.bootstrap_servers)
            assert (await client.request(MetadataRequest([]), 13)).brokers
            await client.close()

    asyncio.run(send())


async def test_requests_of_one_connection_wait_for_each_other() -> None:
    async with Served() as served:
        client = await served.connect()
        await client.send_bytes(frame(3, 0) * 3)
        for _ in range(3):
            request = await served.handler.next()
            for _ in range(10):
                await asyncio.sleep(0)
            assert served.handler.requests == []
            request.respond(MetadataResponse())


async def test_connections_do_not_wait_for_each_other() -> None:
    async with Served() as served:
        slow, quick = await served.connect(), await served.connect()
        await slow.send_bytes(frame(3, 0))
        await served.handler.next()
        await quick.send_bytes(frame(3, 0))
        (await served.handler.next()).respond(MetadataResponse())
        assert await quick.receive_frame()


async def test_a_bug_in_a_handler_closes_the_connection_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with Served() as served:
        client = await served.connect()
        served.handler.fail = True
        await client.send_bytes(frame(3, 0))
        assert await client.is_closed()
        served.handler.fail = False
        client = await served.connect()
        await client.send_bytes(frame(3, 0))
        (await served.handler.next()).respond(MetadataResponse())
        assert await client.receive_frame()
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_a_disconnect_abandons_the_current_request() -> None:
    async with Served() as served:
        client = await served.connect()
        await client.send_bytes(frame(3, 0))
        request = await served.handler.next()
        abandoned = asyncio.Event()
        request.on_abandon(abandoned.set)
        await served.close()
        assert abandoned.is_set()
        assert request.abandoned
        request.respond(MetadataResponse())  # the client has gone: no harm done


async def test_a_client_that_never_reads_is_not_read_either() -> None:
    """Beside what the kernel takes there is one response of its at most; its next requests wait."""
    async with Served() as served:
        client = await served.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        answered = 0
        big = MetadataResponse(cluster_id="x" * 30_000)
        await client.send_bytes(frame(3, 2) * 1000)
        request: Request | None = await served.handler.next()
        while request is not None:
            request.respond(big)  # hands over the next request, unless this one waits to be sent
            answered += 1
            request = await next_soon(served)
        assert answered < 1000
        other = await served.connect()
        await other.send_bytes(frame(3, 2))
        (await served.handler.next()).respond(big)
        assert await other.receive_frame()
        # When it reads again, it gets all its answers.
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        reading = asyncio.create_task(read_frames(client, 1000))
        for _ in range(1000 - answered):
            (await served.handler.next()).respond(big)
        assert await reading == 1000


async def test_a_processor_takes_a_limited_number_of_new_connections_per_round() -> None:
    async with Served(num_network_threads=1) as served:
        (processor,) = served.server.processors
        pairs = [socket.socketpair() for _ in range(CONNECTION_QUEUE_SIZE + 1)]
        ours = [pair[0] for pair in pairs]
        for number in range(CONNECTION_QUEUE_SIZE):
            assert processor.new_connections.offer(ours[number], "127.0.0.1")
        assert not processor.new_connections.offer(ours[-1], "127.0.0.1")
        await processor.new_connections.has_room()
        while served.server.connection_count < CONNECTION_QUEUE_SIZE:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert processor.new_connections.offer(ours[-1], "127.0.0.1")
        while served.server.connection_count <= CONNECTION_QUEUE_SIZE:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for _, right in pairs:
            right.close()


async def test_tasks_have_the_names_of_kafkas_threads() -> None:
    async with Served(num_network_threads=2, num_io_threads=1) as served:
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert names > {f"data-plane-kafka-socket-acceptor-PLAINTEXT-PLAINTEXT-{served.port}", "handler-0"}
        numbers = [processor.id for processor in served.server.processors]
        assert names > {f"data-plane-kafka-network-thread-0-PLAINTEXT-PLAINTEXT-{number}" for number in numbers}


async def next_soon(served: Served) -> Request | None:
    for _ in range(100):
        await asyncio.sleep(0)
        if served.handler.requests:
            return served.handler.requests.pop()
    return None


async def read_frames(client: RawClient, count: int) -> int:
    for _ in range(count):
        await client.receive_frame()
    return count
