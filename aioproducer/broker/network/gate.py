"""The interface that admits connections, for acceptors and processors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from aioproducer.broker.network.listening_socket import AcceptedSocket


class Gate(Protocol):
    """Stands between a listener and its processors."""

    def arrive(
        self, listener: str, address: str, connection: AcceptedSocket, admit: Callable[[AcceptedSocket, str], object]
    ) -> None:
        """Judges an accepted connection: calls ``admit(connection, address)``, now or later, or closes it."""

    def depart(self, listener: str, address: str) -> None:
        """An admitted connection has ended."""


class _OpenGate:
    def arrive(
        self, listener: str, address: str, connection: AcceptedSocket, admit: Callable[[AcceptedSocket, str], object]
    ) -> None:
        admit(connection, address)

    def depart(self, listener: str, address: str) -> None:
        pass


OPEN_GATE: Gate = _OpenGate()
"""Admits every connection."""
