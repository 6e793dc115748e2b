"""A gate that refuses connections when the faults say so."""

from __future__ import annotations

from collections.abc import Callable

from aioproducer.broker.faults.faults import Faults
from aioproducer.broker.network.gate.connection_gate import Gate
from aioproducer.broker.network.gate.listening_socket import AcceptedSocket


class FaultyGate:
    """Stands before a node's own :class:`Gate`, and passes on the connections that it does not refuse."""

    def __init__(self, gate: Gate, node_id: int, faults: Faults) -> None:
        self._gate = gate
        self._node_id = node_id
        self._faults = faults

    def arrive(
        self, listener: str, address: str, connection: AcceptedSocket, admit: Callable[[AcceptedSocket, str], object]
    ) -> None:
        if self._faults.refuses_connection(self._node_id):
            connection.close()
        else:
            self._gate.arrive(listener, address, connection, admit)

    def depart(self, listener: str, address: str) -> None:
        self._gate.depart(listener, address)
