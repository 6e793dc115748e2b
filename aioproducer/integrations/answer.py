"""The HTTP answer of a service whose record could not be sent.

| status | when |
|---|---|
| 413 | the record is too large |
| 422 | the record cannot be serialized, or the broker's validation refuses it |
| 503, Retry-After | the record is not in the log and never will be; another attempt may succeed |
| 504 | the record may be in the log, or its transaction may yet be committed: sending it again may duplicate it |

Another attempt may succeed after a lack of memory, brokers or leaders, and after a failure that was not the record's
own: its transaction was aborted, its producer was closed, or its batch was refused because of another record.

Every other error (misuse, no authorization, a producer that has failed) is the service's own. It gets no answer here:
the framework handles the exception.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from time import monotonic
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
from aioproducer.timing.log_interval import LogInterval

__all__ = ["Answer", "Answers"]

log = logging.getLogger(__name__)

RETRY_AFTER: Final = 5
"""Seconds after which clients are to try again, by default."""


class Answer(NamedTuple):
    """A response; ``body`` is for JSON."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]


class Answers:
    """The responses of one service; ``retry_after`` is in seconds.

    Clients get errors of the record itself in full. Errors of the cluster go to the log, and clients get a plain
    description, because the addresses of brokers do not concern them. During an outage every request has the same
    error, so each kind is logged at most every ten seconds.
    """

    def __init__(self, *, retry_after: int = RETRY_AFTER, clock: Callable[[], float] = monotonic) -> None:
        self._retry_after = retry_after
        self._clock = clock
        self._interval = LogInterval()
        self._unlogged: Counter[tuple[int, str]] = Counter()

    def to(self, error: KafkaError) -> Answer | None:
        """The response to a client whose record failed; None for an error of the service itself.

        Its body has ``detail``, the name of the ``error``, and the record's ``outcome`` if it has one.
        """
        if isinstance(error, RecordTooLargeException):
            return _answer(413, error, str(error))
        if isinstance(error, SerializationException | InvalidRecordException | InvalidTimestampException):
            return _answer(422, error, str(error))
        if _may_yet_happen(error):
            words = "no broker has confirmed the record in time; it may be in the log"
            return self._logged(error, _answer(504, error, words))
        if _may_work_later(error):
            words = f"the record was not accepted; try again in {self._retry_after} s"
            return self._logged(error, _answer(503, error, words, {"Retry-After": str(self._retry_after)}))
        return None

    def _logged(self, error: KafkaError, answer: Answer) -> Answer:
        kind = (answer.status, type(error).__name__)
        self._unlogged[kind] += 1
        now = self._clock()
        if now >= self._interval.next(kind):
            times = self._unlogged.pop(kind)
            fields = {"event": "answered", "status": answer.status, **answer.body}
            fields |= {"detail": str(error), "times": times}
            more = f" ({times} times since the last such line)" if times > 1 else ""
            log.warning("answered %d: %s%s", answer.status, error, more, extra={"kafka": fields})
            self._interval.logged(kind, now)
        return answer


def _may_yet_happen(error: KafkaError) -> bool:
    if isinstance(error, DeliveryError):
        return error.outcome is Outcome.UNKNOWN
    # The time-out of a call, not of a record: a commit that takes longer than max.block.ms continues.
    return isinstance(error, TimeoutException) and not isinstance(error, BufferExhaustedException)


def _may_work_later(error: KafkaError) -> bool:
    if error.retriable or error.abortable:
        return True
    # Neither a broker nor its own content failed the record: its transaction was aborted, its producer was closed, or
    # its batch was refused because of another record.
    return isinstance(error, DeliveryError) and not isinstance(error, ApiException | IllegalArgumentException)


def _answer(status: int, error: KafkaError, detail: str, headers: Mapping[str, str] | None = None) -> Answer:
    body = {"detail": detail, "error": type(error).__name__}
    if isinstance(error, DeliveryError):
        body["outcome"] = error.outcome.value
    return Answer(status, body, headers or {})
