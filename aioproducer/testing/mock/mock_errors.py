"""The errors that the calls of a mock raise."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class MockErrors:
    """The error that each call raises, every time until it is None again. A call that raises does nothing else.

    ``send`` applies to every record, whichever call sends it: ``send``, ``enqueue``, ``send_many`` or ``send_table``.
    """

    send: Exception | None = None
    flush: Exception | None = None
    partitions_for: Exception | None = None
    client_instance_id: Exception | None = None
    close: Exception | None = None
    init_transactions: Exception | None = None
    begin_transaction: Exception | None = None
    send_offsets_to_transaction: Exception | None = None
    prepare_transaction: Exception | None = None
    complete_transaction: Exception | None = None
    commit_transaction: Exception | None = None
    abort_transaction: Exception | None = None

    def strike(self, call: str) -> None:
        """Raises the error of this call, if there is one."""
        error: Exception | None = getattr(self, call)
        if error is not None:
            raise error.with_traceback(None)
