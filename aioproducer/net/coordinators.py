"""The coordinators of transactional ids and groups, found by FindCoordinator."""

from __future__ import annotations

from collections.abc import Sequence

from aioproducer.errors import UnsupportedVersionException, error_for, with_advice
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.addresses import Address
from aioproducer.net.client import KafkaClient
from aioproducer.net.metadata.cluster import Node
from aioproducer.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION = 0, 1

_LAST_WITH_ONE_KEY = 3
_KEYS_AT_ONCE = 1000


class Coordinators:
    """Remembers each coordinator until a request finds that it has moved."""

    def __init__(self, client: KafkaClient) -> None:
        self._client = client
        self._nodes: dict[tuple[int, str], int] = {}

    def forget(self, key_type: int, key: str) -> None:
        self._nodes.pop((key_type, key), None)

    def known(self, key_type: int, key: str) -> int | None:
        """The node's id, if known."""
        return self._nodes.get((key_type, key))

    async def find(self, key_type: int, key: str) -> int:
        """The node's id; raises what the brokers answer."""
        node = self._nodes.get((key_type, key))
        if node is None:
            node = self._nodes[key_type, key] = await self._ask(key_type, key)
        return node

    async def find_all(self, key_type: int, keys: Sequence[str]) -> dict[str, int]:
        """The nodes' ids, asked for in one request; raises what the brokers answer for one of them.

        Needs brokers of 3.0 or newer.
        """
        unknown = [key for key in keys if (key_type, key) not in self._nodes]
        for begin in range(0, len(unknown), _KEYS_AT_ONCE):
            some = unknown[begin : begin + _KEYS_AT_ONCE]
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=some)
            response = await self._client.request(request, FindCoordinatorResponse)
            for found in response.coordinators:
                self._nodes[key_type, found.key] = self._node_of(key_type, found.key, found)
        return {key: self._nodes[key_type, key] for key in keys}

    async def _ask(self, key_type: int, key: str) -> int:
        try:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            response = await self._client.request(request, FindCoordinatorResponse)
            (found,) = response.coordinators
        except UnsupportedVersionException:  # a broker before 3.0
            request = FindCoordinatorRequest(key, key_type)
            response = await self._client.request(request, FindCoordinatorResponse, at_most=_LAST_WITH_ONE_KEY)
            found = Coordinator(
                key, response.node_id, response.host, response.port, response.error_code, response.error_message
            )
        return self._node_of(key_type, key, found)

    def _node_of(self, key_type: int, key: str, found: Coordinator) -> int:
        if found.error_code != ErrorCode.NONE:
            what = "transactional.id" if key_type == TRANSACTION else "group"
            why = with_advice(found.error_message or "", found.error_code)
            raise error_for(found.error_code, f"no coordinator for {what} {key!r}: {why}")
        self._client.add_node(Node(found.node_id, Address(found.host, found.port), None))
        return found.node_id
