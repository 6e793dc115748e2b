"""Authentication of a connection's client: the exchange, and how long its result is valid.

Rules of state and ``now`` (seconds); the handlers of ApiVersions, SaslHandshake and SaslAuthenticate are its shell, and
``KafkaApis`` asks :meth:`SaslServerAuthenticator.admits` before it looks at any request. Kafka's class of this name
(KIP-43, KIP-152, KIP-368).

Simplification: tokens are only accepted in SaslAuthenticate (SaslHandshake 1, since Kafka 1.0), never bare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum

from aioproducer.broker.security.authentication_metrics import AuthenticationMetrics
from aioproducer.broker.security.failed_logins import FailedLogins
from aioproducer.broker.security.sasl_servers import SaslServer
from aioproducer.broker.security.sasl_state import SaslEvent, SaslState, next_sasl_state
from aioproducer.error_code import ErrorCode
from aioproducer.errors import SaslAuthenticationException
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeResponse

ANONYMOUS = "ANONYMOUS"
"""Kafka's name for a client that need not authenticate."""

MIN_REAUTH_INTERVAL = 1.0
"""Seconds between two re-authentications of a connection (Kafka's ``MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS``)."""

SaslServers = Mapping[str, Callable[[], SaslServer]]
"""The enabled mechanisms by name; each call begins an exchange."""


class Admission(Enum):
    """Whether a request may be handled."""

    YES = "yes"
    UNAUTHENTICATED = "its client has not said who it is"
    EXPIRED = "its client's session has expired"


_ADMITTED = {
    SaslState.INITIAL_REQUEST: (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE),
    SaslState.HANDSHAKE_OR_VERSIONS_REQUEST: (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE),
    SaslState.HANDSHAKE_REQUEST: (ApiKey.SASL_HANDSHAKE,),
    SaslState.AUTHENTICATE: (ApiKey.SASL_AUTHENTICATE,),
    SaslState.REAUTH_BAD_MECHANISM: (ApiKey.SASL_AUTHENTICATE,),
}
"""Anything else is a failure, before a byte of its body is looked at."""


class SaslServerAuthenticator:
    """Of one connection."""

    def __init__(
        self, servers: SaslServers, max_reauth_ms: int, metrics: AuthenticationMetrics, failed_logins: FailedLogins
    ) -> None:
        self._servers = servers
        self._max_reauth_ms = max_reauth_ms
        self._metrics = metrics
        self.failed_logins = failed_logins
        self._server: SaslServer | None = None
        self._reauthentication_began = -math.inf
        self.is_known = False
        """Whether the client has authenticated, even if it is re-authenticating at present."""
        self.state = SaslState.INITIAL_REQUEST
        self.user = ANONYMOUS
        self.claimed = ""
        """Who it last said it was, right or wrong."""
        self.mechanism = ""
        self.expires_at: float | None = None
        """When its session ends; None for never, and before there is one."""

    def admits(self, api_key: int, now: float) -> Admission:
        """Whether a request of this API may be handled at this point. One that is not admitted ends the connection."""
        if self.state is SaslState.COMPLETE:
            # A client whose session has ended may still re-authenticate.
            if self.expires_at is None or now < self.expires_at or api_key == ApiKey.SASL_HANDSHAKE:
                return Admission.YES
            self._metrics.killed(now)
            return Admission.EXPIRED
        if api_key in _ADMITTED.get(self.state, ()):
            return Admission.YES
        if not self.failed:  # what a client that is gone had sent as well is not another failure
            self._fail(SaslEvent.TOKEN_REFUSED, now)
        return Admission.UNAUTHENTICATED

    def versions(self, is_supported: bool) -> None:
        """The client sent ApiVersions, in a version that is supported or not."""
        self._advance(SaslEvent.VERSIONS if is_supported else SaslEvent.VERSIONS_UNSUPPORTED)

    def handshake(self, mechanism: str, now: float) -> SaslHandshakeResponse:
        """The client chooses a mechanism. :attr:`failed` says whether that failed."""
        if self.state is SaslState.COMPLETE:
            if self.expires_at is None or now - self._reauthentication_began < MIN_REAUTH_INTERVAL:
                return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
            self._reauthentication_began = now
            self._advance(SaslEvent.REAUTHENTICATION)
        enabled = list(self._servers)
        if mechanism not in self._servers:
            self._fail(SaslEvent.HANDSHAKE_UNSUPPORTED, now)
            return SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, enabled)
        if self.is_known and mechanism != self.mechanism:
            self._advance(SaslEvent.HANDSHAKE_CHANGED)
        else:
            self._advance(SaslEvent.HANDSHAKE)
            self.mechanism = mechanism
            self._server = self._servers[mechanism]()
        return SaslHandshakeResponse(ErrorCode.NONE, enabled)

    def authenticate(self, token: bytes, now: float) -> SaslAuthenticateResponse:
        """The client sends a token of the mechanism. :attr:`failed` says whether that failed."""
        server = self._server
        if self.state is SaslState.COMPLETE:
            # A token without a handshake (Kafka's ``KafkaApis.handleSaslAuthenticateRequest``).
            return SaslAuthenticateResponse(
                ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication"
            )
        try:
            if server is None or self.state is SaslState.REAUTH_BAD_MECHANISM:
                raise SaslAuthenticationException(
                    f"re-authentication is by the same mechanism as before, {self.mechanism}"
                )
            try:
                answer = server.evaluate_response(token)
            finally:
                self.claimed = server.user
            if server.is_complete and self.is_known and server.user != self.user:
                raise SaslAuthenticationException("re-authentication is by the same user as before")
        except SaslAuthenticationException as error:
            self._fail(SaslEvent.TOKEN_REFUSED, now)
            return SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error))
        if not server.is_complete:
            self._advance(SaslEvent.TOKEN_CONTINUES)
            return SaslAuthenticateResponse(ErrorCode.NONE, None, answer)
        self._succeed(server, now)
        return SaslAuthenticateResponse(ErrorCode.NONE, None, answer, max(0, self._max_reauth_ms))

    @property
    def failed(self) -> bool:
        return self.state is SaslState.FAILED

    def _succeed(self, server: SaslServer, now: float) -> None:
        self._advance(SaslEvent.TOKEN_ACCEPTED)
        if self.is_known:
            self._metrics.reauthenticated(now - self._reauthentication_began, now)
        else:
            self._metrics.authenticated(now)
        self.is_known = True
        self.user = server.user
        self._server = None
        if self._max_reauth_ms > 0:
            self.expires_at = now + self._max_reauth_ms / 1000

    def _fail(self, event: SaslEvent, now: float) -> None:
        self._advance(event)
        self._server = None
        self._metrics.failed(now, again=self.is_known)

    def _advance(self, event: SaslEvent) -> None:
        self.state = next_sasl_state(self.state, event)
