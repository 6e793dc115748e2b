"""Reads the claims of a JWT, unverified: for messages, and for the time when to renew a token."""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Mapping
from typing import Any

from aioproducer.errors.printable import printable

LONGEST = 1 << 20
"""Characters of a token that are read."""

_SHOWN = 200
"""Characters of a claim in a message."""


def unverified_claims(token: str) -> Mapping[str, Any]:
    """The claims of a JWT; none if the token is not a JWT."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > LONGEST:
        return {}
    import json  # its 2 ms are for those who use tokens

    try:
        claims = json.loads(decoded(parts[1]))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def decoded(part: str) -> bytes:
    """A part of a JWT, which is in base64url without padding. Raises ValueError."""
    return base64.b64decode(part + "=" * (-len(part) % 4), altchars="-_", validate=True)


def expiry(claims: Mapping[str, Any]) -> float | None:
    """The POSIX time after which the token is invalid; None if it says none."""
    return number(claims.get("exp"))


def number(value: object) -> float | None:
    """The value if it is a number that a time can be."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def text(claims: Mapping[str, Any], name: str) -> str:
    """A claim that is a string; empty if there is no such claim."""
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def shown(value: object) -> str:
    """A claim for a message."""
    found = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    found = printable(found[:_SHOWN]) + ("…" if len(found) > _SHOWN else "")
    return repr(found)


def moment(when: float, now: float) -> str:
    """A POSIX time for a message, with how far it is from ``now``."""
    try:
        written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    except (OverflowError, ValueError, OSError):
        written = f"{when:g} (POSIX time)"
    distance = abs(when - now)
    return f"{written}, {distance:.0f} s {'ago' if when < now else 'from now'}"
