from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer import OAuthBearerToken
from aioproducer.broker.security.oauth_bearer_server import OAuthBearerSaslServer
from aioproducer.broker.security.token_validators import TokenRefused, ValidToken
from aioproducer.errors import SaslAuthenticationException
from aioproducer.net.security.sasl_clients import sasl_client

NOW = 1000.0


class Validator:
    """Knows one token."""

    def __init__(self, scope: str | None = None) -> None:
        self._scope = scope

    def validate(self, token: str, now: float) -> ValidToken:
        if token != "right":
            raise TokenRefused("it is wrong", self._scope)
        return ValidToken("alice", now + 60)

    def claimed(self, token: str) -> str:
        return "mallory"


def server(validator: Any = None) -> OAuthBearerSaslServer:
    return OAuthBearerSaslServer(validator or Validator(), lambda: NOW)


def test_a_valid_token() -> None:
    exchange = server()
    client = sasl_client(OAuthBearerToken("right", extensions={"traceId": "7"}), "broker")
    assert client.evaluate_challenge(exchange.evaluate_response(client.initial_response())) is None
    assert (exchange.is_complete, exchange.user, exchange.lifetime) == (True, "alice", 60)


@pytest.mark.parametrize(
    ("scope", "answer"),
    [(None, {"status": "invalid_token"}), ("produce", {"status": "insufficient_scope", "scope": "produce"})],
)
def test_a_refused_token_has_two_steps(scope: str | None, answer: dict[str, str]) -> None:
    exchange = server(Validator(scope))
    client = sasl_client(OAuthBearerToken("wrong"), "broker")
    challenge = exchange.evaluate_response(client.initial_response())
    assert json.loads(challenge) == answer
    assert not exchange.is_complete
    noted = client.evaluate_challenge(challenge)
    assert noted is not None
    with pytest.raises(SaslAuthenticationException, match=answer["status"]):
        exchange.evaluate_response(noted)
    assert (exchange.user, exchange.why, exchange.is_complete) == ("mallory", ": it is wrong", False)


def test_no_second_token_in_one_exchange() -> None:
    exchange = server()
    exchange.evaluate_response(sasl_client(OAuthBearerToken("wrong"), "broker").initial_response())
    with pytest.raises(SaslAuthenticationException):
        exchange.evaluate_response(sasl_client(OAuthBearerToken("right"), "broker").initial_response())
    assert not exchange.is_complete


def test_an_authorization_id_other_than_the_principal_is_refused() -> None:
    right = server()
    right.evaluate_response(b"n,a=alice,\1auth=Bearer right\1\1")
    assert right.is_complete
    other = server()
    with pytest.raises(SaslAuthenticationException, match="differs from the principal"):
        other.evaluate_response(b"n,a=bob,\1auth=Bearer right\1\1")
    assert not other.is_complete


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\1",
        b"\xff",
        b"n,,\1\1",
        b"n,,\1auth=Bearer right\1",
        b"n,,\1auth=Basic right\1\1",
        b"n,,\1auth=Bearer\1\1",
        b"n,,\1auth=Bearer right right\1\1",
        b"n,,\1auth=Bearer right\1x\1\1",
        b"y,,\1auth=Bearer right\1\1",
        b"n,,\1other=Bearer right\1\1",
    ],
)
def test_an_invalid_first_message_is_refused(message: bytes) -> None:
    exchange = server()
    with pytest.raises(SaslAuthenticationException, match="no first message"):
        exchange.evaluate_response(message)
    assert not exchange.is_complete


def test_a_message_that_is_too_long_is_not_read() -> None:
    exchange = server()
    with pytest.raises(SaslAuthenticationException, match="65536 bytes at most"):
        exchange.evaluate_response(b"n,,\1auth=Bearer right\1" + b"a=b\1" * 20_000 + b"\1")
    assert not exchange.is_complete
    fits = b"n,,\1auth=Bearer right\1" + b"a=b\1" * 16_000 + b"\1"
    exchange.evaluate_response(fits)
    assert exchange.is_complete


@given(st.binary(max_size=200) | st.from_regex(rb"n,.*,\x01auth=Bearer .*\x01\x01", fullmatch=True))
def test_any_bytes_are_answered_or_refused(message: bytes) -> None:
    exchange = server()
    try:
        exchange.evaluate_response(message)
    except SaslAuthenticationException:
        assert not exchange.is_complete
