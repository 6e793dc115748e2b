from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from aioproducer.broker.security.jwks import VerificationKey, parse_jwks
from aioproducer.broker.security.token_validators import SignedTokenValidator, TokenRefused, UnsecuredTokenValidator
from aioproducer.errors import ConfigException
from tests.security.oauth.test_token import a_jwt
from tests.support.security.identity_provider import AUDIENCE, ISSUER, KEY, SigningKey, claims

jwt = pytest.importorskip("jwt", reason="PyJWT is not installed")

OTHER = SigningKey("key-2")


def keys_of(*keys: SigningKey) -> Sequence[VerificationKey]:
    return parse_jwks(json.dumps({"keys": [key.jwk for key in keys]}).encode())


def validator(*keys: SigningKey, **more: Any) -> SignedTokenValidator:
    known = keys_of(*(keys or (KEY,)))

    def candidates(kid: str | None, algorithm: str) -> Sequence[VerificationKey]:
        return [key for key in known if algorithm in key.algorithms and kid in (None, key.kid)]

    return SignedTokenValidator(candidates, **{"issuer": ISSUER, "audiences": (AUDIENCE,), **more})


def _from_now(changed: dict[str, Any]) -> dict[str, Any]:
    """Times are given in seconds from now: from when the test runs, not from when it was collected."""
    return {
        name: time.time() + value if name in ("exp", "iat", "nbf") and isinstance(value, int) else value
        for name, value in changed.items()
    }


def test_a_valid_token() -> None:
    now = time.time()
    token = KEY.sign(claims(60))
    valid = validator().validate(token, now)
    assert valid.principal == "alice"
    assert valid.expires_at == pytest.approx(now + 60, abs=30)
    assert validator().claimed(token) == "alice"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"iss": "other"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"aud": "other"}, "audience"),
        ({"aud": ["other", 7]}, "audience"),
        ({"aud": None}, "audience"),
        ({"aud": 7}, "audience"),
        ({"sub": None}, "no claim sub"),
        ({"sub": " "}, "no claim sub"),
        ({"sub": 7}, "no claim sub"),
        ({"exp": None}, "no exp or no iat"),
        ({"iat": None}, "no exp or no iat"),
        ({"exp": "soon"}, "its exp is no time"),
        ({"exp": -60}, "it expired"),
        ({"iat": 3600}, "not valid yet"),
        ({"nbf": 3600}, "not valid yet"),
        ({"scope": 7}, "scope"),
        ({"scope": ["a", " "]}, "scope"),
    ],
)
def test_claims_that_are_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(TokenRefused, match=why):
        validator().validate(KEY.sign(claims(**_from_now(changed))), time.time())


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": -20},
        {"iat": 20},
        {"aud": ["x", AUDIENCE]},
        {"scope": ["a", "b"]},
        {"scope": None},
    ],
)
def test_claims_that_are_fine(changed: dict[str, Any]) -> None:
    validator(clock_skew=300).validate(KEY.sign(claims(**_from_now(changed))), time.time())


def test_a_token_for_somebody_needs_an_expected_audience_and_any_issuer_will_do_without_one() -> None:
    with pytest.raises(TokenRefused, match="audience"):
        validator(audiences=()).validate(KEY.sign(claims()), time.time())
    validator(audiences=(), issuer=None).validate(KEY.sign(claims(aud=None, iss="x")), time.time())


def test_the_principal_is_the_claim_that_is_configured() -> None:
    found = validator(subject_claim="azp").validate(KEY.sign(claims(azp="app")), time.time())
    assert found.principal == "app"


def test_a_token_signed_with_another_key_is_refused() -> None:
    forged = SigningKey(KEY.kid).sign(claims())
    with pytest.raises(TokenRefused, match="no known key has signed it"):
        validator().validate(forged, time.time())
    with pytest.raises(TokenRefused, match="its key is unknown"):
        validator().validate(OTHER.sign(claims()), time.time())
    assert validator(KEY, OTHER).validate(OTHER.sign(claims()), time.time()).principal == "alice"


def test_without_the_id_of_a_key_all_are_tried() -> None:
    unnamed = jwt.encode(claims(), OTHER._key, "RS256")
    assert validator(KEY, OTHER).validate(unnamed, time.time()).principal == "alice"


def part(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def test_a_public_key_is_no_password() -> None:
    """The old trick: the token is signed by HMAC, with the public key as the secret."""
    public = json.dumps(KEY.jwk).encode()
    signed = f"{part({'alg': 'HS256', 'kid': KEY.kid})}.{part(claims())}"
    signature = hmac.digest(public, signed.encode(), "sha256")
    forged = f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    with pytest.raises(TokenRefused, match="its key is unknown"):
        validator().validate(forged, time.time())


@pytest.mark.parametrize(
    "token",
    [
        "opaque",
        "a.b.c",
        "..",
        a_jwt(claims()),
        a_jwt(claims(), ""),
        f"{part({'alg': 'none', 'kid': KEY.kid})}.{part(claims())}.",
        f"{part({'alg': 'RS256', 'kid': KEY.kid})}.{part(claims())}.",
        f"{part({'alg': ['RS256'], 'kid': KEY.kid})}.{part(claims())}.c2ln",
        f"{part({'alg': 'RS256', 'kid': 7})}.{part(claims())}.c2ln",
        f"{part({'alg': 'RS256', 'kid': KEY.kid})}.{part([1])}.c2ln",
        f"{part([1])}.{part(claims())}.c2ln",
        "e" * 100_000,
        base64.urlsafe_b64encode(b"[" * 100_000).decode().rstrip("=") + ".e30.c2ln",
        KEY.sign(claims())[:-4],
        KEY.sign(claims()).replace(".", "..", 1),
    ],
    ids=lambda token: token[:20],
)
def test_a_token_that_is_no_valid_signed_jwt_is_refused(token: str) -> None:
    with pytest.raises(TokenRefused):
        validator().validate(token, time.time())


class TestUnsecured:
    NOW = 1000.0

    def token(self, **changed: Any) -> str:
        standard = {"sub": "alice", "iat": self.NOW, "exp": self.NOW + 60, "scope": "produce consume"}
        return a_jwt({name: value for name, value in {**standard, **changed}.items() if value is not None}, "")

    def test_a_valid_token(self) -> None:
        options = {"unsecuredValidatorRequiredScope": "produce", "unsecuredLoginStringClaim_sub": "broker"}
        found = UnsecuredTokenValidator(options).validate(self.token(), self.NOW)
        assert (found.principal, found.expires_at) == ("alice", self.NOW + 60)

    @pytest.mark.parametrize(
        ("changed", "why"),
        [
            ({"exp": None}, "no exp"),
            ({"exp": 999}, "it expired"),
            ({"iat": 1001}, "issued in the future"),
            ({"sub": None}, "no claim sub"),
            ({"scope": 7}, "scope"),
        ],
    )
    def test_claims_that_are_refused(self, changed: dict[str, Any], why: str) -> None:
        with pytest.raises(TokenRefused, match=why):
            UnsecuredTokenValidator({}).validate(self.token(**changed), self.NOW)

    def test_a_scope_that_is_missing_is_named(self) -> None:
        with pytest.raises(TokenRefused) as refused:
            UnsecuredTokenValidator({"unsecuredValidatorRequiredScope": "admin"}).validate(self.token(), self.NOW)
        assert refused.value.scope == "admin"

    def test_clocks_may_differ(self) -> None:
        options = {"unsecuredValidatorAllowableClockSkewMs": "5000", "unsecuredValidatorPrincipalClaimName": "azp"}
        found = UnsecuredTokenValidator(options).validate(self.token(exp=998, iat=900, azp="app"), self.NOW)
        assert found.principal == "app"

    @pytest.mark.parametrize("token", ["opaque", "a.b.", KEY.sign(claims())])
    def test_a_token_that_is_no_unsecured_jwt_is_refused(self, token: str) -> None:
        with pytest.raises(TokenRefused):
            UnsecuredTokenValidator({}).validate(token, self.NOW)

    @pytest.mark.parametrize("name", ["unsecuredValidatorX", "unsecuredValidatorAllowableClockSkewMs"])
    def test_options_that_are_none(self, name: str) -> None:
        with pytest.raises(ConfigException, match=name):
            UnsecuredTokenValidator({name: "-1"})
