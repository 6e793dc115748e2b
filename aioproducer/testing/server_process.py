"""A port and the log's last lines, for servers in processes of their own."""

from __future__ import annotations

import socket
from pathlib import Path


def free_port() -> int:
    """A port of 127.0.0.1 without a listener."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def last_lines(log: Path) -> str:
    """The last 20 lines of a log, which say why a server does not start."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
