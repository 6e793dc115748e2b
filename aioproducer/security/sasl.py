"""The SASL mechanisms that clients and the embedded broker support."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aioproducer.errors import ConfigException
from aioproducer.security.password import Password

PLAIN = "PLAIN"
SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER = "OAUTHBEARER"
PASSWORD_MECHANISMS = (PLAIN, *SCRAM_MECHANISMS)
GSSAPI = "GSSAPI"
MECHANISMS = (*PASSWORD_MECHANISMS, OAUTHBEARER)
"""Those of the embedded broker."""
CLIENT_MECHANISMS = (*MECHANISMS, GSSAPI)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client authenticates with: its name, its password and the mechanism."""

    mechanism: str
    username: str
    password: Password


def check_scram(credentials: Credentials) -> None:
    """Raises :class:`ConfigException` for a name or a password that SCRAM cannot have, and without its library."""
    library = scramp()
    from scramp.utils import saslprep

    texts = {"sasl.plain.username": credentials.username, "sasl.plain.password": credentials.password.value}
    for name, text in texts.items():
        try:
            saslprep(text)
        except library.ScramException:
            raise ConfigException(
                f"config {name!r}, or what sasl.jaas.config says for it, has characters that SCRAM forbids (RFC 4013), "
                "such as control characters: does the file that it comes from end with a newline?",
                name=name,
            ) from None


def scramp() -> Any:
    """The library that speaks SCRAM; a :class:`ConfigException` says how to get it."""
    try:
        import scramp
    except ImportError as missing:
        raise ConfigException(
            "SCRAM needs the library scramp: pip install 'aioproducer[sasl]'", name="sasl.mechanism"
        ) from missing
    return scramp
