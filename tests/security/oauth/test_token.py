from __future__ import annotations

import base64
import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from aioproducer import OAuthBearerToken
from aioproducer.security.oauth.claims import unverified_claims


def a_jwt(claims: Any, signature: str = "planted") -> str:
    parts = [json.dumps({"alg": "none"}), claims if isinstance(claims, str) else json.dumps(claims)]
    return ".".join([base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts] + [signature])


def test_the_expiry_is_that_of_the_jwt_if_no_other_is_given() -> None:
    assert OAuthBearerToken(a_jwt({"exp": 1000})).expires_at == 1000
    assert OAuthBearerToken(a_jwt({"exp": 1000}), 500).expires_at == 500
    assert OAuthBearerToken("opaque").expires_at is None


@pytest.mark.parametrize(
    "value", ["opaque", "a.b", "a.b.c", a_jwt("no json"), a_jwt([1]), a_jwt("9" * 5000), a_jwt("[" * 100_000), "é.é.é"]
)
def test_a_token_that_is_no_jwt_has_no_claims(value: str) -> None:
    assert unverified_claims(value) == {}


@pytest.mark.parametrize("expiry", ["soon", None, True, 1e400, 10**400, [1]])
def test_an_expiry_that_is_no_time_is_none(expiry: object) -> None:
    assert OAuthBearerToken(a_jwt({"exp": expiry})).expires_at is None


@pytest.mark.parametrize("expires_at", [datetime.now(UTC), Decimal(1000), "1000", math.nan, math.inf, True])
def test_an_expiry_that_is_given_must_be_a_time(expires_at: Any) -> None:
    with pytest.raises(ValueError, match="expires_at is a POSIX time in seconds, a finite int or float"):
        OAuthBearerToken("opaque", expires_at)


@pytest.mark.parametrize("value", ["", " ", "a b", "a\x01auth=b", "a\n", "ä", "=a"])
def test_a_value_that_cannot_be_sent(value: str) -> None:
    with pytest.raises(ValueError, match="a token consists of"):
        OAuthBearerToken(value)


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"a b": "x"}, {"": "x"}, {"a": ""}, {"a": "x\x01"}, {"a": "é"}])
def test_extensions_that_cannot_be_sent(extensions: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"of an extension|of the extension"):
        OAuthBearerToken("t", extensions=extensions)


def test_a_described_token_has_issuer_audience_and_expiry_and_no_secret() -> None:
    token = OAuthBearerToken(a_jwt({"iss": "https://a/b", "aud": ["kafka", "x\n"], "exp": 1_700_000_000}))
    assert token.described(1_700_000_010) == (
        r"issuer 'https://a/b', audience 'kafka, x\\n', expired 2023-11-14T22:13:20Z, 10 s ago"
    )
    assert token.described(1_699_999_990).endswith("expires 2023-11-14T22:13:20Z, 10 s from now")
    assert OAuthBearerToken("planted").described(0) == "not a JWT, no expiry"
    assert (
        OAuthBearerToken(a_jwt({"sub": "x", "exp": 1e300}))
        .described(0)
        .startswith("no issuer, no audience, expires 1e+300 (POSIX time)")
    )
    assert "planted" not in repr(token) + token.described(0)


def test_a_long_claim_is_cut() -> None:
    assert len(OAuthBearerToken(a_jwt({"iss": "x" * 10_000})).described(0)) < 300
