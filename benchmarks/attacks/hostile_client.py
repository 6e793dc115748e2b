"""A client that sends what it likes and reads only what it wants to. Its sockets block, so it takes little CPU time."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time
from collections.abc import Iterator
from typing import Any, Self

from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.framing import decode_response, encode_request
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.protocol.schema import Request
from benchmarks.harness.produce_frame import VERSION as PRODUCE_VERSION

HOSTILE = "hostile"
"""The topic that attacks write to, and the name of their groups and transactions."""

_TIMEOUT = 120.0
"""Seconds that an answer may take. A broker that needs longer has been stopped."""


class HostileConnection:
    """One connection to the broker."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(_TIMEOUT)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, request: Request, version: int) -> None:
        self.send_bytes(frame(request, version))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive_frame(self) -> bytes:
        return self._receive(int.from_bytes(self._receive(4), "big"))

    def ask(self, request: Request, version: int) -> Any:
        """The broker's response."""
        self.send(request, version)
        return decode_response(APIS[request.API_KEY].response, version, self.receive_frame())[1]

    def produce(self, topic: str, *batches: bytes) -> list[int]:
        """Sends a batch for each partition in one request; the error code of each answer."""
        data = TopicProduceData(topic, partition_data=list(itertools.starmap(PartitionProduceData, enumerate(batches))))
        response = self.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data]), PRODUCE_VERSION)
        return [one.error_code for topic in response.responses for one in topic.partition_responses]

    def is_closed(self) -> bool:
        """Whether the broker closes the connection instead of answering."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._socket.recv(min(size - len(data), 1 << 20))
            if not chunk:
                raise ConnectionResetError("the broker has closed the connection")
            data += chunk
        return bytes(data)


def frame(request: Request, version: int) -> bytes:
    return b"".join(encode_request(request, version=version, correlation_id=1, client_id="hostile"))


class HostileClient:
    """Attacks the broker on a port for some seconds."""

    def __init__(self, port: int, seconds: float) -> None:
        self._port = port
        self._seconds = seconds
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def connect(self, receive_buffer: int | None = None) -> HostileConnection:
        """A connection that stays open until the attack is over."""
        return self._open.enter_context(HostileConnection(self._port, receive_buffer))

    def rounds(self) -> Iterator[int]:
        """Numbers the repetitions of an attack: at least one, and others as long as there is time."""
        until = time.monotonic() + self._seconds
        number = 0
        while number == 0 or time.monotonic() < until:
            yield number
            number += 1

    def wait(self) -> None:
        """What has been done has its effect until the time is over."""
        time.sleep(self._seconds)
