"""Key stores and trust stores: PEM, and Java's PKCS12 and JKS.

As in Java, the types JKS and PKCS12 stand for either of these two; without a type, the file's first bytes decide. The
password of a store in one of Java's types is required for a key store. A trust store's may be left out for JKS, which
then goes unverified. ``ssl.key.password`` is the key's, which is the store's if it has none of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aioproducer.errors import ConfigException
from aioproducer.security.password import Password
from aioproducer.security.tls.jks import MAGIC, NotReadable, WrongPassword, decrypted, read_jks
from aioproducer.security.tls.pem import pem_of, pem_text
from aioproducer.security.tls.pkcs12 import Pkcs12Store, read_pkcs12
from aioproducer.security.tls.settings import StoreConfig, TlsSettings, refused

LARGEST_STORE: Final = 16 << 20
"""Bytes of a store that are read."""

PEM: Final = "PEM"
JKS: Final = "JKS"
PKCS12: Final = "PKCS12"

_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_KEY_PASSWORD = "ssl.key.password"


@dataclass(frozen=True, slots=True)
class KeyStore:
    """A private key and its certificates, the key's own first, in PEM; ``password`` decrypts the key."""

    pem: Password
    password: Password | None


def key_store(settings: TlsSettings) -> KeyStore | None:
    """The key store of the configs; None if they name none. Raises :class:`ConfigException`."""
    key, chain = settings.ssl_keystore_key, settings.ssl_keystore_certificate_chain
    config = StoreConfig(
        "keystore", settings.ssl_keystore_type, settings.ssl_keystore_location, settings.ssl_keystore_password
    )
    if config.location is not None and (key is not None or chain is not None):
        raise config.refused("location", "ssl.keystore.key is there, too: leave one of them out")
    if (key is None) != (chain is None):
        raise config.refused("key", "it goes with ssl.keystore.certificate.chain: one of them is missing")
    if key is not None and chain is not None:
        _check_text(config, "key")
        try:
            return KeyStore(Password(pem_text(chain.value) + pem_text(key.value)), settings.ssl_key_password)
        except ValueError as error:
            raise config.refused("key", f"no PEM that can be used: {error}") from None
    if config.location is None:
        for name, given in (("ssl.keystore.password", config.password), (_KEY_PASSWORD, settings.ssl_key_password)):
            if given is not None:
                raise refused(name, "there is no key store: ssl.keystore.location is missing")
        return None
    data, type = _read(config)
    if type == PEM:
        return KeyStore(_file_text(config, data), settings.ssl_key_password)
    if config.password is None:
        raise config.refused("password", f"it is missing: {config.location} is a {type} store, which has one")
    if type == JKS:
        return _of_jks(config, data, settings.ssl_key_password or config.password)
    if settings.ssl_key_password not in (None, config.password):
        raise refused(_KEY_PASSWORD, f"a PKCS12 store has one password, and {config.name} has another: leave it out")
    found = _pkcs12(config, data)
    if found.key is None or not found.chain:
        raise _no_key(config)
    return _in_pem(found.key, found.chain)


def trusted_certificates(settings: TlsSettings) -> str | bytes | None:
    """The authorities of the configs' trust store, as PEM text or as certificates in DER; None if they name none.

    Raises :class:`ConfigException`.
    """
    text = settings.ssl_truststore_certificates
    config = StoreConfig(
        "truststore", settings.ssl_truststore_type, settings.ssl_truststore_location, settings.ssl_truststore_password
    )
    if config.location is not None and text is not None:
        raise config.refused("certificates", "ssl.truststore.location is there, too: leave one of them out")
    if text is not None:
        _check_text(config, "certificates")
        try:
            return pem_text(text.value)
        except ValueError as error:
            raise config.refused("certificates", f"no PEM that can be used: {error}") from None
    if config.location is None:
        if config.password is not None:
            raise config.refused("password", "there is no trust store: ssl.truststore.location is missing")
        return None
    data, type = _read(config)
    if type == PEM:
        return _file_text(config, data).value
    if type == JKS:
        try:
            store = read_jks(data, None if config.password is None else config.password.value)
        except ValueError as error:
            raise _unreadable(config, error) from None
        # Java believes the owner of a key in a trust store, too.
        certificates = [*store.trusted, *(key.chain[0] for key in store.keys if key.chain)]
    else:
        found = _pkcs12(config, data)
        certificates = [*found.chain[:1], *found.trusted]
    if not certificates:
        raise config.refused("location", f"{config.location}: it has no certificate")
    return b"".join(certificates)


def _read(config: StoreConfig) -> tuple[bytes, str]:
    """The file and its type."""
    assert config.location is not None
    try:
        with Path(config.location).open("rb") as file:
            data = file.read(LARGEST_STORE + 1)
    except (OSError, ValueError) as error:
        raise config.refused("location", f"{config.location}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > LARGEST_STORE:
        raise config.refused("location", f"{config.location}: it is larger than {LARGEST_STORE} bytes")
    type = _type_of(config, data)
    asked = None if config.type is None else config.type.upper()
    if asked not in (None, JKS, PKCS12, PEM):
        raise config.refused("type", f"it is {config.type}, but must be one of {JKS}, {PKCS12}, {PEM}")
    if asked is not None and (asked == PEM) != (type == PEM):
        raise config.refused("type", f"it is {config.type}, but {config.location} is {type}: set {type}")
    if type == PEM and config.password is not None:
        key = "; a key's own is ssl.key.password" if config.name == "keystore" else ""
        raise config.refused("password", f"a PEM file has none{key}: leave it out")
    return data, type


def _type_of(config: StoreConfig, data: bytes) -> str:
    if data.startswith(MAGIC):
        return JKS
    if data.startswith(b"\x30"):
        return PKCS12
    if b"-----BEGIN " in data:
        return PEM
    where = f"{config.location}: it is neither PEM nor PKCS12 nor JKS"
    if data.startswith(_JCEKS_MAGIC):
        where += " but JCEKS: convert it with keytool -importkeystore -deststoretype PKCS12"
    raise config.refused("location", where)


def _check_text(config: StoreConfig, part: str) -> None:
    """Text is always in PEM, and never with a password for the whole."""
    if config.type is not None and config.type.upper() != PEM:
        raise config.refused("type", f"it is {config.type}, but ssl.{config.name}.{part} is PEM: set PEM")
    if config.password is not None:
        raise config.refused("password", f"ssl.{config.name}.{part} is PEM, which has none: leave it out")


def _file_text(config: StoreConfig, data: bytes) -> Password:
    try:
        return Password(pem_text(data.decode("ascii", "replace")))
    except ValueError as error:
        raise config.refused("location", f"{config.location}: no PEM that can be used: {error}") from None


def _of_jks(config: StoreConfig, data: bytes, key_password: Password) -> KeyStore:
    assert config.password is not None
    try:
        store = read_jks(data, config.password.value)
    except ValueError as error:
        raise _unreadable(config, error) from None
    keys = [key for key in store.keys if key.chain]
    if not keys:
        raise _no_key(config)
    if len(keys) > 1:
        names = ", ".join(key.alias for key in keys)
        raise config.refused("location", f"{config.location}: it has several keys, {names}: leave one in it")
    try:
        return _in_pem(decrypted(keys[0], key_password.value), keys[0].chain)
    except WrongPassword:
        raise refused(_KEY_PASSWORD, f"it is not that of the key {keys[0].alias!r} in {config.location}") from None
    except NotReadable as error:
        raise _unreadable(config, error) from None


def _pkcs12(config: StoreConfig, data: bytes) -> Pkcs12Store:
    try:
        return read_pkcs12(data, None if config.password is None else config.password.value)
    except ConfigException:
        raise
    except Exception as error:  # whatever the library finds in a damaged file
        raise _unreadable(config, error) from None


def _in_pem(key: bytes, chain: tuple[bytes, ...]) -> KeyStore:
    blocks = [*(pem_of("CERTIFICATE", certificate) for certificate in chain), pem_of("PRIVATE KEY", key)]
    return KeyStore(Password("".join(blocks)), None)


def _unreadable(config: StoreConfig, error: Exception) -> ConfigException:
    if isinstance(error, NotReadable):
        return config.refused("location", f"{config.location}: {error}")
    if config.password is None:
        return config.refused("password", f"it is missing: {config.location} cannot be read without one")
    return config.refused("password", f"it is not that of {config.location}, or the file is damaged")


def _no_key(config: StoreConfig) -> ConfigException:
    return config.refused("location", f"{config.location}: it has no private key with a certificate")
