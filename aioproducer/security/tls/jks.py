"""Reads key stores in Java's own format, JKS, by Java's rules (``sun.security.provider.JavaKeyStore``).

A file is a sequence of entries, private keys with their certificates and trusted certificates, and a SHA-1 digest over
the password and all that comes before. Each private key is encrypted with a password by Sun's own algorithm
(``KeyProtector``), which is weak: the file's permissions are what protects it. No library that reads it is maintained.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass
from typing import Final

MAGIC: Final = b"\xfe\xed\xfe\xed"

_PRIVATE_KEY = 1
_TRUSTED = 2
_DIGEST_SIZE = 20
_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
"""The object identifier of Sun's algorithm, 1.3.6.1.4.1.42.2.17.1.1, in DER."""


class NotReadable(ValueError):
    """The store is damaged, or of a kind that is not supported."""


class WrongPassword(ValueError):
    """The password is not that of the store, or the store was changed without it."""


@dataclass(frozen=True, slots=True)
class JksKey:
    """A private key, still encrypted, and its certificate chain, the key's own first (X.509 in DER)."""

    alias: str
    encrypted: bytes
    chain: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"JksKey({self.alias!r})"


@dataclass(frozen=True, slots=True)
class JksStore:
    """The entries of a file, in its order."""

    keys: tuple[JksKey, ...]
    trusted: tuple[bytes, ...]


def read_jks(data: bytes, password: str | None) -> JksStore:
    """The store in ``data``. Without a password its digest is not verified, as in Java.

    Raises :class:`NotReadable` or :class:`WrongPassword`.
    """
    if not data.startswith(MAGIC) or len(data) < 12 + _DIGEST_SIZE:
        raise NotReadable("it is no JKS file")
    body, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if password is not None:
        # Java's own words, which every file is digested with.
        told = hashlib.sha1(_utf_16(password) + b"Mighty Aphrodite" + body, usedforsecurity=False).digest()
        if not hmac.compare_digest(told, digest):
            raise WrongPassword
    reader = _Reader(body)
    reader.take(4)
    if (version := reader.number()) not in (1, 2):
        raise NotReadable(f"its version is {version}, which is unknown")
    keys: list[JksKey] = []
    trusted: list[bytes] = []
    for _ in range(reader.number()):
        kind, alias = reader.number(), reader.text()
        reader.take(8)  # when it was added
        if kind == _PRIVATE_KEY:
            encrypted = reader.block()
            chain = tuple(reader.certificate(version) for _ in range(reader.number()))
            keys.append(JksKey(alias, encrypted, chain))
        elif kind == _TRUSTED:
            trusted.append(reader.certificate(version))
        else:
            raise NotReadable(f"it has an entry of the kind {kind}, which is unknown")
    if not reader.at_end:
        raise NotReadable("it goes on after its last entry")
    return JksStore(tuple(keys), tuple(trusted))


def decrypted(key: JksKey, password: str) -> bytes:
    """The private key (PKCS #8 in DER). Raises :class:`NotReadable` or :class:`WrongPassword`."""
    outer = _Reader(key.encrypted).der(0x30)
    algorithm, protected = outer.der(0x30), outer.der(0x04)
    if not algorithm.rest.startswith(_KEY_PROTECTOR):
        raise NotReadable(f"the key {key.alias!r} is encrypted by an unknown algorithm")
    whole = protected.rest
    if len(whole) <= 2 * _DIGEST_SIZE:
        raise NotReadable(f"the key {key.alias!r} is too short")
    salt, encrypted, told = whole[:_DIGEST_SIZE], whole[_DIGEST_SIZE:-_DIGEST_SIZE], whole[-_DIGEST_SIZE:]
    secret = _utf_16(password)
    pad, stream = salt, bytearray()
    while len(stream) < len(encrypted):
        pad = hashlib.sha1(secret + pad, usedforsecurity=False).digest()
        stream += pad
    plain = bytes(one ^ other for one, other in zip(encrypted, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), told):
        raise WrongPassword
    return plain


def _utf_16(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


class _Reader:
    """Takes parts of some bytes, never more than there are."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    @property
    def rest(self) -> bytes:
        return self._data[self._at :]

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise NotReadable("it ends too early")
        part, self._at = self._data[self._at : end], end
        return part

    def number(self) -> int:
        (found,) = struct.unpack(">I", self.take(4))
        return int(found)

    def block(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        (size,) = struct.unpack(">H", self.take(2))
        return self.take(size).decode("utf-8", "replace")

    def certificate(self, version: int) -> bytes:
        kind = self.text() if version == 2 else "X.509"
        if kind != "X.509":
            raise NotReadable(f"it has a certificate of the kind {kind!r}, which is unknown")
        return self.block()

    def der(self, tag: int) -> _Reader:
        """The content of the next element, which must have this tag."""
        found, size = self.take(2)
        if found != tag:
            raise NotReadable("a key in it is not encoded in DER")
        if size & 0x80:
            size = int.from_bytes(self.take(min(size & 0x7F, 5)))
        return _Reader(self.take(size))
