"""The credentials of SCRAM users, from which neither a password nor a login can be derived."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import string
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
"""Kafka's limits for AlterUserScramCredentials."""

_SALT_SIZE = 16
_SALT_LETTERS = (string.digits + string.ascii_lowercase).encode()


class ScramMechanism(IntEnum):
    """The mechanisms with their numbers in AlterUserScramCredentials (Kafka's class of this name)."""

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
        """The mechanism with this SASL name. Raises ``ValueError``."""
        for each in ScramMechanism:
            if each.mechanism == mechanism:
                return each
        raise ValueError(f"{mechanism!r} is none of {', '.join(each.mechanism for each in ScramMechanism)}")


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a server needs to check that a client knows a password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @staticmethod
    def of_password(
        mechanism: ScramMechanism, password: str, iterations: int = MIN_ITERATIONS, salt: bytes | None = None
    ) -> ScramCredential:
        """Derives a credential from a password. Takes milliseconds, on purpose."""
        salt = secrets.token_bytes(_SALT_SIZE) if salt is None else salt
        salted = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
        return ScramCredential.of_salted(mechanism, salted, iterations, salt)

    @staticmethod
    def of_salted(mechanism: ScramMechanism, salted: bytes, iterations: int, salt: bytes) -> ScramCredential:
        """Derives a credential from a salted password (RFC 5802, section 3)."""
        name = mechanism.hash_name
        client_key = hmac.digest(salted, b"Client Key", name)
        return ScramCredential(
            salt, hashlib.new(name, client_key).digest(), hmac.digest(salted, b"Server Key", name), iterations
        )


OnChange = Callable[[str, ScramMechanism, ScramCredential | None], object]


class _Shape(NamedTuple):
    """What a client sees of a credential before it has authenticated."""

    iterations: int
    salt_size: int
    is_text: bool
    """Whether the salt has only digits and small letters, as Kafka's tools make it."""

    @staticmethod
    def of(credential: ScramCredential) -> _Shape:
        salt = credential.salt
        return _Shape(credential.iterations, len(salt), not salt.strip(_SALT_LETTERS))


class ScramCredentials:
    """Credentials by user and mechanism. All nodes share them; ``on_change`` gets each new credential, or None for a
    deleted one.

    The salts of unknown users are derived from ``pepper``; a data directory keeps it, so they survive a restart.
    """

    def __init__(self, on_change: OnChange = lambda user, mechanism, credential: None) -> None:
        self._on_change = on_change
        self._known: dict[tuple[str, ScramMechanism], ScramCredential] = {}
        self._shapes: Counter[tuple[ScramMechanism, _Shape]] = Counter()
        self.pepper = secrets.token_bytes(32)

    def __len__(self) -> int:
        return len(self._known)

    def put(self, user: str, mechanism: ScramMechanism, credential: ScramCredential) -> None:
        self.restore(user, mechanism, credential)
        self._on_change(user, mechanism, credential)

    def remove(self, user: str, mechanism: ScramMechanism) -> bool:
        """Deletes a credential. Returns whether there was one."""
        if not self._forget(user, mechanism):
            return False
        self._on_change(user, mechanism, None)
        return True

    def _forget(self, user: str, mechanism: ScramMechanism) -> bool:
        credential = self._known.pop((user, mechanism), None)
        if credential is not None:
            kind = mechanism, _Shape.of(credential)
            self._shapes[kind] -= 1
            if not self._shapes[kind]:
                del self._shapes[kind]
        return credential is not None

    def restore(self, user: str, mechanism: ScramMechanism, credential: ScramCredential) -> None:
        """Restores a credential from before a restart."""
        self._forget(user, mechanism)
        self._known[user, mechanism] = credential
        self._shapes[mechanism, _Shape.of(credential)] += 1

    def get(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._known.get((user, mechanism))

    def proving(self, user: str, mechanism: ScramMechanism) -> ScramCredential:
        """The credential of a user. For an unknown user it fits no password, so that the exchange does not reveal which
        users exist: its salt is always the same, and its size and iterations are those of known users."""
        known = self._known.get((user, mechanism))
        if known is not None:
            return known
        shape = self._shape_of_unknown(user, mechanism)
        size = hashlib.new(mechanism.hash_name).digest_size
        keys = secrets.token_bytes(size), secrets.token_bytes(size)
        return ScramCredential(self._salt_of_unknown(user, mechanism, shape), *keys, shape.iterations)

    def _shape_of_unknown(self, user: str, mechanism: ScramMechanism) -> _Shape:
        """A shape of known users, chosen in proportion to their numbers. When these change, it changes for as few
        unknown users as possible (rendezvous hashing)."""
        found = [(shape, count) for (of, shape), count in self._shapes.items() if of is mechanism]

        def score(one: tuple[_Shape, int]) -> float:
            drawn = int.from_bytes(self._drawn(6, "shape", mechanism, user, *one[0]), "big")
            return -one[1] / math.log((drawn + 1) / (2**48 + 1))

        return max(found, key=score)[0] if found else _Shape(MIN_ITERATIONS, _SALT_SIZE, is_text=False)

    def _salt_of_unknown(self, user: str, mechanism: ScramMechanism, shape: _Shape) -> bytes:
        drawn = self._drawn(shape.salt_size, "salt", mechanism, user)
        return bytes(_SALT_LETTERS[one % len(_SALT_LETTERS)] for one in drawn) if shape.is_text else drawn

    def _drawn(self, size: int, *what: object) -> bytes:
        """Bytes that depend only on the arguments, and cannot be guessed."""
        return hashlib.shake_256(self.pepper + repr(what).encode()).digest(size)

    def users(self) -> list[str]:
        """The names of all users with credentials, sorted."""
        return sorted({user for user, _ in self._known})

    def of_user(self, user: str) -> Iterator[tuple[ScramMechanism, ScramCredential]]:
        """The credentials of a user, in the order of the mechanisms."""
        for mechanism in ScramMechanism:
            found = self._known.get((user, mechanism))
            if found is not None:
                yield mechanism, found
