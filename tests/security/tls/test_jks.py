"""Stores in Java's own format that are damaged or hostile. ``test_stores.py`` has those that keytool makes."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.security.tls.jks import MAGIC, JksKey, NotReadable, WrongPassword, decrypted, read_jks


def sealed(body: bytes, password: str = "secret") -> bytes:
    return body + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode()


def block(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def entry(kind: int, alias: str, rest: bytes) -> bytes:
    return struct.pack(">I", kind) + text(alias) + bytes(8) + rest


def certificate(der: bytes, kind: str = "X.509") -> bytes:
    return text(kind) + block(der)


def store(*entries: bytes, version: int = 2) -> bytes:
    return MAGIC + struct.pack(">II", version, len(entries)) + b"".join(entries)


ENTRIES = (
    entry(2, "authority", certificate(b"trusted")),
    entry(1, "mykey", block(b"encrypted") + struct.pack(">I", 2) + certificate(b"own") + certificate(b"issuer")),
)


def test_entries() -> None:
    found = read_jks(sealed(store(*ENTRIES)), "secret")
    assert found.trusted == (b"trusted",)
    assert found.keys == (JksKey("mykey", b"encrypted", (b"own", b"issuer")),)
    assert "encrypted" not in repr(found)
    old = store(entry(2, "authority", block(b"trusted")), version=1)
    assert read_jks(sealed(old), None).trusted == (b"trusted",)


def test_the_digest_is_that_of_the_password_and_the_content() -> None:
    whole = sealed(store(*ENTRIES), "secret")
    with pytest.raises(WrongPassword):
        read_jks(whole, "other")
    with pytest.raises(WrongPassword):
        read_jks(whole[:20] + b"x" + whole[21:], "secret")
    assert read_jks(sealed(store(*ENTRIES), "päss\U0001f511"), "päss\U0001f511").keys


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no JKS file"),
        (MAGIC, "no JKS file"),
        (store(version=3), "its version is 3"),
        (store(entry(7, "x", b"")), "an entry of the kind 7"),
        (store(entry(2, "x", certificate(b"", "PGP"))), "a certificate of the kind 'PGP'"),
        (store(*ENTRIES) + b"x", "it goes on after its last entry"),
        (MAGIC + struct.pack(">II", 2, 2**32 - 1), "it ends too early"),
        (store(entry(1, "x", struct.pack(">I", 2**32 - 1))), "it ends too early"),
        (store(entry(1, "x", block(b"") + struct.pack(">I", 2**32 - 1))), "it ends too early"),
    ],
)
def test_an_unreadable_store_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(NotReadable, match=message):
        read_jks(sealed(body), "secret")


@given(st.data())
def test_a_damaged_store_is_read_or_refused(data: st.DataObject) -> None:
    body = bytearray(store(*ENTRIES))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(body[: data.draw(st.integers(0, len(body)))])
    try:
        read_jks(sealed(cut), "secret")
    except (NotReadable, WrongPassword):
        pass


def protected(key: bytes, password: str = "secret", algorithm: str = "060a2b060104012a021101010500") -> bytes:
    """A key encrypted as Java does."""
    secret, pad, stream = password.encode("utf-16-be"), bytes(range(20)), b""
    while len(stream) < len(key):
        pad = hashlib.sha1(secret + pad).digest()
        stream += pad
    hidden = bytes(range(20)) + bytes(a ^ b for a, b in zip(key, stream, strict=False))
    hidden += hashlib.sha1(secret + key).digest()

    def element(tag: int, content: bytes) -> bytes:
        return bytes([tag, 0x82]) + struct.pack(">H", len(content)) + content

    return element(0x30, element(0x30, bytes.fromhex(algorithm)) + element(0x04, hidden))


class TestKeys:
    @pytest.mark.parametrize("size", [1, 20, 21, 1200])
    def test_a_key(self, size: int) -> None:
        key = JksKey("k", protected(b"x" * size), ())
        assert decrypted(key, "secret") == b"x" * size
        with pytest.raises(WrongPassword):
            decrypted(key, "other")

    @pytest.mark.parametrize(
        ("encrypted", "message"),
        [
            (b"", "ends too early"),
            (b"\x30\x85\x01\x01\x01\x01\x01", "ends too early"),
            (b"\x31\x00", "not encoded in DER"),
            (b"\x30\x04\x30\x00\x04\x00", "an unknown algorithm"),
            (protected(b"x", algorithm="06092a864886f70d01050d0500"), "an unknown algorithm"),
            (protected(b""), "is too short"),
        ],
    )
    def test_damaged_ones(self, encrypted: bytes, message: str) -> None:
        with pytest.raises(NotReadable, match=message):
            decrypted(JksKey("k", encrypted, ()), "secret")

    @given(st.binary(max_size=200))
    def test_a_damaged_key_is_refused(self, data: bytes) -> None:
        with pytest.raises((NotReadable, WrongPassword)):
            decrypted(JksKey("k", data, ()), "secret")
