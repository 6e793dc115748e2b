"""Decides what an error of a coordinator means for the transaction and its producer. A pure rule."""

from __future__ import annotations

from enum import Enum

from aioproducer.errors import KafkaError
from aioproducer.producer.transactions.consequences import (
    PARTS,
    Consequence,
    consequence,
    is_forgotten,
    is_nothing_to_abort,
    may_be_done,
)
from aioproducer.producer.transactions.state import TransactionState
from aioproducer.protocol.api_key import ApiKey

S = TransactionState


class Verdict(Enum):
    """What to do. Every verdict except the first ends the request and reports the error to its caller."""

    ASK_AGAIN = "ask again"
    TELL = "the error changes nothing"
    TELL_OF_THE_STATE = "the transaction is given up already, so the error does not matter"
    REFUSE = "the producer must be initialized again"
    FAIL_TRANSACTION = "the transaction must be aborted"
    FAIL_ABORT = "the transaction cannot be aborted, and the producer is unusable"
    FAIL_PRODUCER = "the producer is unusable"


_TO_BE_ABORTED = {
    S.IN_TRANSACTION: Verdict.FAIL_TRANSACTION,
    S.PREPARING_TRANSACTION: Verdict.FAIL_TRANSACTION,
    S.COMMITTING: Verdict.FAIL_TRANSACTION,
    S.ABORTABLE_ERROR: Verdict.TELL_OF_THE_STATE,
    S.ABORTING: Verdict.FAIL_ABORT,
}
"""The meaning of an answer that demands an abort; in other states there is nothing to abort."""


def verdict(
    api: ApiKey, error: KafkaError, state: TransactionState, *, knows: bool = True, asked_before: bool = False
) -> Verdict:
    """The verdict on an error of this API in this state.

    ``knows``: the coordinator is known to have begun the transaction. ``asked_before``: it was asked to end the
    transaction, and may have done so.
    """
    what = consequence(api, error)
    if may_be_done(api, error):
        given_up = state not in (S.IN_TRANSACTION, S.PREPARING_TRANSACTION, S.COMMITTING)
        return Verdict.TELL_OF_THE_STATE if given_up and api in PARTS else Verdict.ASK_AGAIN
    if api is ApiKey.END_TXN and state is S.ABORTING and is_nothing_to_abort(error, knows=knows):
        return Verdict.TELL
    if api is ApiKey.END_TXN and state is S.COMMITTING and asked_before and is_forgotten(error):
        return Verdict.FAIL_PRODUCER  # another producer has the id by now; this transaction may be committed
    if what is Consequence.REFUSED:
        return Verdict.REFUSE
    if what is Consequence.FATAL:
        return Verdict.FAIL_PRODUCER
    if state is S.ABORTING and api in PARTS:
        return Verdict.TELL
    return _TO_BE_ABORTED.get(state, Verdict.FAIL_PRODUCER)
