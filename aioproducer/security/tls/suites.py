"""Protocols and cipher suites, by Java's names: ``ssl.protocol``, ``ssl.enabled.protocols``, ``ssl.cipher.suites``.

Java has IANA's names (``TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256``), OpenSSL has its own (``ECDHE-RSA-AES128-GCM-SHA256``)
except for TLS 1.3. Either may be given.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from aioproducer.security.tls.settings import TlsSettings, refused

PROTOCOLS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
INSECURE: Final = ("TLSv1", "TLSv1.1", "SSLv2Hello", "SSLv3")
"""Protocols that may be named, as in many a file, and are never used: nor does Java 17 use them (RFC 8996)."""

_PROTOCOL = "ssl.protocol"
_ENABLED = "ssl.enabled.protocols"
_SUITES = "ssl.cipher.suites"

_IANA = re.compile(r"(?:TLS|SSL)_(?P<exchange>[A-Za-z0-9_]+?)_WITH_(?P<cipher>[A-Z0-9_]+)")
_OF_TLS_1_3 = re.compile(r"TLS_(AES|CHACHA20)_[A-Z0-9_]+")


class CheckingObject(ssl.SSLObject):
    """A connection that ends its handshake with an error if the suite is none of those allowed.

    Python cannot choose among the suites of TLS 1.3, so the other side might choose another one.
    """

    def do_handshake(self) -> None:
        super().do_handshake()
        allowed = getattr(self.context, "allowed_suites", None)
        cipher = self.cipher()
        if allowed is not None and cipher is not None and cipher[0] not in allowed:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, f"the handshake led to {cipher[0]}, which is not one of {_SUITES}")


def restrict(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Limits a context to the protocols and suites of the configs. Raises :class:`ConfigException`."""
    enabled = set(settings.ssl_enabled_protocols) & PROTOCOLS.keys()
    if settings.ssl_protocol == "TLSv1.2":
        enabled.discard("TLSv1.3")
        if not enabled:
            raise refused(_PROTOCOL, f"it is TLSv1.2, but {_ENABLED} has nothing up to that: set TLSv1.3")
    if not enabled:
        given = ", ".join(settings.ssl_enabled_protocols) or "empty"
        raise refused(_ENABLED, f"it is {given}, and only TLSv1.2 and TLSv1.3 are secure: add one")
    if settings.ssl_cipher_suites:
        enabled = _restrict_suites(context, settings.ssl_cipher_suites, enabled)
    versions = sorted(PROTOCOLS[name] for name in enabled)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def _restrict_suites(context: ssl.SSLContext, suites: Iterable[str], enabled: set[str]) -> set[str]:
    """Returns the protocols that have one of the suites."""
    names = [openssl_name(suite) for suite in suites]
    of_protocol = {"TLSv1.3": [name for name in names if _OF_TLS_1_3.fullmatch(name)]}
    of_protocol["TLSv1.2"] = [name for name in names if name not in of_protocol["TLSv1.3"]]
    possible = {protocol for protocol in enabled if of_protocol[protocol]}
    if not possible:
        raise refused(_SUITES, f"none of them is of a protocol in use, {', '.join(sorted(enabled))}: see {_ENABLED}")
    if "TLSv1.2" in possible:
        try:
            context.set_ciphers(":".join(of_protocol["TLSv1.2"]))
        except ssl.SSLError:
            raise refused(_SUITES, "OpenSSL considers none of them secure here") from None
    wanted: Any = context
    wanted.sslobject_class, wanted.allowed_suites = _checking(context.sslobject_class), frozenset(names)
    return possible


def _checking(object_class: Any) -> type[ssl.SSLObject]:
    return object_class if issubclass(object_class, CheckingObject) else CheckingObject


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a suite. Raises :class:`ConfigException` for one that it does not have."""
    known = _known()
    name = suite if suite in known else _translated(suite)
    if name in known:
        return name
    import difflib

    near = difflib.get_close_matches(suite, _java_names(known), n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise refused(_SUITES, f"{suite!r} is no cipher suite that OpenSSL has here{hint}")


def _translated(suite: str) -> str | None:
    parts = _IANA.fullmatch(suite)
    if parts is None:
        return None
    exchange, cipher = parts["exchange"].replace("_", "-"), parts["cipher"]
    if exchange == "RSA":
        exchange = ""  # OpenSSL's default
    if cipher == "3DES_EDE_CBC_SHA":
        cipher = "DES-CBC3-SHA"
    elif cipher.startswith("CHACHA20_POLY1305"):
        cipher = "CHACHA20-POLY1305"
    else:
        cipher = cipher.replace("AES_", "AES").replace("_CBC_", "_").replace("CCM_8", "CCM8").replace("_", "-")
    return f"{exchange}-{cipher}" if exchange else cipher


@cache
def _known() -> frozenset[str]:
    """OpenSSL's names of all that it has."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    return frozenset(cipher["name"] for cipher in context.get_ciphers())


def _java_names(known: frozenset[str]) -> list[str]:
    """What is near to a name that is wrong: the names of TLS 1.3, and the most common ones before."""
    common = [
        f"TLS_{exchange}_WITH_{cipher}"
        for exchange in ("ECDHE_RSA", "ECDHE_ECDSA", "DHE_RSA", "RSA")
        for cipher in ("AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256", "AES_128_CBC_SHA256")
    ]
    return sorted(known) + [name for name in common if _translated(name) in known]
