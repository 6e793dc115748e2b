"""The admin client's calls for transactions of other producers."""

from __future__ import annotations

from collections.abc import Sequence

from aioproducer.admin.admin_calls import AdminCalls
from aioproducer.admin.transactions import TransactionDescription, described, ended, fenced, listed


class TransactionCalls(AdminCalls):
    """To find transactions, and to end those whose producers left them open."""

    async def list_transactions(self, *, states: Sequence[str] = ()) -> list[str]:
        """The transactional ids that this client may see, in order; with ``states`` only those in one of them.

        Needs brokers of 3.0 or newer.
        """
        client = self._client()

        async def attempt() -> list[str]:
            cluster = await client.cluster()
            found: set[str] = set()
            for node in cluster.nodes:
                found.update(await listed(client.client, node, states))
            return sorted(found)

        return await client.retry("listing transactions", attempt)

    async def describe_transactions(self, transactional_ids: Sequence[str]) -> dict[str, TransactionDescription | None]:
        """What coordinators know of transactional ids; None for one that they do not know.

        Needs brokers of 3.0 or newer.
        """
        client = self._client()
        return await client.retry(
            "describing transactions", lambda: described(client.client, client.coordinators, transactional_ids)
        )

    async def end_transaction(
        self, transactional_id: str, identity: tuple[int, int], *, committed: bool, second_protocol: bool
    ) -> None:
        """Commits or aborts the transaction that a producer with this id and epoch has left open.

        ``second_protocol``: its producer spoke the one of KIP-890. Ending it twice in the same way is harmless.
        InvalidTxnStateException, ProducerFencedException, InvalidProducerEpochException or InvalidPidMappingException
        if the transaction has ended before, and the coordinator knows no more that it ended like this.
        """
        client = self._client()
        await client.retry(
            f"ending the transaction of {transactional_id!r}",
            lambda: ended(
                client.client,
                client.coordinators,
                transactional_id,
                identity,
                committed=committed,
                second_protocol=second_protocol,
            ),
        )

    async def fence_producer(self, transactional_id: str, identity: tuple[int, int], timeout_ms: int) -> None:
        """The producer with this id and epoch can do nothing more. A transaction that is under way is aborted.

        ``timeout_ms`` is the time-out of transactions, within what brokers allow. ProducerFencedException if another
        producer has taken over since. Needs brokers of 2.5 or newer.
        """
        client = self._client()
        await client.retry(
            f"fencing the producer of {transactional_id!r}",
            lambda: fenced(client.client, client.coordinators, transactional_id, identity, timeout_ms),
        )
