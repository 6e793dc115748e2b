"""A broker in a thread of its own that says what it is made to say, however large or hostile."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.codec import encode
from aioproducer.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from aioproducer.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

METADATA_VERSION = 12
PRODUCE_VERSION = 12

Answer = Callable[[int, int], bytes | None]
"""The body of the answer to a request of this API, of this broker's port; None: no answer."""


def versions() -> bytes:
    """An ApiVersions response, version 0, for metadata and records."""
    known = [
        ApiVersion(ApiKey.PRODUCE, PRODUCE_VERSION, PRODUCE_VERSION),
        ApiVersion(ApiKey.METADATA, METADATA_VERSION, METADATA_VERSION),
        ApiVersion(ApiKey.API_VERSIONS, 0, 0),
    ]
    return b"".join(encode(ApiVersionsResponse(0, known), 0))


def metadata(
    port: int,
    topic: str,
    partitions: int,
    *,
    leader: int = 0,
    epoch: int = 1,
    topic_id: int = 0,
    error: ErrorCode = ErrorCode.NONE,
) -> bytes:
    """A topic whose partitions this broker leads, each with three replicas. All broker ids are its own."""
    of = [MetadataResponsePartition(0, number, leader, epoch, [0, 1, 2], [0, 1, 2], []) for number in range(partitions)]
    brokers = [MetadataResponseBroker(node, "127.0.0.1", port) for node in range(leader + 1)]
    topics = [MetadataResponseTopic(error, topic, UUID(int=topic_id), partitions=of)]
    response = MetadataResponse(brokers=brokers, topics=topics)
    return b"\0" + b"".join(encode(response, METADATA_VERSION))  # the header's tags


def empty_partitions(size: int) -> bytes:
    """A metadata response of about this size: one topic, with partitions that are all zero and empty."""
    partition = bytes(2 + 4 + 4 + 4) + b"\1\1\1\0"  # three empty arrays, no tags
    count = size // len(partition)
    topic = bytes(2) + b"\x02t" + bytes(16 + 1) + _uvarint(count + 1) + partition * count + bytes(4 + 1)
    return bytes(1 + 4) + b"\1\0" + bytes(4) + b"\2" + topic + b"\0"


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


@contextmanager
def serving(answer: Answer) -> Iterator[int]:
    """Its port, on this machine. Connections and their threads end with it."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    connections: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as requests:
                while size := requests.read(4):
                    request = requests.read(struct.unpack(">i", size)[0])
                    key, _, correlation_id = struct.unpack_from(">hhi", request)
                    if (body := answer(key, port)) is not None:
                        connection.sendall(struct.pack(">ii", 4 + len(body), correlation_id))
                        connection.sendall(body)
        except OSError:
            pass  # the client has hung up

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            threads.append(threading.Thread(target=serve, args=(connection,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield port
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
        listener.close()
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended
        for thread in threads:
            thread.join()
