"""The admin client's calls for transactions of other producers."""

from __future__ import annotations

from collections.abc import Sequence

from aioproducer.admin.calls.admin_requests import AdminRequests
from aioproducer.admin.calls.transactions import TransactionDescription, described, ended, fenced, listed


class TransactionCalls:
    """Carries out the calls of KafkaAdmin that have these names."""

    def __init__(self, requests: AdminRequests) -> None:
        self._requests = requests

    async def list_transactions(self, *, states: Sequence[str]) -> list[str]:
        return await self._requests.ask_every_node(
            "listing transactions", lambda client, node_id: listed(client, node_id, states)
        )

    async def describe_transactions(self, transactional_ids: Sequence[str]) -> dict[str, TransactionDescription | None]:
        return await self._requests.ask_coordinators(
            "describing transactions", lambda client, coordinators: described(client, coordinators, transactional_ids)
        )

    async def end_transaction(
        self, transactional_id: str, identity: tuple[int, int], *, committed: bool, second_protocol: bool
    ) -> None:
        await self._requests.ask_coordinators(
            f"ending the transaction of {transactional_id!r}",
            lambda client, coordinators: ended(
                client, coordinators, transactional_id, identity, committed=committed, second_protocol=second_protocol
            ),
        )

    async def fence_producer(self, transactional_id: str, identity: tuple[int, int], timeout_ms: int) -> None:
        await self._requests.ask_coordinators(
            f"fencing the producer of {transactional_id!r}",
            lambda client, coordinators: fenced(client, coordinators, transactional_id, identity, timeout_ms),
        )
