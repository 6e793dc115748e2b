"""Reads PKCS #12 key stores, with the library cryptography."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioproducer.errors import ConfigException

if TYPE_CHECKING:
    from cryptography.x509 import Certificate


@dataclass(frozen=True, slots=True)
class Pkcs12Store:
    """``key`` is in PKCS #8, ``chain`` has its certificates, its own first; ``trusted`` has all others (all in DER)."""

    alias: str
    key: bytes | None
    chain: tuple[bytes, ...]
    trusted: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"Pkcs12Store({self.alias!r})"


def read_pkcs12(data: bytes, password: str | None) -> Pkcs12Store:
    """The store in ``data``. Raises ValueError if it cannot be read with this password, and :class:`ConfigException`
    without the library."""
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ImportError as missing:
        raise ConfigException(
            "PKCS12 stores need the library cryptography: pip install 'aioproducer[keystore]'", name="ssl.keystore.type"
        ) from missing
    store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    others = [found.certificate for found in store.additional_certs]
    key, alias = None, ""
    chain: list[Certificate] = []
    if store.key is not None:
        key = store.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    if store.cert is not None:
        alias = (store.cert.friendly_name or b"").decode("utf-8", "replace")
        chain = list(_chain(store.cert.certificate, others))
    trusted = [other for other in others if other not in chain]
    return Pkcs12Store(
        alias,
        key,
        tuple(found.public_bytes(Encoding.DER) for found in chain),
        tuple(found.public_bytes(Encoding.DER) for found in trusted),
    )


def _chain(certificate: Certificate, others: Iterable[Certificate]) -> Iterable[Certificate]:
    """The certificate and its issuers, as far as the store has them, in order."""
    by_subject = {other.subject: other for other in others}
    found: Certificate | None = certificate
    while found is not None:
        yield found
        found = by_subject.pop(found.issuer, None)
