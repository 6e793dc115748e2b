"""A token of SASL OAUTHBEARER."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from aioproducer.security.oauth.claims import expiry, moment, number, shown, unverified_claims

_VALUE = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7E \t\r\n]+")


@dataclass(frozen=True, slots=True)
class OAuthBearerToken:
    """What a token provider returns (the config ``sasl.oauth.token.provider``).

    ``value`` is the secret that the broker gets; no ``repr`` shows it. ``expires_at`` is the POSIX time in seconds
    after which it is invalid; if it is None, the token's own ``exp`` claim counts. A token without either is used for
    one authentication only. ``principal`` names the client in messages. ``extensions`` are sent with the token
    (KIP-342). Raises ValueError for what cannot be sent.
    """

    value: str = field(repr=False)
    expires_at: float | None = None
    principal: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _VALUE.fullmatch(self.value):
            raise ValueError("a token consists of letters, digits and -._~+/, with = at its end only")
        for name, value in self.extensions.items():
            if not _EXTENSION_NAME.fullmatch(name) or name == "auth":
                raise ValueError(f"the name of an extension consists of letters, and is not auth: {name!r}")
            if not _EXTENSION_VALUE.fullmatch(value):
                raise ValueError(f"the value of the extension {name} is empty, or has characters that cannot be sent")
        if self.expires_at is not None and number(self.expires_at) is None:
            raise ValueError(
                "expires_at is a POSIX time in seconds, a finite int or float (of a datetime, its timestamp()): it is "
                f"{type(self.expires_at).__name__} {shown(self.expires_at)}"
            )
        if self.expires_at is None:
            object.__setattr__(self, "expires_at", expiry(unverified_claims(self.value)))

    def described(self, now: float) -> str:
        """Its issuer, audience and expiry in words, for the error if a broker refuses it. ``now`` is POSIX time."""
        claims = unverified_claims(self.value)
        facts = []
        if claims:
            facts.append(f"issuer {shown(claims['iss'])}" if "iss" in claims else "no issuer")
            facts.append(f"audience {shown(claims['aud'])}" if "aud" in claims else "no audience")
        else:
            facts.append("not a JWT")
        own = expiry(claims)
        ends = self.expires_at if own is None else own
        if ends is None:
            facts.append("no expiry")
        else:
            facts.append(f"{'expired' if ends <= now else 'expires'} {moment(ends, now)}")
        return ", ".join(facts)
