"""Chooses between the two transaction protocols by the cluster's finalized ``transaction.version``.

With the first, partitions are named to the coordinator before anything is written to them, and an epoch lasts until
sequences under it are in doubt. With the second (KIP-890) a write names the partition, and each end of a transaction
brings the next epoch. Rules only.
"""

from __future__ import annotations

from aioproducer.protocol.api_key import ApiKey

_FIRST_WITH_THE_SECOND = 2

NEWEST_OF_THE_FIRST = {
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,  # later ones are for brokers among themselves
    ApiKey.END_TXN: 4,
    ApiKey.PRODUCE: 11,
    ApiKey.TXN_OFFSET_COMMIT: 4,
}
"""Brokers distinguish the protocols by the version of a request."""


class TransactionProtocol:
    """The present protocol; it changes only between two transactions."""

    def __init__(self) -> None:
        self.second = False

    def newest(self, api: ApiKey) -> int | None:
        """The newest version of the API in this protocol; None for the newest of all."""
        return None if self.second else NEWEST_OF_THE_FIRST.get(api)

    def follow(self, finalized: int | None) -> bool:
        """Switches to the finalized protocol, if known; returns whether that is from the first to the second.

        The second protocol needs an epoch under which nothing of the first was written.
        """
        if finalized is None:
            return False
        before, self.second = self.second, finalized >= _FIRST_WITH_THE_SECOND
        return self.second and not before
