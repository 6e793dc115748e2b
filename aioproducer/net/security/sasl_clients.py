"""The client's half of each SASL mechanism: takes the broker's challenges and returns tokens for it."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Protocol

from aioproducer.errors import SaslAuthenticationException
from aioproducer.security.kerberos.errors import explained
from aioproducer.security.kerberos.library import gssapi
from aioproducer.security.kerberos.tickets import KerberosTicket
from aioproducer.security.oauth.token import OAuthBearerToken
from aioproducer.security.sasl import GSSAPI, OAUTHBEARER, PLAIN, Credentials, scramp

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 1_000_000
"""Limits for the number of hash iterations, which the broker chooses: too few would reveal the password to an
eavesdropper, and more than this would let a hostile broker keep a thread busy as long as it likes."""

_LONGEST_REASON = 1000

_ITERATIONS = re.compile(r"(?:^|,)i=([0-9]{1,9})(?:,|$)")


class SaslClient(Protocol):
    """One exchange; like Java's class of this name."""

    is_slow: bool
    """Whether the methods are to be called in a thread."""

    def initial_response(self) -> bytes:
        """The first token."""

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        """The next token; None if the exchange has succeeded. Raises :class:`SaslAuthenticationException`."""


AnyCredentials = Credentials | OAuthBearerToken | KerberosTicket
"""What a client may authenticate with."""


def mechanism_of(credentials: AnyCredentials) -> str:
    """The SASL mechanism that is for them."""
    if isinstance(credentials, OAuthBearerToken):
        return OAUTHBEARER
    return GSSAPI if isinstance(credentials, KerberosTicket) else credentials.mechanism


def sasl_client(credentials: AnyCredentials, host: str) -> SaslClient:
    """Begins an exchange with the broker at ``host``."""
    if isinstance(credentials, OAuthBearerToken):
        return OAuthBearerSaslClient(credentials)
    if isinstance(credentials, KerberosTicket):
        return GssapiSaslClient(credentials, host)
    return PlainSaslClient(credentials) if credentials.mechanism == PLAIN else ScramSaslClient(credentials)


class PlainSaslClient:
    """PLAIN (RFC 4616): name and password in the clear, so use it with TLS."""

    is_slow = False

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def initial_response(self) -> bytes:
        return f"\0{self._credentials.username}\0{self._credentials.password.value}".encode()

    def evaluate_challenge(self, challenge: bytes) -> None:
        return None


class ScramSaslClient:
    """SCRAM (RFC 5802, RFC 7677): the broker must prove that it knows the password, too."""

    is_slow = True

    def __init__(self, credentials: Credentials) -> None:
        library = scramp()
        self._refused = (library.ScramException, UnicodeDecodeError, ValueError, LookupError)
        self._mechanism = credentials.mechanism
        self._client = library.ScramClient([self._mechanism], credentials.username, credentials.password.value)
        self._proved = False

    def initial_response(self) -> bytes:
        first: str = self._client.get_client_first()
        return first.encode()

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        try:
            message = challenge.decode()
            if self._proved:
                self._client.set_server_final(message)
                return None
            _check_iterations(message)
            self._client.set_server_first(message)
            final: str = self._client.get_client_final()
        except self._refused:
            what = "proof that it knows the password is wrong" if self._proved else "first message cannot be read"
            raise SaslAuthenticationException(f"{self._mechanism}: the broker's {what}") from None
        self._proved = True
        return final.encode()


class OAuthBearerSaslClient:
    """OAUTHBEARER (RFC 7628): a token in the clear, so use it with TLS."""

    is_slow = False

    def __init__(self, token: OAuthBearerToken) -> None:
        self._token = token
        self._refusal = b""

    def initial_response(self) -> bytes:
        pairs = {"auth": f"Bearer {self._token.value}", **self._token.extensions}
        return f"n,,\1{''.join(f'{name}={value}{chr(1)}' for name, value in pairs.items())}\1".encode()

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        # A challenge is the reason of a refusal. The broker ends the exchange with an error when the client has taken
        # note of it.
        if self._refusal:
            reason = self._refusal[:_LONGEST_REASON].decode(errors="replace")
            raise SaslAuthenticationException(f"OAUTHBEARER: the broker refused the token: {reason}")
        self._refusal = challenge
        return b"\1" if challenge else None


_NO_SECURITY_LAYER = 1


class GssapiSaslClient:
    """GSSAPI (RFC 4752): a Kerberos ticket for the broker's service, which must prove itself, too.

    There is no security layer, as everywhere in Kafka: TLS encrypts.
    """

    is_slow = True  # the KDC is asked for a ticket for this broker

    def __init__(self, ticket: KerberosTicket, host: str) -> None:
        self._library = gssapi()
        self._principal = f"{ticket.service}/{host}"
        self._context: Any = None
        self._make = partial(self._security_context, ticket, host)
        self._negotiated = False

    def _security_context(self, ticket: KerberosTicket, host: str) -> Any:
        library = self._library
        return library.SecurityContext(
            name=library.Name(f"{ticket.service}@{host}", library.NameType.hostbased_service),
            creds=ticket.credentials,
            usage="initiate",
            mech=library.MechType.kerberos,
            flags=[library.RequirementFlag.mutual_authentication, library.RequirementFlag.integrity],
        )

    def initial_response(self) -> bytes:
        try:
            self._context = self._make()
            return bytes(self._context.step() or b"")
        except self._library.exceptions.GSSError as error:
            raise explained(error, f"no Kerberos ticket for {self._principal}", service=self._principal) from None

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        try:
            if not self._context.complete:
                return bytes(self._context.step(challenge) or b"")
            if self._negotiated:
                return None
            self._negotiated = True
            offer = self._context.unwrap(challenge).message
            if len(offer) != 4 or not offer[0] & _NO_SECURITY_LAYER:
                raise SaslAuthenticationException(
                    f"{self._principal} demands a security layer of Kerberos, which Kafka's clients do not have"
                )
            return bytes(self._context.wrap(bytes([_NO_SECURITY_LAYER, 0, 0, 0]), False).message)
        except self._library.exceptions.GSSError as error:
            raise explained(error, f"{self._principal} did not prove itself", service=self._principal) from None


def _check_iterations(message: str) -> None:
    found = _ITERATIONS.search(message)
    count = int(found[1]) if found else 0
    if not MIN_ITERATIONS <= count <= MAX_ITERATIONS:
        raise SaslAuthenticationException(
            f"the broker wants the password hashed {count} times: {MIN_ITERATIONS} to {MAX_ITERATIONS} are accepted"
        )
