"""The meaning of an error for a transaction, by the API that answered it (the handlers of ``TransactionManager``).

Pure rules: they return what to do, and do nothing themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from aioproducer.errors import (
    ApiException,
    InvalidProducerEpochException,
    KafkaError,
    NetworkException,
    ProducerFencedException,
    TimeoutException,
    error_for,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey


class Consequence(Enum):
    """What to do about an error."""

    RETRY = "ask again after the back-off"
    FIND_COORDINATOR = "ask again, wherever the coordinator is by then"
    REFUSED = "not allowed at present: init_transactions() may be called again"
    ABORT = "the transaction must be aborted; the producer can continue after that"
    FATAL = "the producer is unusable"


_BY_WEIGHT = list(Consequence)

_UNANSWERED = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT})

PARTS = frozenset({ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT})
"""They add to a transaction, and are irrelevant once it is given up."""


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

# The coordinator has forgotten the producer id: once the transaction is given up, it assigns another one.
_FORGOTTEN = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING})

# Permission may be granted while the producer lives, and there is no transaction to abort yet.
_REFUSED = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)

_FATAL = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)

FATAL_FOR_BATCHES = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
"""A batch that fails with one of these ends the producer; any other error ends the transaction."""


def consequence(api: ApiKey, error: KafkaError) -> Consequence:
    """The meaning of an error of a transaction API.

    A request without an answer (a time-out, a lost connection) is repeated at the current coordinator, as the APIs
    allow.
    """
    if isinstance(error, NetworkException | TimeoutException):
        return Consequence.FIND_COORDINATOR
    if not isinstance(error, ApiException):
        return Consequence.FATAL
    code = error.code
    if code in _COORDINATOR_IS_ELSEWHERE:
        return Consequence.FIND_COORDINATOR
    if api is ApiKey.INIT_PRODUCER_ID and code in _REFUSED:
        return Consequence.REFUSED
    if code in _FATAL:
        return Consequence.FATAL
    if code in _ABORTABLE or (code in _FORGOTTEN and api is not ApiKey.INIT_PRODUCER_ID):
        return Consequence.ABORT
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or error.retriable:
        return Consequence.RETRY
    # A coordinator's objections to partitions, of any kind, may not concern the next transaction.
    return Consequence.ABORT if api is ApiKey.ADD_PARTITIONS_TO_TXN else Consequence.FATAL


def worst(api: ApiKey, codes: Iterable[int]) -> ErrorCode:
    """The decisive code of an answer with many, NONE if all is well.

    Partitions that were not even tried do not show the reason.
    """
    found = [ErrorCode(code) for code in codes if code != ErrorCode.NONE]
    tried = [code for code in found if code is not ErrorCode.OPERATION_NOT_ATTEMPTED] or found
    return max(tried, key=lambda code: _BY_WEIGHT.index(consequence(api, error_for(code, ""))), default=ErrorCode.NONE)


def may_be_done(api: ApiKey, error: KafkaError) -> bool:
    """Whether the coordinator may have carried out the request, as there is no answer or no final one."""
    return consequence(api, error) in (Consequence.RETRY, Consequence.FIND_COORDINATOR)


def may_arrive_late(api: ApiKey, error: KafkaError) -> bool:
    """Whether the coordinator may receive this attempt to change a transaction after later requests."""
    return (api in PARTS or api is ApiKey.END_TXN) and error.code in _UNANSWERED


def is_forgotten(error: KafkaError) -> bool:
    """Whether the coordinator has forgotten the producer id."""
    return error.code in _FORGOTTEN


def is_nothing_to_abort(error: KafkaError, *, knows: bool) -> bool:
    """Whether a coordinator asked to abort has no transaction: it has forgotten the producer id, or, unless it
    certainly knew of the transaction (``knows``), never learned of it."""
    return is_forgotten(error) or (error.code is ErrorCode.INVALID_TXN_STATE and not knows)


def named(error: KafkaError) -> KafkaError:
    """The error as users know it: for a fenced producer coordinators also send INVALID_PRODUCER_EPOCH."""
    if isinstance(error, InvalidProducerEpochException):
        fenced = ProducerFencedException(str(error))
        fenced.__cause__ = error
        return fenced
    return error


def not_aborted(error: KafkaError) -> KafkaError:
    """The fatal error if the answer to an abort is that the transaction must be aborted: a caller that saw that answer
    would abort again, for ever (KAFKA-19250)."""
    failed = KafkaError(f"the transaction cannot be aborted, and the producer is unusable: {error}")
    failed.__cause__ = error
    return failed
