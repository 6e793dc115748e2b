"""aiokafka's errors for those of this package.

If aiokafka is installed, these are its own classes; if not, classes with the same names, bases, numbers and flags.
``from aioproducer.compat.aiokafka.errors import KafkaTimeoutError`` works in either case. Each is raised from this
package's own error, so ``error.__cause__.outcome`` says whether the record may be in the log.

Every time-out is a KafkaTimeoutError. When a delivery times out, aiokafka raises the last error of its attempts
(NotLeaderForPartitionError, LeaderNotAvailableError, …), so here the class raised is both.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, cast

from aioproducer import KafkaError as OwnError
from aioproducer import Reason
from aioproducer.compat.aiokafka.aiokafka_module import aiokafka_module
from aioproducer.errors import (
    ApiException,
    AuthenticationException,
    BufferExhaustedException,
    IllegalArgumentException,
    IllegalStateException,
    InvalidProducerEpochException,
    NetworkException,
    ProducerFencedException,
    TimeoutException,
    TransactionAbortableException,
    error_class,
)
from aioproducer.errors.error_code import ErrorCode

_NUMBERED: Final = {
    -1: "UnknownError",
    2: "CorruptRecordException",
    3: "UnknownTopicOrPartitionError",
    5: "LeaderNotAvailableError",
    6: "NotLeaderForPartitionError",
    7: "RequestTimedOutError",
    8: "BrokerNotAvailableError",
    9: "ReplicaNotAvailableError",
    10: "MessageSizeTooLargeError",
    12: "OffsetMetadataTooLargeError",
    14: "GroupLoadInProgressError",
    15: "GroupCoordinatorNotAvailableError",
    16: "NotCoordinatorForGroupError",
    17: "InvalidTopicError",
    18: "RecordListTooLargeError",
    19: "NotEnoughReplicasError",
    20: "NotEnoughReplicasAfterAppendError",
    21: "InvalidRequiredAcksError",
    22: "IllegalGenerationError",
    24: "InvalidGroupIdError",
    25: "UnknownMemberIdError",
    27: "RebalanceInProgressError",
    29: "TopicAuthorizationFailedError",
    30: "GroupAuthorizationFailedError",
    31: "ClusterAuthorizationFailedError",
    32: "InvalidTimestampError",
    33: "UnsupportedSaslMechanismError",
    34: "IllegalSaslStateError",
    35: "UnsupportedVersionError",
    40: "InvalidConfigurationError",
    42: "InvalidRequestError",
    43: "UnsupportedForMessageFormatError",
    44: "PolicyViolationError",
    45: "OutOfOrderSequenceNumber",
    46: "DuplicateSequenceNumber",
    47: "InvalidProducerEpoch",
    48: "InvalidTxnState",
    49: "InvalidProducerIdMapping",
    50: "InvalidTransactionTimeout",
    51: "ConcurrentTransactions",
    53: "TransactionalIdAuthorizationFailed",
    54: "SecurityDisabled",
    55: "OperationNotAttempted",
    56: "KafkaStorageError",
    58: "SaslAuthenticationFailed",
    59: "UnknownProducerId",
}
"""The errors that a producer may get; every other number is aiokafka's UnknownError."""

_RETRIABLE: Final = frozenset({3, 5, 6, 7, 14, 15, 16, 19, 20, 56})
_INVALID_METADATA: Final = frozenset({3, 5, 6, 56})

_NAMED: Final = (
    "IllegalStateError",
    "IllegalArgumentError",
    "NodeNotReadyError",
    "AuthenticationFailedError",
    "KafkaConnectionError",
    "KafkaTimeoutError",
    "ProducerClosed",
    "ProducerFenced",
)
"""Errors without a number."""

_BY_CLASS: Final[tuple[tuple[type[OwnError], str], ...]] = (
    (ProducerFencedException, "ProducerFenced"),
    (InvalidProducerEpochException, "ProducerFenced"),
    (AuthenticationException, "AuthenticationFailedError"),
    (NetworkException, "KafkaConnectionError"),  # aiokafka uses Kafka's number of it for another error
    (IllegalArgumentException, "IllegalArgumentError"),
    (IllegalStateException, "IllegalStateError"),
)

_BY_REASON: Final = {
    Reason.NO_LEADER.value: "LeaderNotAvailableError",
    Reason.LEADER_UNKNOWN.value: "LeaderNotAvailableError",
    Reason.NOT_CONNECTED.value: "NodeNotReadyError",
    Reason.NO_BROKER.value: "NodeNotReadyError",
}
"""What a record waited for, where no broker has answered."""


REQUEST_TIMED_OUT: Final = "(request.timeout.ms)"
"""In the words of a connection that was closed because a request had no answer in time."""


class _Named(RuntimeError):
    retriable = False
    invalid_metadata = False

    def __str__(self) -> str:
        name = type(self).__name__
        return f"{name}: {super().__str__()}" if self.args else name


class _Numbered(_Named):
    errno: int

    def __str__(self) -> str:
        return f"[Error {self.errno}] {super().__str__()}"


def _tree() -> dict[str, type[Exception]]:
    """By name: aiokafka's own class, or one like it."""
    found = aiokafka_module("errors")
    tree: dict[str, type[Exception]] = {}

    def add(name: str, *bases: type[Exception], **attributes: object) -> None:
        own = type(name, bases, {"__module__": __name__, **attributes})
        tree[name] = cast(type[Exception], getattr(found, name, own))

    add("KafkaError", _Named)
    add("BrokerResponseError", _Numbered, tree["KafkaError"])
    add("IllegalOperation", Exception)
    for name in _NAMED:
        lost = name == "KafkaConnectionError"
        add(name, tree["KafkaError"], retriable=lost or name == "NodeNotReadyError", invalid_metadata=lost)
    for errno, name in _NUMBERED.items():
        flags = {"retriable": errno in _RETRIABLE, "invalid_metadata": errno in _INVALID_METADATA}
        add(name, tree["BrokerResponseError"], errno=errno, **flags)
    return tree


_TREE: Final = _tree()


def __getattr__(name: str) -> type[Exception]:
    if name not in _TREE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _TREE[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_TREE})


def illegal_argument(message: str) -> Exception:
    """An IllegalArgumentError, for compiled modules: there is no class of this name that their compiler could see."""
    return _TREE["IllegalArgumentError"](message)


def translated(error: OwnError, *, late: str = "") -> Exception:
    """aiokafka's error for one of ours, to be raised from it.

    ``late`` names the class of a time-out, if the caller knows it; otherwise the error's ledger decides.
    """
    return _kind(error, late)(str(error))


def translated_with_cause(error: OwnError) -> Exception:
    """As :func:`translated`, with our error as its cause: a future's error has no ``raise … from``."""
    other = translated(error)
    other.__cause__ = error
    return other


def _kind(error: OwnError, late: str = "") -> type[Exception]:
    cause = error.__cause__
    if isinstance(error, IllegalStateException | TransactionAbortableException) and isinstance(cause, OwnError):
        return _kind(cause)  # aiokafka raises the error that made the producer fail
    if isinstance(error, BufferExhaustedException):
        return _TREE["KafkaTimeoutError"]
    if isinstance(error, TimeoutException):
        return _timed_out(late or _last_error(error))
    return _TREE[_name_for(type(error))]


def _name_for(kind: type[OwnError]) -> str:
    for ours, name in _BY_CLASS:
        if issubclass(kind, ours):
            return name
    return _NUMBERED.get(kind.code, "UnknownError") if issubclass(kind, ApiException) else "KafkaError"


def _last_error(error: TimeoutException) -> str:
    """The name of the error that aiokafka would have ended the delivery with."""
    cause = error.__cause__
    if isinstance(cause, NetworkException) and REQUEST_TIMED_OUT in str(cause):
        return "RequestTimedOutError"  # the connection ended because of that
    if isinstance(cause, ApiException):
        return _name_for(type(cause))
    longest = max(error.ledger, key=lambda entry: entry.seconds, default=None)
    if longest is None:
        return "RequestTimedOutError"
    code = ErrorCode.__members__.get(longest.cause)
    return _BY_REASON.get(longest.cause, "RequestTimedOutError") if code is None else _name_for(error_class(code))


@cache
def _timed_out(name: str) -> type[Exception]:
    """A class that is both the one of this name and KafkaTimeoutError."""
    late = _TREE["KafkaTimeoutError"]
    if issubclass(_TREE[name], late):
        return late

    def reduced(self: Exception) -> tuple[Any, ...]:
        return _revived, (name, self.args)

    both = type(name, (_TREE[name], late), {"__module__": __name__, "__reduce__": reduced})
    return cast(type[Exception], both)


def _revived(name: str, args: tuple[Any, ...]) -> Exception:
    return _timed_out(name)(*args)
