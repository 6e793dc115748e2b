"""The process that storms a broker for ``connections``: plain sockets, and no module of aioproducer's, so that it takes
as little of the machine as it can."""

from __future__ import annotations

import selectors
import socket
import sys
import time

STORMY = "127.0.0.2"
"""Who storms."""

PER_S = 1_000
"""Connections a second that it makes."""


def main() -> None:
    """Connects to a port for some seconds. Prints when it begins, and at the end how many connections were made and how
    many of them closed."""
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    made, closed = 0, 0
    print("begun", flush=True)
    begin = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        while (passed := time.perf_counter() - begin) < seconds:
            while made < passed * PER_S:
                connection = socket.socket()
                connection.setblocking(False)
                connection.bind((STORMY, 0))
                connection.connect_ex(("127.0.0.1", port))
                selector.register(connection, selectors.EVENT_READ)
                made += 1
            for key, _ in selector.select(0.002):  # nothing is ever sent: the broker has closed it
                selector.unregister(key.fileobj)
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()
                closed += 1
    print(made, closed, flush=True)
