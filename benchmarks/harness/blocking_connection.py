"""A connection to a broker on a blocking socket, on which each request waits for the answer to the one before."""

from __future__ import annotations

import socket


class BlockingConnection:
    def __init__(self, bootstrap_server: str) -> None:
        host, _, port = bootstrap_server.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._socket.close()

    def ask(self, frame: bytes) -> bytes:
        """The answer, without its size. ConnectionError if the broker closes the connection before."""
        self._socket.sendall(frame)
        received = self._socket.recv(65536)
        while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
            more = self._socket.recv(65536)
            if not more:
                raise ConnectionError("the broker closed the connection")
            received += more
        return received[4:]
