"""The states of a client's authentication."""

from __future__ import annotations

from enum import Enum


class SaslState(Enum):
    """Kafka's ``SaslServerAuthenticator.SaslState``."""

    INITIAL_REQUEST = "initial request"
    HANDSHAKE_OR_VERSIONS_REQUEST = "handshake or versions request"
    """The client has asked for versions in a version that could not be answered: it asks again."""
    HANDSHAKE_REQUEST = "handshake request"
    AUTHENTICATE = "authenticate"
    COMPLETE = "complete"
    FAILED = "failed"
    REAUTH_PROCESS_HANDSHAKE = "re-authentication"
    REAUTH_BAD_MECHANISM = "re-authentication with another mechanism"
    """Was let pass so far, as in Kafka: the failure is counted as one of re-authentication."""


class SaslEvent(Enum):
    """What has come, and what was found of it."""

    VERSIONS = "versions were listed"
    VERSIONS_UNSUPPORTED = "versions were asked for in an unsupported version"
    HANDSHAKE = "a mechanism that is enabled"
    HANDSHAKE_UNSUPPORTED = "a mechanism that is not"
    HANDSHAKE_CHANGED = "another mechanism than before"
    TOKEN_CONTINUES = "a token, and there are more to come"
    TOKEN_ACCEPTED = "the last token, and all was right"
    TOKEN_REFUSED = "a token that is wrong"
    REAUTHENTICATION = "a handshake of a client that is known"


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
    """What is not foreseen fails, for good."""
    return _TABLE.get((state, event), SaslState.FAILED)
