"""Which of the two protocols of transactions is spoken, as the cluster has finalized ``transaction.version``.

With the first, partitions are named to the coordinator before anything is written to them, and an epoch lasts until
sequences under it are in doubt. With the second (KIP-890) writing is naming, and each end of a transaction brings the
producer its next epoch. Rules only.
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
"""By what a request's version is, brokers tell the protocols apart."""


class TransactionProtocol:
    """The one that is spoken now; it changes between two transactions only."""

    def __init__(self) -> None:
        self.second = False

    def newest(self, api: ApiKey) -> int | None:
        """The newest version of the API that belongs to it; None if that is the newest there is."""
        return None if self.second else NEWEST_OF_THE_FIRST.get(api)

    def follow(self, finalized: int | None) -> bool:
        """Takes up the one that was finalized, if that is known; whether that is the second, after the first.

        It begins with an epoch under which nothing of the first was written.
        """
        if finalized is None:
            return False
        before, self.second = self.second, finalized >= _FIRST_WITH_THE_SECOND
        return self.second and not before
