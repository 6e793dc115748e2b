"""The JWT by which a client proves to an identity provider who it is (RFC 7523): ``sasl.oauthbearer.assertion.*``."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aioproducer.security.oauth.claims import LONGEST
from aioproducer.security.oauth.libraries import pyjwt
from aioproducer.security.password import Password


class AssertionFailed(Exception):
    """A file cannot be used; the text has no secret."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """How to get one: from a ``file`` that another program renews, or signed with the key in ``key_file``.

    Files are read for each assertion, so they may change while the client runs.
    """

    file: Path | None = None
    algorithm: str = "RS256"
    key_file: Path | None = None
    passphrase: Password | None = field(default=None, repr=False)
    template_file: Path | None = None
    claims: Mapping[str, str] = field(default_factory=dict)
    """``iss``, ``sub`` and ``aud``, as far as they are configured."""
    valid_for: int = 300
    valid_since: int = 60
    """Seconds before now: clocks differ."""
    has_id: bool = False

    def make(self, now: float) -> str:
        """An assertion for one request; ``now`` is POSIX time. Raises :class:`AssertionFailed`."""
        if self.file is not None:
            return _read(self.file).strip()
        assert self.key_file is not None
        library = pyjwt()
        template = self._template()
        times: dict[str, Any] = {"iat": int(now), "exp": int(now) + self.valid_for, "nbf": int(now) - self.valid_since}
        unique = {"jti": str(uuid.uuid4())} if self.has_id else {}
        claims = {**template.get("payload", {}), **self.claims, **times, **unique}
        try:
            signed: str = library.encode(claims, self._key(), self.algorithm, headers=template.get("header"))
        except (library.PyJWTError, TypeError, ValueError) as error:
            raise AssertionFailed(f"{self.key_file} does not sign with {self.algorithm}: {error}") from None
        return signed

    def _key(self) -> Any:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        assert self.key_file is not None
        text = _read(self.key_file)
        passphrase = None if self.passphrase is None else self.passphrase.value.encode()
        try:
            return load_pem_private_key(text.encode(), passphrase)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            # The library's words are about the format, and not fit for people.
            raise AssertionFailed(
                f"{self.key_file} has no private key in PEM that opens with"
                " sasl.oauthbearer.assertion.private.key.passphrase"
            ) from None

    def _template(self) -> Mapping[str, Any]:
        if self.template_file is None:
            return {}
        try:
            template = json.loads(_read(self.template_file))
        except (ValueError, RecursionError) as error:
            raise AssertionFailed(f"{self.template_file} is no JSON: {error}") from None
        if not isinstance(template, dict) or not all(
            name in ("header", "payload") and isinstance(part, dict) for name, part in template.items()
        ):
            raise AssertionFailed(f'{self.template_file} is not of the form {{"header": {{…}}, "payload": {{…}}}}')
        return template


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(LONGEST)
    except (OSError, UnicodeDecodeError) as error:
        raise AssertionFailed(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
