"""The driver's part of a write that happens once: it decides about an epoch, and ends the tasks' transactions.

``two_phases.py`` has the order of things.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from aioproducer.spark.exactly_once.ledger import open_drivers_ledger
from aioproducer.spark.exactly_once.prepared import Outcome, Prepared
from aioproducer.spark.exactly_once.two_phases import abort, commit
from aioproducer.spark.exactly_once.way_out import with_way_out

if TYPE_CHECKING:
    from aioproducer.spark.sink.sink_options import SinkOptions


async def commit_epoch(options: SinkOptions, write: str, epoch: int, outcomes: Sequence[Outcome]) -> None:
    """Makes the rows of all tasks readable, or finishes what an earlier driver has decided about the epoch.

    MarkerMismatchException if the epoch was decided with other rows, or a later one was; EpochNotCommittedException if
    a task's transaction is no longer open; EpochIncompleteException if one was aborted after the decision;
    EpochLostException if their topic was deleted before they were committed.
    """
    where = f"epoch {epoch} of {write}"
    with with_way_out(options, write):
        async with open_drivers_ledger(options, write, where) as ledger:
            await commit(ledger, epoch, outcomes, int(options.configs["transaction.timeout.ms"]), where)


async def abort_epoch(options: SinkOptions, write: str, epoch: int, prepared: Iterable[Prepared]) -> None:
    """Aborts the transactions of tasks, unless they were decided."""
    with with_way_out(options, write):
        async with open_drivers_ledger(options, write, f"epoch {epoch} of {write}") as ledger:
            await abort(ledger, prepared)
