"""When a client asks for its subscription and pushes its metrics, and what follows from each answer.

Kafka's ``ClientTelemetryReporter``, with these differences. A broker without these APIs is looked at again after an
interval, not given up. An answer to be repeated at once may not come twice in a row. A codec that a broker refuses is
not used again, and after TELEMETRY_TOO_LARGE a payload has at most half the size.
"""

from __future__ import annotations

import logging
import math
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

from aioproducer.errors import AuthenticationException, KafkaError, UnsupportedVersionException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.records.compression import CompressionType
from aioproducer.telemetry.subscription import DEFAULT_INTERVAL, Subscription
from aioproducer.telemetry.telemetry_state import NEXT, TelemetryState

log = logging.getLogger(__name__)

JITTER: Final = (0.5, 1.5)
"""The bounds of the first push, in intervals: clients that start together push at different times."""

_AT_ONCE = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})
_LATER = frozenset({ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED})

_BEFORE_LAST_PUSH = frozenset(
    state for state, following in NEXT.items() if TelemetryState.TERMINATING_PUSH_NEEDED in following
)


class Push(NamedTuple):
    """How to push."""

    subscription: Subscription
    codec: CompressionType
    max_bytes: int
    terminating: bool


class ClientTelemetry:
    """The rules. ``now`` is the loop's time in seconds. They raise nothing: metrics must not stop deliveries."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.state = TelemetryState.SUBSCRIPTION_NEEDED
        self.subscription: Subscription | None = None
        """The last one; it stays while another is asked for."""
        self.next_at = -math.inf
        """When the next request is due; never is infinity."""
        self.why_none: str = "no broker has answered yet"
        """Why there is no subscription."""
        self._refused: set[CompressionType] = set()
        self._too_large: float = math.inf
        self._repeated = False
        """The last answer was one to be repeated at once."""

    @property
    def client_instance_id(self) -> UUID | None:
        """The id that the cluster has assigned; None before."""
        return None if self.subscription is None else self.subscription.client_instance_id

    # Subscriptions

    def ask(self) -> GetTelemetrySubscriptionsRequest:
        """The request for the subscription, which is sent now."""
        self._enter(TelemetryState.SUBSCRIPTION_IN_PROGRESS)
        return GetTelemetrySubscriptionsRequest(self.client_instance_id or ZERO_UUID)

    def answered(self, answer: GetTelemetrySubscriptionsResponse, now: float) -> None:
        """The broker has answered the request for the subscription."""
        if answer.error_code != ErrorCode.NONE:
            self.why_none = f"the broker answered {_name(answer.error_code)}"
            self._refuse(answer.error_code, now)
            return
        try:
            subscription = Subscription.of(answer)
        except KafkaError as error:
            self._disable(str(error))
            return
        self._repeated = False
        before, self.subscription = self.subscription, subscription
        if before is None:
            log.debug("the cluster calls this client %s", subscription.client_instance_id)
        if subscription.is_empty:
            self._enter(TelemetryState.SUBSCRIPTION_NEEDED)
            self.next_at = now + subscription.push_interval
        else:
            self._enter(TelemetryState.PUSH_NEEDED)
            self.next_at = now + self._random.uniform(*JITTER) * subscription.push_interval

    # Pushes

    def push(self) -> Push:
        """How to push now."""
        assert self.subscription is not None
        terminating = self.state is TelemetryState.TERMINATING_PUSH_NEEDED
        self._enter(TelemetryState.TERMINATING_PUSH_IN_PROGRESS if terminating else TelemetryState.PUSH_IN_PROGRESS)
        return Push(
            self.subscription,
            self.subscription.codec(self._refused),
            int(min(self.subscription.max_bytes, self._too_large)),
            terminating,
        )

    def pushed(self, push: Push, size: int, error_code: int, now: float) -> None:
        """The broker has answered a push of this many bytes."""
        if push.terminating:
            self.end()
            return
        if error_code == ErrorCode.NONE:
            self._repeated = False
            self._enter(TelemetryState.PUSH_NEEDED)
            self.next_at = now + push.subscription.push_interval
            return
        if error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
            self._refused.add(push.codec)
        elif error_code == ErrorCode.TELEMETRY_TOO_LARGE:
            self._too_large = size // 2
        self._refuse(error_code, now)

    def cannot_push(self, why: str) -> None:
        """Metrics are wanted that this client cannot push."""
        self._disable(why)

    # Failures

    def failed(self, error: KafkaError, now: float) -> None:
        """A request was not answered, or could not be sent."""
        self.why_none = str(error)
        if self.is_ending:
            self.end()
        elif isinstance(error, UnsupportedVersionException):
            log.debug("metrics are not pushed for now: %s", error)
            self._again(now + DEFAULT_INTERVAL)
        elif error.retriable or isinstance(error, AuthenticationException):  # the client reports that
            log.debug("metrics are pushed later: %s", error)
            self._again(now + min(self._interval, DEFAULT_INTERVAL))
        else:
            self._disable(str(error))

    def _refuse(self, error_code: int, now: float) -> None:
        """An answer with an error."""
        if error_code in _AT_ONCE and not self._repeated:
            self._repeated = True
            self._again(now)
        elif error_code in _AT_ONCE or error_code in _LATER:
            self._repeated = False
            log.debug("metrics are pushed later: the broker answered %s", _name(error_code))
            self._again(now + self._interval)
        else:
            self._disable(f"the broker answered {_name(error_code)}")

    def _again(self, when: float) -> None:
        """Asks for the subscription at that time."""
        if self.state is not TelemetryState.SUBSCRIPTION_NEEDED:
            self._enter(TelemetryState.SUBSCRIPTION_NEEDED)
        self.next_at = when

    def _disable(self, why: str) -> None:
        log.info("metrics are not pushed to the brokers: %s", why, extra={"kafka": {"event": "telemetry_disabled"}})
        self.why_none = why
        self.end()

    @property
    def _interval(self) -> float:
        return DEFAULT_INTERVAL if self.subscription is None else self.subscription.push_interval

    # The end

    @property
    def is_ending(self) -> bool:
        """Whether nothing but a last push may follow."""
        return self.state in (
            TelemetryState.TERMINATING_PUSH_NEEDED,
            TelemetryState.TERMINATING_PUSH_IN_PROGRESS,
            TelemetryState.TERMINATED,
        )

    def close(self) -> bool:
        """The client closes; whether a last push is to be sent now, which needs a subscription to metrics."""
        is_wanted = self.subscription is not None and not self.subscription.is_empty
        if is_wanted and self.state in _BEFORE_LAST_PUSH:
            self._enter(TelemetryState.TERMINATING_PUSH_NEEDED)
            return True
        self.end()
        return False

    def end(self) -> None:
        """Nothing follows."""
        if self.state is not TelemetryState.TERMINATED:
            self._enter(TelemetryState.TERMINATED)
        self.next_at = math.inf

    def _enter(self, state: TelemetryState) -> None:
        assert state in NEXT[self.state], f"{state} cannot follow {self.state}"
        self.state = state


def _name(error_code: int) -> str:
    try:
        return ErrorCode(error_code).name
    except ValueError:
        return f"error {error_code}"
