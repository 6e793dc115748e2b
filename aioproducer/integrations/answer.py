"""What an HTTP service answers when a record could not be sent.

| status | when |
|---|---|
| 413 | the record is too large |
| 422 | it cannot be serialized, or the broker's validation refuses it |
| 503, Retry-After | it is not in the log and never will be; trying later may work |
| 504 | it may be in the log, or its transaction may yet be committed: sending it again may put it there twice |

Trying later may work where there is no memory, no broker or no leader, and where something else ended the record: its
transaction was aborted, its producer closed, its batch refused for another record.

Anything else (misuse, no authorization, a producer that has failed) is the service's own error. It gets no answer here:
the framework handles the exception.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from aioproducer import DeliveryError, KafkaError, Outcome
from aioproducer.errors import (
    ApiException,
    BufferExhaustedException,
    IllegalArgumentException,
    InvalidRecordException,
    InvalidTimestampException,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
)

log = logging.getLogger(__name__)

RETRY_AFTER: Final = 5
"""Seconds that clients are asked to wait by default."""


class Answer(NamedTuple):
    """A response; ``body`` is for JSON."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]


def answer_to(error: KafkaError, *, retry_after: int = RETRY_AFTER) -> Answer | None:
    """The response to the client that wanted the record sent; None for an error of the service itself.

    Its body has ``detail``, the name of the ``error``, and the record's ``outcome`` if it has one.

    Errors of the record itself are shown as they are. Errors of the cluster go to the log, and clients get a plain
    description, because the addresses of brokers do not concern them.
    """
    if isinstance(error, RecordTooLargeException):
        return _answer(413, error, str(error))
    if isinstance(error, SerializationException | InvalidRecordException | InvalidTimestampException):
        return _answer(422, error, str(error))
    if _may_yet_happen(error):
        return _told(error, _answer(504, error, "no broker has confirmed the record in time; it may be in the log"))
    if _may_work_later(error):
        words = f"the record was not accepted; try again in {retry_after} s"
        return _told(error, _answer(503, error, words, {"Retry-After": str(retry_after)}))
    return None


def _may_yet_happen(error: KafkaError) -> bool:
    if isinstance(error, DeliveryError):
        return error.outcome is Outcome.UNKNOWN
    # Of a call, not of a record: a commit that has not ended within max.block.ms goes on.
    return isinstance(error, TimeoutException) and not isinstance(error, BufferExhaustedException)


def _may_work_later(error: KafkaError) -> bool:
    if error.retriable or error.abortable:
        return True
    # Refused neither by a broker nor for what it is, but ended by something else: its transaction was aborted, its
    # producer closed, its batch refused for another record.
    return isinstance(error, DeliveryError) and not isinstance(error, ApiException | IllegalArgumentException)


def _answer(status: int, error: KafkaError, detail: str, headers: Mapping[str, str] | None = None) -> Answer:
    body = {"detail": detail, "error": type(error).__name__}
    if isinstance(error, DeliveryError):
        body["outcome"] = error.outcome.value
    return Answer(status, body, headers or {})


def _told(error: KafkaError, answer: Answer) -> Answer:
    fields = {"event": "answered", "status": answer.status, **answer.body, "detail": str(error)}
    log.warning("answered %d: %s", answer.status, error, extra={"kafka": fields})
    return answer
