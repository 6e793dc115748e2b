"""What a client requests, and when: as Kafka's ``ClientTelemetryReporter`` (KIP-714)."""

from __future__ import annotations

import logging
import math
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import AuthenticationException, KafkaError, NetworkException, UnsupportedVersionException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.records.compression import CompressionType
from aioproducer.telemetry.client_telemetry import ClientTelemetry
from aioproducer.telemetry.telemetry_state import NEXT, TelemetryState

State = TelemetryState
ID = UUID(int=7)


def answer(**more: Any) -> GetTelemetrySubscriptionsResponse:
    given: dict[str, Any] = {
        "client_instance_id": ID,
        "subscription_id": 42,
        "accepted_compression_types": [1],
        "push_interval_ms": 10_000,
        "telemetry_max_bytes": 1000,
        "delta_temporality": True,
        "requested_metrics": ["*"],
    }
    return GetTelemetrySubscriptionsResponse(**given | more)


def subscribed(**more: Any) -> ClientTelemetry:
    """A client that got its subscription at the time 0."""
    rules = ClientTelemetry(Random(1))
    rules.ask()
    rules.answered(answer(**more), 0.0)
    return rules


def test_a_client_asks_for_an_id_first_and_keeps_it() -> None:
    rules = ClientTelemetry(Random(1))
    assert rules.next_at == -math.inf
    assert rules.ask().client_instance_id == ZERO_UUID
    rules.answered(answer(requested_metrics=[]), 0.0)
    assert rules.client_instance_id == ID
    assert rules.ask().client_instance_id == ID


def test_without_metrics_it_asks_again_in_each_interval() -> None:
    rules = subscribed(requested_metrics=[])
    assert (rules.state, rules.next_at) == (State.SUBSCRIPTION_NEEDED, 10.0)


def test_the_first_push_is_spread_and_the_next_are_regular() -> None:
    first = [subscribed_with(seed).next_at for seed in range(200)]
    assert 5.0 <= min(first) < 6.0
    assert 14.0 < max(first) <= 15.0
    rules = subscribed()
    push = rules.push()
    assert (rules.state, push.terminating) == (State.PUSH_IN_PROGRESS, False)
    rules.pushed(push, 10, ErrorCode.NONE, 12.0)
    assert (rules.state, rules.next_at) == (State.PUSH_NEEDED, 22.0)


def subscribed_with(seed: int) -> ClientTelemetry:
    rules = ClientTelemetry(Random(seed))
    rules.ask()
    rules.answered(answer(), 0.0)
    return rules


def test_an_interval_that_makes_no_sense_is_the_default() -> None:
    assert subscribed(requested_metrics=[], push_interval_ms=0).next_at == 300.0


@pytest.mark.parametrize(
    ("code", "state", "next_at"),
    [
        (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, State.SUBSCRIPTION_NEEDED, 12.0),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, State.SUBSCRIPTION_NEEDED, 12.0),
        (ErrorCode.TELEMETRY_TOO_LARGE, State.SUBSCRIPTION_NEEDED, 22.0),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, State.SUBSCRIPTION_NEEDED, 22.0),
        (ErrorCode.INVALID_REQUEST, State.TERMINATED, math.inf),
        (ErrorCode.INVALID_RECORD, State.TERMINATED, math.inf),
        (ErrorCode.UNSUPPORTED_VERSION, State.TERMINATED, math.inf),
        (ErrorCode.UNKNOWN_SERVER_ERROR, State.TERMINATED, math.inf),
        (12345, State.TERMINATED, math.inf),
    ],
)
def test_errors_of_a_push(code: int, state: State, next_at: float) -> None:
    rules = subscribed()
    rules.pushed(rules.push(), 10, code, 12.0)
    assert (rules.state, rules.next_at) == (state, next_at)


def test_an_error_to_be_repeated_at_once_is_so_only_once() -> None:
    rules = ClientTelemetry(Random(1))
    rules.ask()
    rules.answered(answer(error_code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID), 5.0)
    assert rules.next_at == 5.0
    rules.ask()
    rules.answered(answer(error_code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID), 6.0)
    assert rules.next_at == 306.0


def test_a_codec_that_was_refused_is_not_used_again() -> None:
    rules = subscribed(accepted_compression_types=[99, 1])
    push = rules.push()
    assert push.codec is CompressionType.GZIP
    rules.pushed(push, 10, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 1.0)
    rules.ask()
    rules.answered(answer(), 1.0)
    assert rules.push().codec is CompressionType.NONE


def test_a_push_that_was_too_large_becomes_smaller() -> None:
    rules = subscribed()
    push = rules.push()
    assert push.max_bytes == 1000
    rules.pushed(push, 800, ErrorCode.TELEMETRY_TOO_LARGE, 1.0)
    rules.ask()
    rules.answered(answer(), 20.0)
    assert rules.push().max_bytes == 400


@pytest.mark.parametrize(
    ("error", "next_at"),
    [
        (NetworkException("lost"), 11.0),
        (AuthenticationException("refused"), 11.0),
        (UnsupportedVersionException("an old broker"), 301.0),
        (KafkaError("a bug"), math.inf),
    ],
)
def test_requests_without_an_answer(error: KafkaError, next_at: float) -> None:
    rules = subscribed()
    rules.push()
    rules.failed(error, 1.0)
    assert rules.next_at == next_at
    assert (rules.state is State.TERMINATED) == (next_at == math.inf)


def test_it_is_told_once_that_nothing_is_pushed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rules = subscribed()
    rules.cannot_push("there is no library")
    assert [record.getMessage() for record in caplog.records] == [
        "metrics are not pushed to the brokers: there is no library"
    ]
    assert rules.next_at == math.inf


def test_an_answer_without_an_id_ends_it() -> None:
    rules = ClientTelemetry(Random(1))
    rules.ask()
    rules.answered(answer(client_instance_id=ZERO_UUID), 0.0)
    assert rules.state is State.TERMINATED


def test_the_last_push_is_terminating() -> None:
    rules = subscribed()
    assert rules.close()
    push = rules.push()
    assert push.terminating
    rules.pushed(push, 10, ErrorCode.THROTTLING_QUOTA_EXCEEDED, 1.0)
    assert rules.state is State.TERMINATED


def test_no_last_push_without_a_subscription() -> None:
    asking = ClientTelemetry(Random(1))
    asking.ask()
    for rules in (ClientTelemetry(Random(1)), asking, subscribed(requested_metrics=[])):
        assert not rules.close()
        assert rules.state is State.TERMINATED
        assert not rules.close()


@given(st.data())
def test_whatever_comes_the_states_are_kafkas(data: st.DataObject) -> None:
    """Every step is one of the table, a request is due again unless nothing follows, and no step raises."""
    rules = ClientTelemetry(Random(1))
    now = 0.0
    codes = st.sampled_from([0, 42, 76, 87, 89, 117, 118, 35, -1, 999])
    errors = st.sampled_from([NetworkException("x"), UnsupportedVersionException("x"), KafkaError("x")])
    for _ in range(data.draw(st.integers(1, 12))):
        before = rules.state
        if before is State.TERMINATED:
            break
        assert now <= rules.next_at < math.inf or rules.next_at == -math.inf
        now = max(now, rules.next_at)
        if before is State.SUBSCRIPTION_NEEDED:
            rules.ask()
            if data.draw(st.booleans()):
                wanted = data.draw(st.sampled_from([[], ["*"], ["org."]]))
                rules.answered(answer(error_code=data.draw(codes), requested_metrics=wanted), now)
            else:
                rules.failed(data.draw(errors), now)
        elif data.draw(st.integers(0, 9)) == 0:
            assert rules.close()
            rules.pushed(rules.push(), 10, data.draw(codes), now)
            assert rules.state is State.TERMINATED
        else:
            push = rules.push()
            if data.draw(st.booleans()):
                rules.pushed(push, 10, data.draw(codes), now)
            else:
                rules.failed(data.draw(errors), now)
        assert rules.state in (State.SUBSCRIPTION_NEEDED, State.PUSH_NEEDED, State.TERMINATED)


def test_the_table_is_kafkas() -> None:
    assert set(NEXT) == set(TelemetryState)
    assert all(State.TERMINATED in following for state, following in NEXT.items() if state is not State.TERMINATED)
    assert NEXT[State.TERMINATED] == frozenset()
