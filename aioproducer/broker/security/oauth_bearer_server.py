"""The server's half of OAUTHBEARER (RFC 7628): Kafka's ``OAuthBearerSaslServer``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from aioproducer.broker.security.token_validators import TokenRefused, TokenValidator
from aioproducer.errors import SaslAuthenticationException

LONGEST = 1 << 16
"""Bytes of a first message. Anybody may send one, and reading it holds up the event loop. Tokens are far
shorter."""

_FIRST = re.compile(
    r"n,(?:a=(?P<authzid>(?:[^\x00=,]|=2C|=3D)+))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7E \t\r\n]+\x01)*)\x01"
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class OAuthBearerSaslServer:
    """A token in the clear. A refused one is answered with the reason as JSON; the exchange fails when the client has
    taken note of that."""

    def __init__(self, validator: TokenValidator, wall: Callable[[], float]) -> None:
        self._validator = validator
        self._wall = wall
        self._refusal: str | None = None
        self.user = ""
        self.is_complete = False
        self.lifetime: float | None = None
        self.why = ""

    def evaluate_response(self, token: bytes) -> bytes:
        if self._refusal is not None:
            raise SaslAuthenticationException(self._refusal)
        authzid, value = _first_message(token)
        self.user = self._validator.claimed(value)
        now = self._wall()
        try:
            valid = self._validator.validate(value, now)
        except TokenRefused as refused:
            self.why = f": {refused}"
            status = "invalid_token" if refused.scope is None else "insufficient_scope"
            scope = {} if refused.scope is None else {"scope": refused.scope}
            self._refusal = json.dumps({"status": status, **scope}, separators=(",", ":"))
            return self._refusal.encode()
        self.user = valid.principal
        if authzid not in ("", valid.principal):
            raise SaslAuthenticationException("the authorization identity differs from the principal of the token")
        self.lifetime = valid.expires_at - now
        self.is_complete = True
        return b""


def _first_message(token: bytes) -> tuple[str, str]:
    """The authorization id and the token. Extensions (KIP-342) are read, and have no effect."""
    if len(token) > LONGEST:
        raise SaslAuthenticationException(f"a first message of OAUTHBEARER has {LONGEST} bytes at most")
    try:
        found = _FIRST.fullmatch(token.decode())
    except UnicodeDecodeError:
        found = None
    pairs = [] if found is None else [pair.split("=", 1) for pair in found["pairs"].split("\1") if pair]
    auth = _AUTH.fullmatch(dict(pairs).get("auth", ""))
    if found is None or auth is None or auth["scheme"].lower() != "bearer":
        raise SaslAuthenticationException("this is no first message of OAUTHBEARER with a bearer token")
    return (found["authzid"] or "").replace("=2C", ",").replace("=3D", "="), auth["token"]
