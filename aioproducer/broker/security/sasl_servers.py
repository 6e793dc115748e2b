"""The server's half of each SASL mechanism: it checks the client's tokens, and returns tokens for the client."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Protocol

from aioproducer.broker.security.scram_credentials import ScramCredential
from aioproducer.errors import SaslAuthenticationException
from aioproducer.security.password import Password
from aioproducer.security.sasl import scramp


class SaslServer(Protocol):
    """One exchange, as in Java's class of this name."""

    user: str
    """The user name that the client has sent; it is proved once :attr:`is_complete`. Empty before the first token."""
    is_complete: bool
    lifetime: float | None
    """Seconds that its credentials are valid for; None if they never expire."""
    why: str
    """Why it was refused, for the broker's log alone."""

    def evaluate_response(self, token: bytes) -> bytes:
        """Returns the answer to a token. Raises :class:`SaslAuthenticationException`, whose message the client gets."""


class PasswordSaslServer:
    """What never expires, and is refused without a reason."""

    lifetime: float | None = None
    why = ""


class PlainSaslServer(PasswordSaslServer):
    """PLAIN (RFC 4616): name and password as plain text. Kafka's class of this name."""

    def __init__(self, users: Mapping[str, Password]) -> None:
        self._users = users
        self.user = ""
        self.is_complete = False

    def evaluate_response(self, token: bytes) -> bytes:
        parts = token.split(b"\0")
        if len(parts) != 3:
            raise SaslAuthenticationException(f"a PLAIN token must have 3 parts, this one has {len(parts)}")
        acts_as, name, password = parts
        if not name or not password:
            raise SaslAuthenticationException("the username or the password of a PLAIN token is empty")
        if acts_as not in (b"", name):
            raise SaslAuthenticationException("a PLAIN token must authorize the user that it authenticates")
        try:
            user = name.decode()
        except UnicodeDecodeError:
            raise SaslAuthenticationException("the username of a PLAIN token is not UTF-8") from None
        self.user = user
        known = self._users.get(user)
        # Unknown users get a comparison, too, so that the time taken does not reveal whether a user exists.
        right = hmac.compare_digest(password, ("" if known is None else known.value).encode())
        if known is None or not right:
            raise SaslAuthenticationException("Authentication failed: Invalid username or password")
        self.is_complete = True
        return b""


class ScramSaslServer(PasswordSaslServer):
    """SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password, and neither sends it.

    ``credential(user)`` returns the credential of any user, known or not (:meth:`ScramCredentials.proving`).
    """

    def __init__(self, mechanism: str, credential: Callable[[str], ScramCredential]) -> None:
        library = scramp()
        self._refused = (library.ScramException, UnicodeDecodeError, ValueError, LookupError)
        self._credential = credential
        self._server = library.ScramMechanism(mechanism).make_server(self._auth_info)
        self._steps = 0
        self.user = ""
        self.is_complete = False

    def _auth_info(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        self.user = user
        found = self._credential(user)
        return found.salt, found.stored_key, found.server_key, found.iterations

    def evaluate_response(self, token: bytes) -> bytes:
        server = self._server
        try:
            if self._steps == 0:
                server.set_client_first(token.decode())
                answer: str = server.get_server_first()
            else:
                server.set_client_final(token.decode())
                answer = server.get_server_final()
                self.is_complete = True
        except self._refused:
            # Not the library's message, which reveals whether the user or the password was wrong.
            raise SaslAuthenticationException("Authentication failed: Invalid user credentials") from None
        self._steps += 1
        return answer.encode()
