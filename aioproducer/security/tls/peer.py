"""The identity of the other side of a connection, by its certificate."""

from __future__ import annotations

import asyncio
import re

_SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_SPECIAL = re.compile(r'([,+"\\<>;=]|^[ #]| $)')


def certified_name(transport: asyncio.BaseTransport) -> str:
    """The subject of the other side's certificate, as in RFC 2253 (``CN=alice,O=Example``), which is Kafka's name for
    the user; empty without a certificate."""
    certificate = transport.get_extra_info("peercert")
    if not certificate:
        return ""
    names = ["+".join(_name(kind, value) for kind, value in parts) for parts in certificate["subject"]]
    return ",".join(reversed(names))


def _name(kind: str, value: str) -> str:
    return f"{_SHORT_NAMES.get(kind, kind)}=" + _SPECIAL.sub(r"\\\1", value)
