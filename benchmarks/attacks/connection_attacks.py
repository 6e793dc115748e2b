"""Attacks by connections: very many of them, and requests that are not whole, not read or not requests."""

from __future__ import annotations

import contextlib
import struct
import threading
from collections.abc import Callable

from aioproducer.protocol.messages.metadata import MetadataRequest
from benchmarks.attacks import steps
from benchmarks.attacks.hostile_client import HostileClient, frame


def parts_of_requests(client: HostileClient) -> steps.Attacking:
    part = struct.pack(">i", 90_000_000) + bytes(2_000_000)
    yield

    def send() -> None:
        with contextlib.suppress(OSError):  # the broker stops reading, and closes it in the end
            client.connect().send_bytes(part)

    threads = [threading.Thread(target=send, daemon=True) for _ in range(60)]
    for thread in threads:
        thread.start()
    client.wait()


def no_descriptors(client: HostileClient) -> steps.Attacking:
    yield
    for _ in range(400):
        client.connect()
    client.wait()


def junk_that_is_logged(client: HostileClient) -> steps.Attacking:
    yield
    for number in range(3_000):
        connection = client.connect()
        connection.send_bytes(struct.pack(">I", 0x80000000 + number))
        assert connection.is_closed()
        connection.close()


def pipelined_requests(client: HostileClient) -> steps.Attacking:
    requests = frame(MetadataRequest([]), steps.METADATA) * 1_000
    yield

    def flood() -> None:
        connection = client.connect()
        with contextlib.suppress(OSError):
            reader = threading.Thread(target=_drain, args=(connection.receive_frame,), daemon=True)
            reader.start()
            for _ in client.rounds():
                connection.send_bytes(requests)

    threads = [threading.Thread(target=flood, daemon=True) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def connection_storm(client: HostileClient) -> steps.Attacking:
    yield
    for _ in client.rounds():
        client.connect().close()


def simultaneous_closes(client: HostileClient) -> steps.Attacking:
    connections = [client.connect() for _ in range(3_000)]
    yield
    for connection in connections:
        connection.close()
    client.wait()


def _drain(receive: Callable[[], object]) -> None:
    with contextlib.suppress(OSError):
        while True:
            receive()
