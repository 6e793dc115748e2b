"""Authentication of a connection's client: the exchange, and how long its result is valid.

These are the rules of Kafka's class of this name (KIP-43, KIP-152, KIP-368), as functions of state and ``now``
(seconds). The handlers of ApiVersions, SaslHandshake and SaslAuthenticate drive the exchange; ``KafkaApis`` calls
:meth:`SaslServerAuthenticator.admits` before it handles any request.

Simplification: tokens are accepted only in SaslAuthenticate (SaslHandshake 1, since Kafka 1.0), never bare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum

from aioproducer.broker.security.authentication_metrics import AuthenticationMetrics
from aioproducer.broker.security.failed_logins import FailedLogins
from aioproducer.broker.security.sasl_servers import SaslServer
from aioproducer.broker.security.sasl_state import SaslEvent, SaslState, next_sasl_state
from aioproducer.errors import SaslAuthenticationException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeResponse

ANONYMOUS = "ANONYMOUS"
"""Kafka's name for a client that has not authenticated."""

MIN_REAUTH_INTERVAL = 1.0
"""Seconds between two re-authentications of a connection (Kafka's ``MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS``)."""

SaslServers = Mapping[str, Callable[[], SaslServer]]
"""Enabled mechanisms by name; each call begins a new exchange."""


class Admission(Enum):
    """Whether a request may be handled."""

    YES = "yes"
    UNAUTHENTICATED = "its client has not authenticated"
    EXPIRED = "its client's session has expired"


_ADMITTED = {
    SaslState.INITIAL_REQUEST: (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE),
    SaslState.HANDSHAKE_OR_VERSIONS_REQUEST: (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE),
    SaslState.HANDSHAKE_REQUEST: (ApiKey.SASL_HANDSHAKE,),
    SaslState.AUTHENTICATE: (ApiKey.SASL_AUTHENTICATE,),
    SaslState.REAUTH_BAD_MECHANISM: (ApiKey.SASL_AUTHENTICATE,),
}
"""The APIs of the authentication. A request of another one fails before its body is read."""


class SaslServerAuthenticator:
    """The authentication of one connection."""

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
        """The user name that the client sent last, whether or not it was authenticated."""
        self.mechanism = ""
        self.why = ""
        """Why it was last refused, for the log; empty if its mechanism does not say."""
        self.expires_at: float | None = None
        """When the session expires; None for never, and before there is a session."""

    def admits(self, api_key: int, now: float) -> Admission:
        """Whether a request of this API may be handled now. A request that is not admitted ends the connection."""
        if self.state is SaslState.COMPLETE:
            # A client whose session has expired may still re-authenticate.
            if self.expires_at is None or now < self.expires_at or api_key == ApiKey.SASL_HANDSHAKE:
                return Admission.YES
            self._metrics.killed(now)
            return Admission.EXPIRED
        if api_key in _ADMITTED.get(self.state, ()):
            return Admission.YES
        if not self.failed:  # later requests of a connection that failed are no further failures
            self._fail(SaslEvent.TOKEN_REFUSED, now)
        return Admission.UNAUTHENTICATED

    def versions(self, is_supported: bool) -> None:
        """The client sent ApiVersions, in a version that is supported or not."""
        self._advance(SaslEvent.VERSIONS if is_supported else SaslEvent.VERSIONS_UNSUPPORTED)

    def handshake(self, mechanism: str, now: float) -> SaslHandshakeResponse:
        """The client chooses a mechanism. :attr:`failed` is true if that fails."""
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
        """The client sends a token of the mechanism. :attr:`failed` is true if that fails."""
        server = self._server
        if self.state is SaslState.COMPLETE:
            # A token without a handshake (Kafka's ``KafkaApis.handleSaslAuthenticateRequest``).
            return SaslAuthenticateResponse(
                ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication"
            )
        try:
            if server is None or self.state is SaslState.REAUTH_BAD_MECHANISM:
                raise SaslAuthenticationException(
                    f"re-authentication needs the same mechanism as before, {self.mechanism}"
                )
            try:
                answer = server.evaluate_response(token)
            finally:
                self.claimed, self.why = server.user, server.why
            if server.is_complete and self.is_known and server.user != self.user:
                raise SaslAuthenticationException("re-authentication needs the same user as before")
        except SaslAuthenticationException as error:
            self._fail(SaslEvent.TOKEN_REFUSED, now)
            return SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error))
        if not server.is_complete:
            self._advance(SaslEvent.TOKEN_CONTINUES)
            return SaslAuthenticateResponse(ErrorCode.NONE, None, answer)
        return SaslAuthenticateResponse(ErrorCode.NONE, None, answer, self._succeed(server, now))

    @property
    def failed(self) -> bool:
        return self.state is SaslState.FAILED

    def _succeed(self, server: SaslServer, now: float) -> int:
        """Returns how long the session lasts, in milliseconds; 0 for no limit."""
        self._advance(SaslEvent.TOKEN_ACCEPTED)
        if self.is_known:
            self._metrics.reauthenticated(now - self._reauthentication_began, now)
        else:
            self._metrics.authenticated(now)
        self.is_known = True
        self.user = server.user
        self._server = None
        limits = [] if server.lifetime is None else [max(0, int(server.lifetime * 1000))]
        if self._max_reauth_ms > 0:
            limits.append(self._max_reauth_ms)
        if not limits:
            return 0
        self.expires_at = now + min(limits) / 1000
        return min(limits)

    def _fail(self, event: SaslEvent, now: float) -> None:
        self._advance(event)
        self._server = None
        self._metrics.failed(now, again=self.is_known)

    def _advance(self, event: SaslEvent) -> None:
        self.state = next_sasl_state(self.state, event)
