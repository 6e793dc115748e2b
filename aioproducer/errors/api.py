"""Errors with a number in Kafka's protocol: the roots of their families, and those of any request."""

from __future__ import annotations

from aioproducer.errors.error_code import ErrorCode
from aioproducer.errors.kafka_error import KafkaError
from aioproducer.types import LedgerEntry


class ApiException(KafkaError):
    """An error that has a number in Kafka's protocol; ``code`` is that number."""


class RetriableException(ApiException):
    """The same request may succeed later."""

    retriable = True


class InvalidMetadataException(RetriableException):
    """The same request may succeed later, elsewhere: what we know of the cluster is out of date."""

    refresh_metadata = True


class InvalidConfigurationException(ApiException):
    """The broker refuses a config or an argument."""

    code = ErrorCode.INVALID_CONFIG


class UnknownServerException(ApiException):
    """The broker met an error it could not name; its log says more."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class TimeoutException(RetriableException):
    """Something did not happen within its time-out; the message names which one.

    ``ledger`` tells what a record's time was spent on; its entries add up to it. Empty where no record waited.
    """

    code = ErrorCode.REQUEST_TIMED_OUT
    ledger: tuple[LedgerEntry, ...] = ()


class NetworkException(InvalidMetadataException):
    """The connection ended before the broker's answer was received."""

    code = ErrorCode.NETWORK_EXCEPTION


class UnsupportedVersionException(InvalidConfigurationException):
    """The broker does not speak any version of this API that we speak."""

    code = ErrorCode.UNSUPPORTED_VERSION
    advice = "use a broker of a version that speaks it"


class InvalidRequestException(ApiException):
    """The broker found the request malformed; its log says more."""

    code = ErrorCode.INVALID_REQUEST


class OperationNotAttemptedException(ApiException):
    """The broker did not try, as something else in the same request failed."""

    code = ErrorCode.OPERATION_NOT_ATTEMPTED


class ThrottlingQuotaExceededException(RetriableException):
    """A quota was exceeded; try again later."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class BufferExhaustedException(TimeoutException):
    """No memory for the record within ``max.block.ms``: records arrive faster than they can be delivered."""


class UnnamedApiException(ApiException):
    """An error code that the clients here have no class for; the message has its name and number."""
