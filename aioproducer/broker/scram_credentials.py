"""What brokers know about SCRAM users: no password, and nothing with which one could log in."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
"""Kafka's limits for what AlterUserScramCredentials may set."""


class ScramMechanism(IntEnum):
    """As AlterUserScramCredentials numbers them (Kafka's class of this name)."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism(self) -> str:
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @staticmethod
    def of(mechanism: str) -> ScramMechanism:
        """By its SASL name. Raises ``ValueError``."""
        for each in ScramMechanism:
            if each.mechanism == mechanism:
                return each
        raise ValueError(f"{mechanism!r} is none of {', '.join(each.mechanism for each in ScramMechanism)}")


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What proves that somebody knows a password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @staticmethod
    def of_password(
        mechanism: ScramMechanism, password: str, iterations: int = MIN_ITERATIONS, salt: bytes | None = None
    ) -> ScramCredential:
        """Takes milliseconds: it is slow on purpose."""
        salt = secrets.token_bytes(16) if salt is None else salt
        salted = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
        return ScramCredential.of_salted(mechanism, salted, iterations, salt)

    @staticmethod
    def of_salted(mechanism: ScramMechanism, salted: bytes, iterations: int, salt: bytes) -> ScramCredential:
        """From a password that is already salted (RFC 5802, section 3)."""
        name = mechanism.hash_name
        client_key = hmac.digest(salted, b"Client Key", name)
        return ScramCredential(
            salt, hashlib.new(name, client_key).digest(), hmac.digest(salted, b"Server Key", name), iterations
        )


OnChange = Callable[[str, ScramMechanism, ScramCredential | None], object]


class ScramCredentials:
    """Credentials by user and mechanism. All nodes share them; ``on_change`` is told of what is new, or None, gone."""

    def __init__(self, on_change: OnChange = lambda user, mechanism, credential: None) -> None:
        self._on_change = on_change
        self._known: dict[tuple[str, ScramMechanism], ScramCredential] = {}
        self._pepper = secrets.token_bytes(32)

    def __bool__(self) -> bool:
        return bool(self._known)

    def put(self, user: str, mechanism: ScramMechanism, credential: ScramCredential) -> None:
        self._known[user, mechanism] = credential
        self._on_change(user, mechanism, credential)

    def remove(self, user: str, mechanism: ScramMechanism) -> bool:
        """Whether there was one."""
        if self._known.pop((user, mechanism), None) is None:
            return False
        self._on_change(user, mechanism, None)
        return True

    def restore(self, user: str, mechanism: ScramMechanism, credential: ScramCredential) -> None:
        """What there was before a restart."""
        self._known[user, mechanism] = credential

    def get(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._known.get((user, mechanism))

    def proving(self, user: str, mechanism: ScramMechanism) -> ScramCredential:
        """The user's; for an unknown user one that fits no password, so that an exchange does not reveal who exists."""
        known = self._known.get((user, mechanism))
        if known is not None:
            return known
        salt = hmac.digest(self._pepper, user.encode(), "sha256")[:16]
        size = hashlib.new(mechanism.hash_name).digest_size
        return ScramCredential(salt, secrets.token_bytes(size), secrets.token_bytes(size), MIN_ITERATIONS)

    def users(self) -> list[str]:
        """All users with credentials, in the order of their names."""
        return sorted({user for user, _ in self._known})

    def of_user(self, user: str) -> Iterator[tuple[ScramMechanism, ScramCredential]]:
        """In the order of the mechanisms."""
        for mechanism in ScramMechanism:
            found = self._known.get((user, mechanism))
            if found is not None:
                yield mechanism, found
