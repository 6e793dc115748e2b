"""The meaning of a response for a batch: the error table and the decision (``Sender.completeBatch``).

Pure rules: they return what to do, and do nothing themselves.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from aioproducer.errors import error_class
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.batches.split import may_split
from aioproducer.producer.idempotence.sequences import PartitionSequences


class Action(Enum):
    """What to do with an answered batch."""

    SUCCEED = "complete it with its offset"
    SUCCEED_DUPLICATE = "complete it; the broker no longer knows its offset"
    RETRY = "send it again after the back-off"
    SPLIT = "it is too large: send it again in smaller ones"
    SEPARATE = "some of its records are refused: send it again in parts, those and the others"
    RESTAMP = "it is proven absent, and its stamp is no longer usable: send it again under the next epoch"
    WAIT = "attempts of it and of an earlier batch may still arrive, in order: send it again when none can"
    ASK = "only the log shows whether the batch is there: ask the leader"
    FAIL = "end it with the error"


# Read for every batch: looking an enum member up is slow.
SUCCEED: Final = Action.SUCCEED
SUCCEED_DUPLICATE: Final = Action.SUCCEED_DUPLICATE
_NONE: Final = ErrorCode.NONE

# The broker refused the batch because of its state of this producer, not because of the batch.
SEQUENCE_ERRORS = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)

APPENDED = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})

# After these the batch may still be in the log. Even after NOT_LEADER_OR_FOLLOWER: the leader may have lost its role
# between its own append and the replicas' (``DelayedProduce``), and its successor may have the batch.
MAYBE_APPENDED = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


# The broker refused the batch for the content of some records.
OF_RECORDS = frozenset({ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP})


def decide(
    code: ErrorCode,
    batch: ProducerBatch,
    sequences: PartitionSequences | None,
    now: float,
    *,
    retries: int,
    expired: bool,
    separable: bool = False,
) -> Action:
    """The action for a batch answered with ``code`` at ``now``. ``expired``: its delivery.timeout.ms is over;
    ``separable``: the answer names some of its records.

    ``batch.maybe_appended`` must cover the earlier attempts and this answer.
    """
    if code == _NONE:
        return SUCCEED
    if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return SUCCEED_DUPLICATE
    if expired:
        return Action.FAIL
    if may_split(code, batch):
        return Action.SPLIT
    if separable and code in OF_RECORDS and not (sequences is not None and sequences.transactional):
        return Action.SEPARATE  # in a transaction the others are useless without these
    if sequences is not None and batch.has_sequence() and code in SEQUENCE_ERRORS:
        return _decide_by_sequence(code, batch, sequences, now)
    if batch.attempts - batch.excused > retries:
        return Action.FAIL
    if not error_class(code).retriable:
        return Action.FAIL
    void = sequences is not None and batch.has_sequence() and sequences.is_void(batch)
    return Action.RESTAMP if void else Action.RETRY


def _decide_by_sequence(code: ErrorCode, batch: ProducerBatch, sequences: PartitionSequences, now: float) -> Action:
    """The broker refused the batch for its state of this producer."""
    if sequences.transactional:
        if code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return Action.FAIL
        if not sequences.is_lowest(batch):
            return Action.RETRY
        return Action.ASK if batch.maybe_appended else Action.FAIL
    if sequences.is_void(batch):
        return Action.RESTAMP
    if not sequences.is_lowest(batch):
        return Action.RETRY  # once the earlier batch is resolved, this one is in order
    if code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.maybe_appended:
        # A broker remembers nothing of the epochs before the last one, and one before 2.5 forgets a producer with the
        # last of its records, which may have been deleted since.
        return Action.FAIL
    if sequences.proves_absence(batch, now):
        return Action.RESTAMP
    return Action.WAIT if sequences.may_still_arrive(batch, now) else Action.ASK
