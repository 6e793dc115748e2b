"""Decides what an error of a coordinator means for the transaction and its producer. A pure rule."""

from __future__ import annotations

from enum import Enum

from aioproducer.errors import KafkaError
from aioproducer.producer.transactions.errors import (
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
    """What is to be done; but for the first, whoever asked the coordinator is told, and does not ask again."""

    ASK_AGAIN = "nothing is decided yet"
    TELL = "nothing comes of the error"
    TELL_OF_THE_STATE = "the transaction is given up already, and that is why the error is of no interest"
    REFUSE = "the producer has to be initialized again"
    FAIL_TRANSACTION = "the transaction must be aborted"
    FAIL_ABORT = "the transaction cannot be aborted, and the producer is of no further use"
    FAIL_PRODUCER = "the producer is of no further use"


_TO_BE_ABORTED = {
    S.IN_TRANSACTION: Verdict.FAIL_TRANSACTION,
    S.COMMITTING: Verdict.FAIL_TRANSACTION,
    S.ABORTABLE_ERROR: Verdict.TELL_OF_THE_STATE,
    S.ABORTING: Verdict.FAIL_ABORT,
}
"""What an answer means that says to abort; in the other states there is nothing to be aborted."""


def verdict(
    api: ApiKey, error: KafkaError, state: TransactionState, *, knows: bool = True, asked_before: bool = False
) -> Verdict:
    """What comes of an error that this API has met in this state.

    ``knows``: the coordinator is known to have begun the transaction. ``asked_before``: it was asked to end the
    transaction, and may have done so, though nobody knows.
    """
    what = consequence(api, error)
    if may_be_done(api, error):
        given_up = state not in (S.IN_TRANSACTION, S.COMMITTING)
        return Verdict.TELL_OF_THE_STATE if given_up and api in PARTS else Verdict.ASK_AGAIN
    if api is ApiKey.END_TXN and state is S.ABORTING and is_nothing_to_abort(error, knows=knows):
        return Verdict.TELL
    if api is ApiKey.END_TXN and state is S.COMMITTING and asked_before and is_forgotten(error):
        return Verdict.FAIL_PRODUCER  # somebody else has the transactional id by now; this one may have been committed
    if what is Consequence.REFUSED:
        return Verdict.REFUSE
    if what is Consequence.FATAL:
        return Verdict.FAIL_PRODUCER
    if state is S.ABORTING and api in PARTS:
        return Verdict.TELL
    return _TO_BE_ABORTED.get(state, Verdict.FAIL_PRODUCER)
