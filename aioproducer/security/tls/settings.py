"""The ``ssl.`` configs that clients and brokers share, and what is wrong with one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from aioproducer.errors import ConfigException
from aioproducer.security.password import Password


class TlsSettings(Protocol):
    """Kafka's configs by their names in snake case."""

    @property
    def ssl_keystore_type(self) -> str | None: ...
    @property
    def ssl_keystore_location(self) -> str | None: ...
    @property
    def ssl_keystore_password(self) -> Password | None: ...
    @property
    def ssl_keystore_key(self) -> Password | None: ...
    @property
    def ssl_keystore_certificate_chain(self) -> Password | None: ...
    @property
    def ssl_key_password(self) -> Password | None: ...
    @property
    def ssl_truststore_type(self) -> str | None: ...
    @property
    def ssl_truststore_location(self) -> str | None: ...
    @property
    def ssl_truststore_password(self) -> Password | None: ...
    @property
    def ssl_truststore_certificates(self) -> Password | None: ...
    @property
    def ssl_protocol(self) -> str: ...
    @property
    def ssl_enabled_protocols(self) -> tuple[str, ...]: ...
    @property
    def ssl_cipher_suites(self) -> tuple[str, ...]: ...


def store_files(settings: TlsSettings) -> tuple[str, ...]:
    """The files that a context is made of."""
    stores = (settings.ssl_keystore_location, settings.ssl_truststore_location)
    return tuple(location for location in stores if location is not None)


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """One of the two stores, ``keystore`` or ``truststore``: a file of a type, with a password."""

    name: str
    type: str | None
    location: str | None
    password: Password | None

    def refused(self, part: str, why: str) -> ConfigException:
        """What is wrong with the config ``ssl.<name>.<part>``."""
        return refused(f"ssl.{self.name}.{part}", why)


def refused(config: str, why: str) -> ConfigException:
    return ConfigException(f"config {config!r}: {why}", name=config)
