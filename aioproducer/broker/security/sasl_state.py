"""The states of a client's authentication."""

from __future__ import annotations

from enum import Enum


class SaslState(Enum):
    """Kafka's ``SaslServerAuthenticator.SaslState``."""

    INITIAL_REQUEST = "initial request"
    HANDSHAKE_OR_VERSIONS_REQUEST = "handshake or versions request"
    """The client sent ApiVersions in an unsupported version, and may send it again."""
    HANDSHAKE_REQUEST = "handshake request"
    AUTHENTICATE = "authenticate"
    COMPLETE = "complete"
    FAILED = "failed"
    REAUTH_PROCESS_HANDSHAKE = "re-authentication"
    REAUTH_BAD_MECHANISM = "re-authentication with another mechanism"
    """As in Kafka the handshake itself is admitted; the failure counts as a failed re-authentication."""


class SaslEvent(Enum):
    """What the client has sent, and the result of its check."""

    VERSIONS = "versions were listed"
    VERSIONS_UNSUPPORTED = "ApiVersions in an unsupported version"
    HANDSHAKE = "an enabled mechanism"
    HANDSHAKE_UNSUPPORTED = "a mechanism that is not enabled"
    HANDSHAKE_CHANGED = "another mechanism than before"
    TOKEN_CONTINUES = "a token that others follow"
    TOKEN_ACCEPTED = "the last token, which was accepted"
    TOKEN_REFUSED = "a wrong token"
    REAUTHENTICATION = "a handshake of an authenticated client"


_TABLE = {
    (SaslState.INITIAL_REQUEST, SaslEvent.VERSIONS): SaslState.HANDSHAKE_REQUEST,
    (SaslState.INITIAL_REQUEST, SaslEvent.VERSIONS_UNSUPPORTED): SaslState.HANDSHAKE_OR_VERSIONS_REQUEST,
    (SaslState.INITIAL_REQUEST, SaslEvent.HANDSHAKE): SaslState.AUTHENTICATE,
    (SaslState.HANDSHAKE_OR_VERSIONS_REQUEST, SaslEvent.VERSIONS): SaslState.HANDSHAKE_REQUEST,
    (
        SaslState.HANDSHAKE_OR_VERSIONS_REQUEST,
        SaslEvent.VERSIONS_UNSUPPORTED,
    ): SaslState.HANDSHAKE_OR_VERSIONS_REQUEST,
    (SaslState.HANDSHAKE_OR_VERSIONS_REQUEST, SaslEvent.HANDSHAKE): SaslState.AUTHENTICATE,
    (SaslState.HANDSHAKE_REQUEST, SaslEvent.HANDSHAKE): SaslState.AUTHENTICATE,
    (SaslState.AUTHENTICATE, SaslEvent.TOKEN_CONTINUES): SaslState.AUTHENTICATE,
    (SaslState.AUTHENTICATE, SaslEvent.TOKEN_ACCEPTED): SaslState.COMPLETE,
    (SaslState.COMPLETE, SaslEvent.VERSIONS): SaslState.COMPLETE,
    (SaslState.COMPLETE, SaslEvent.VERSIONS_UNSUPPORTED): SaslState.COMPLETE,
    (SaslState.COMPLETE, SaslEvent.REAUTHENTICATION): SaslState.REAUTH_PROCESS_HANDSHAKE,
    (SaslState.REAUTH_PROCESS_HANDSHAKE, SaslEvent.HANDSHAKE): SaslState.AUTHENTICATE,
    (SaslState.REAUTH_PROCESS_HANDSHAKE, SaslEvent.HANDSHAKE_CHANGED): SaslState.REAUTH_BAD_MECHANISM,
}


def next_sasl_state(state: SaslState, event: SaslEvent) -> SaslState:
    """The state after an event. An event that a state does not expect leads to FAILED, which is final."""
    return _TABLE.get((state, event), SaslState.FAILED)
