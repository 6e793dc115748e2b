"""The state of a prepared transaction, as users keep it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aioproducer.errors import IllegalArgumentException
from aioproducer.errors.printable import printable

_SHOWN = 50
"""Characters of a text that is none, in the error."""

_WRITTEN = r"([0-9]{1,19}):([0-9]{1,5})"


@dataclass(frozen=True, slots=True)
class PreparedTxnState:
    """What names a transaction of two-phase commit: the producer id and epoch under which it began (KIP-939).

    As text it is ``"producerId:epoch"``, and empty if there is no transaction, as with Kafka's class of this name. Keep
    the text in the database that decides about the transaction.
    """

    producer_id: int = -1
    epoch: int = -1

    @classmethod
    def parse(cls, text: str) -> PreparedTxnState:
        """The state that ``str()`` wrote; IllegalArgumentException for any other text."""
        if not text:
            return cls()
        found = re.fullmatch(_WRITTEN, text)
        if found is None or int(found[1]) >= 2**63 or int(found[2]) >= 2**15:
            raise IllegalArgumentException(
                f"{printable(text[:_SHOWN])!r} is no transaction's state: it must be 'producerId:epoch', or empty"
            )
        return cls(int(found[1]), int(found[2]))

    @property
    def has_transaction(self) -> bool:
        """Whether it names a transaction."""
        return self.producer_id >= 0

    def __bool__(self) -> bool:
        return self.has_transaction

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}" if self.has_transaction else ""
