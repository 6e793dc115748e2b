"""Looks up the state of an exactly-once write on the brokers, and changes nothing."""

from __future__ import annotations

from aioproducer.spark.exactly_once.ledger import open_ledger
from aioproducer.spark.exactly_once.marker import MarkerMismatchException
from aioproducer.spark.exactly_once.write_state import WriteState
from aioproducer.spark.sink.sink_options import SinkOptions


async def inspect_write(options: SinkOptions, write: str) -> WriteState:
    """The state of a stream's query, or of a batch's ``writeId``."""
    async with open_ledger(options, write, write) as ledger:
        unreadable = None
        decision, markers = None, {}
        try:
            decision = await ledger.decision(stable=False)
        except MarkerMismatchException as error:
            unreadable = str(error)
        transactions = await ledger.transactions()
        # After the transactions: what was committed then has its marker now.
        try:
            markers = await ledger.markers_from(0)
        except MarkerMismatchException as error:
            unreadable = unreadable or str(error)
        streaming, place = options.write_id is None, str(options.marker_place)
        return WriteState(ledger.whole, place, streaming, decision, unreadable, markers, transactions)
