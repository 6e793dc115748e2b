"""Who may connect, as far as acceptors and processors know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from aioproducer.broker.network.listening_socket import AcceptedSocket


class Gate(Protocol):
    """Stands between a listener and those that its connections are handed to."""

    def arrive(
        self, listener: str, address: str, connection: AcceptedSocket, admit: Callable[[AcceptedSocket, str], object]
    ) -> None:
        """A connection was accepted. Calls ``admit(connection, address)``, now or later, or closes it."""

    def depart(self, listener: str, address: str) -> None:
        """A connection that was let in has ended."""


class _OpenGate:
    def arrive(
        self, listener: str, address: str, connection: AcceptedSocket, admit: Callable[[AcceptedSocket, str], object]
    ) -> None:
        admit(connection, address)

    def depart(self, listener: str, address: str) -> None:
        pass


OPEN_GATE: Gate = _OpenGate()
"""Lets everybody in."""
