"""What an error means for a transaction, by the API that answered it (the handlers of ``TransactionManager``).

Pure rules: what to do is answered, never done, here.
"""

from __future__ import annotations

from enum import Enum

from aioproducer.error_code import ErrorCode
from aioproducer.errors import (
    ApiException,
    InvalidProducerEpochException,
    KafkaError,
    NetworkException,
    ProducerFencedException,
    TimeoutException,
)
from aioproducer.protocol.api_key import ApiKey


class Consequence(Enum):
    """What to do about an error."""

    RETRY = "ask again after the back-off"
    FIND_COORDINATOR = "ask again, wherever the coordinator is by then"
    ABORT = "the transaction must be aborted; the producer can go on after that"
    FATAL = "the producer is of no further use"


_COORDINATOR_IS_ELSEWHERE = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})

_ABORTABLE = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
    }
)

# The coordinator has forgotten the producer id; a bump of the epoch brings it back, once the transaction is given up.
_FORGOTTEN = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING})
_MAY_GIVE_UP = frozenset({ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT})

FATAL_FOR_BATCHES = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
"""A batch that fails with one of these ends the producer; with any other it ends the transaction."""


def consequence(api: ApiKey, error: KafkaError) -> Consequence:
    """What an error of one of the APIs of transactions means.

    What got no answer (a time-out, a lost connection) is asked again, and of whoever coordinates by then: the APIs are
    made for it.
    """
    if isinstance(error, NetworkException | TimeoutException):
        return Consequence.FIND_COORDINATOR
    if not isinstance(error, ApiException):
        return Consequence.FATAL
    code = error.code
    if code in _COORDINATOR_IS_ELSEWHERE:
        return Consequence.FIND_COORDINATOR
    if code in _ABORTABLE:
        return Consequence.ABORT
    if code in _FORGOTTEN and api in _MAY_GIVE_UP:
        return Consequence.ABORT
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or error.retriable:
        return Consequence.RETRY
    return Consequence.FATAL


def named(error: KafkaError) -> KafkaError:
    """The error as users know it: coordinators also say INVALID_PRODUCER_EPOCH of who was fenced."""
    if isinstance(error, InvalidProducerEpochException):
        fenced = ProducerFencedException(str(error))
        fenced.__cause__ = error
        return fenced
    return error
