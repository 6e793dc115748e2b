"""What the calls of a mock raise."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class MockErrors:
    """By call, what it raises each time until that is None again; nothing has been done by then.

    ``send`` is for every record, whichever call brings it: ``send``, ``enqueue``, ``send_many`` or ``send_table``.
    """

    send: Exception | None = None
    flush: Exception | None = None
    partitions_for: Exception | None = None
    close: Exception | None = None
    init_transactions: Exception | None = None
    begin_transaction: Exception | None = None
    send_offsets_to_transaction: Exception | None = None
    commit_transaction: Exception | None = None
    abort_transaction: Exception | None = None

    def strike(self, call: str) -> None:
        """Raises what there is for the call."""
        error: Exception | None = getattr(self, call)
        if error is not None:
            raise error.with_traceback(None)
