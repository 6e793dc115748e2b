"""Validates tokens and names their owners: Kafka's ``BrokerJwtValidator``, and one for unsecured tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aioproducer.broker.security.jwks import VerificationKey
from aioproducer.errors import ConfigException
from aioproducer.errors.printable import printable
from aioproducer.security.oauth.claims import decoded, number, text, unverified_claims
from aioproducer.security.oauth.libraries import pyjwt

MOST_TRIED = 10
"""Keys that a token without a key's id is verified with."""

_JAAS = "sasl.jaas.config"
_PREFIX = "unsecuredValidator"


class TokenRefused(Exception):
    """Why a token is not valid, for the broker's log; ``scope`` is the missing one, which the client may know."""

    def __init__(self, why: str, scope: str | None = None) -> None:
        super().__init__(why)
        self.scope = scope


@dataclass(frozen=True, slots=True)
class ValidToken:
    """``expires_at`` is POSIX time."""

    principal: str
    expires_at: float


class TokenValidator(Protocol):
    """Of one listener."""

    def validate(self, token: str, now: float) -> ValidToken:
        """``now`` is POSIX time. Raises :class:`TokenRefused`."""

    def claimed(self, token: str) -> str:
        """Whose token it claims to be, for the log."""


@dataclass(frozen=True, slots=True)
class SignedTokenValidator:
    """Of tokens that an identity provider has signed; ``candidates(kid, algorithm)`` returns the keys to try."""

    candidates: Callable[[str | None, str], Sequence[VerificationKey]]
    issuer: str | None = None
    audiences: Sequence[str] = ()
    clock_skew: float = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"

    def validate(self, token: str, now: float) -> ValidToken:
        claims = self._verified(token)
        expires_at, issued_at, not_before = (_time(claims, name) for name in ("exp", "iat", "nbf"))
        if expires_at is None or issued_at is None:
            raise TokenRefused("it has no exp or no iat")
        if expires_at + self.clock_skew <= now:
            raise TokenRefused(f"it expired {now - expires_at:.0f} s ago")
        if max(issued_at, not_before or 0) - self.clock_skew > now:
            raise TokenRefused("it is not valid yet")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise TokenRefused("its issuer is not the expected one (sasl.oauthbearer.expected.issuer)")
        self._check_audience(claims.get("aud"))
        _scopes(claims.get(self.scope_claim))
        principal = text(claims, self.subject_claim).strip()
        if not principal:
            raise TokenRefused(f"it has no claim {self.subject_claim}")
        return ValidToken(principal, expires_at)

    def claimed(self, token: str) -> str:
        return text(unverified_claims(token), self.subject_claim)

    def _verified(self, token: str) -> Mapping[str, Any]:
        """The claims, if a key has signed them. All checks of claims are :meth:`validate`'s."""
        library = pyjwt()
        try:
            header = library.get_unverified_header(token)
            kid, algorithm = header.get("kid"), header.get("alg")
            keys = self.candidates(kid, algorithm if isinstance(algorithm, str) else "")[:MOST_TRIED]
            for key in keys:
                try:
                    claims: Mapping[str, Any] = library.decode(
                        token, key.key, [algorithm], options={"verify_signature": True, **_UNCHECKED}
                    )
                    return claims
                except library.InvalidSignatureError:
                    pass
        except (library.PyJWTError, RecursionError, ValueError, TypeError) as error:
            raise TokenRefused(f"it is no JWT that can be verified: {printable(str(error)[:200])}") from None
        raise TokenRefused("no known key has signed it" if keys else "its key is unknown")

    def _check_audience(self, audience: object) -> None:
        """As in Kafka, a token for some audience needs one to be expected."""
        found = [audience] if isinstance(audience, str) else audience if isinstance(audience, list) else []
        if (self.audiences or found) and not any(one in self.audiences for one in found):
            raise TokenRefused("its audience is not an expected one (sasl.oauthbearer.expected.audience)")


_UNCHECKED = {f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")}


class UnsecuredTokenValidator:
    """Of unsigned tokens, for tests: Kafka's ``OAuthBearerUnsecuredValidatorCallbackHandler``.

    Raises :class:`ConfigException` for options that are none.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        known = {f"{_PREFIX}{name}" for name in ("PrincipalClaimName", "ScopeClaimName", "RequiredScope")}
        skew = f"{_PREFIX}AllowableClockSkewMs"
        for name in options:
            if name.startswith(_PREFIX) and name not in known | {skew}:
                raise ConfigException(f"config {_JAAS!r}: it has an unknown option {name}", name=_JAAS)
        self._principal = options.get(f"{_PREFIX}PrincipalClaimName") or "sub"
        self._scope = options.get(f"{_PREFIX}ScopeClaimName") or "scope"
        self._required = (options.get(f"{_PREFIX}RequiredScope") or "").split()
        text = options.get(skew) or "0"
        if not text.isdecimal():
            raise ConfigException(f"config {_JAAS!r}: the option {skew} is no number", name=_JAAS)
        self._skew = int(text[:10]) / 1000

    def validate(self, token: str, now: float) -> ValidToken:
        _check_unsecured(token)
        claims = unverified_claims(token)
        expires_at, issued_at = _time(claims, "exp"), _time(claims, "iat")
        if expires_at is None:
            raise TokenRefused("it has no exp")
        if expires_at + self._skew <= now:
            raise TokenRefused(f"it expired {now - expires_at:.0f} s ago")
        if issued_at is not None and (issued_at - self._skew > now or issued_at >= expires_at):
            raise TokenRefused("it is issued in the future, or after its end")
        principal = text(claims, self._principal)
        if not principal:
            raise TokenRefused(f"it has no claim {self._principal}")
        granted = _scopes(claims.get(self._scope))
        if any(one not in granted for one in self._required):
            raise TokenRefused("it lacks a required scope", " ".join(self._required))
        return ValidToken(principal, expires_at)

    def claimed(self, token: str) -> str:
        return text(unverified_claims(token), self._principal)


def _check_unsecured(token: str) -> None:
    parts = token.split(".")
    try:
        header = json.loads(decoded(parts[0]))
    except (ValueError, RecursionError):
        header = None
    if len(parts) != 3 or parts[2] or not isinstance(header, dict) or header.get("alg") != "none":
        raise TokenRefused("it is no JWT without a signature")


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    if name in claims and number(claims[name]) is None:
        raise TokenRefused(f"its {name} is no time")
    return number(claims.get(name))


def _scopes(claim: object) -> list[str]:
    if isinstance(claim, str):
        return claim.split()
    if claim is None:
        return []
    if not isinstance(claim, list) or not all(isinstance(one, str) and one.strip() for one in claim):
        raise TokenRefused("its scope is no list of words")
    return claim
