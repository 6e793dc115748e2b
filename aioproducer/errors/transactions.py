"""Transactions and the producers that write in them."""

from __future__ import annotations

from aioproducer.errors.api import ApiException, RetriableException
from aioproducer.errors.error_code import ErrorCode


class InvalidProducerEpochException(ApiException):
    """The producer's epoch is older than the one the broker knows."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH
    advice = "if its outcome is unknown, the record may be in the log: look there before it is sent again"


class InvalidTxnStateException(ApiException):
    """The transaction is in a state that does not allow this."""

    code = ErrorCode.INVALID_TXN_STATE
    advice = (
        "brokers abort one that is open beyond transaction.timeout.ms, when another producer takes over, "
        "or when a request of init_transactions arrives late"
    )


class InvalidPidMappingException(ApiException):
    """The producer id does not belong to this transactional id (any more)."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidTxnTimeoutException(ApiException):
    """transaction.timeout.ms is above the broker's transaction.max.timeout.ms."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class ConcurrentTransactionsException(RetriableException):
    """An earlier transaction of this transactional id is still being completed."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class ProducerFencedException(ApiException):
    """A newer producer with the same transactional id has taken over."""

    code = ErrorCode.PRODUCER_FENCED
    fatal = True
    advice = (
        "close this one; if both are meant to run, give each a transactional.id of its own; if there is no other, its"
        " transaction took longer than transaction.timeout.ms"
    )


class TransactionAbortableException(ApiException):
    """The transaction must be aborted; the producer can go on after that."""

    code = ErrorCode.TRANSACTION_ABORTABLE
    abortable = True
