"""Errors of the Kerberos library, in plain words."""

from __future__ import annotations

from typing import Any, Final

from aioproducer.errors import KafkaError, SaslAuthenticationException, TokenUnavailableException

_CLIENT_UNKNOWN: Final = -1765328378
_SERVER_UNKNOWN: Final = -1765328377
_PREAUTH_FAILED: Final = -1765328360
_BAD_INTEGRITY: Final = -1765328353
_EXPIRED: Final = -1765328352
_SKEW: Final = -1765328347
_NOT_CONFIGURED: Final = (-1765328230, -1765328164, -1765328160)  # no KDC of the realm, or no realm
_CANNOT_REACH: Final = -1765328228
_NO_CACHE: Final = (-1765328243, -1765328189, -1765328195)
_NO_KEY: Final = -1765328203

_NO_TICKET = "there is no ticket: get one with kinit, or name a keytab in sasl.jaas.config"
_ADVICE: Final = {
    _CLIENT_UNKNOWN: "the KDC does not know this principal: see principal in sasl.jaas.config",
    _PREAUTH_FAILED: "the KDC has another key: the keytab is old",
    _BAD_INTEGRITY: "the KDC has another key: the keytab is old",
    _EXPIRED: "the ticket has expired: get another one with kinit",
    _SKEW: "the clocks of this machine, the KDC and the broker differ too much (5 minutes): set them",
    _NO_KEY: "the keytab has no key of this principal",
    **dict.fromkeys(_NOT_CONFIGURED, "krb5.conf does not say where the KDC of this realm is"),
    **dict.fromkeys(_NO_CACHE, _NO_TICKET),
}


def explained(error: Any, doing: str, *, service: str = "", keytab: str | None = None) -> KafkaError:
    """A ``gssapi.exceptions.GSSError`` as an error of ours. ``doing`` says what failed.

    A :class:`TokenUnavailableException` if it makes sense to try again.
    """
    minor = int(getattr(error, "min_code", 0) or 0)
    code = minor - 2**32 if minor >= 2**31 else minor
    words = _words(error)
    if code == _CANNOT_REACH:
        return TokenUnavailableException(f"{doing}: {words}")
    advice = _ADVICE.get(code)
    if code == _SERVER_UNKNOWN:
        advice = (
            f"the KDC knows no {service}: does sasl.kerberos.service.name have the first part of the broker's"
            " principal, and is the broker's address (advertised.listeners) the host in it?"
        )
    elif keytab is not None and code in _NO_CACHE:
        advice = f"{keytab} is no keytab, or has no key of this principal"
    elif type(error).__name__ == "ExpiredCredentialsError":
        advice = _ADVICE[_EXPIRED]
    return SaslAuthenticationException(f"{doing}: {words}" if advice is None else f"{doing}: {words}; {advice}")


def _words(error: Any) -> str:
    """The most special one of the library's messages."""
    try:
        found = [*error.get_all_statuses(error.min_code, False), *error.get_all_statuses(error.maj_code, True)]
    except Exception:  # an error of which it has no message
        return str(error)
    return next((text for text in found if text and text != "Success"), str(error))
