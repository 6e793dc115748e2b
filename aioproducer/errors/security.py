"""Errors of authentication and authorization."""

from __future__ import annotations

from aioproducer.errors.api import ApiException, InvalidConfigurationException, RetriableException
from aioproducer.errors.error_code import ErrorCode


class AuthorizationException(InvalidConfigurationException):
    """The broker knows who we are and does not allow this."""


class AuthenticationException(InvalidConfigurationException):
    """Authentication failed, or was required and did not happen. Trying again changes nothing."""


class SslAuthenticationException(AuthenticationException):
    """The TLS handshake failed: one side does not trust the other's certificate, or they have no protocol in common."""


class SaslAuthenticationException(AuthenticationException):
    """The broker did not accept the credentials."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    advice = "see sasl.mechanism and the credentials"


class TokenUnavailableException(RetriableException):
    """There is no token or ticket to authenticate with at present: the identity provider or the KDC cannot be reached,
    or the token provider failed."""


class UnsupportedSaslMechanismException(AuthenticationException):
    """The broker has no such SASL mechanism enabled."""

    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    advice = "choose another sasl.mechanism"


class IllegalSaslStateException(AuthenticationException):
    """The request does not belong to this point of an authentication. The listener may have no SASL."""

    code = ErrorCode.ILLEGAL_SASL_STATE
    advice = "see security.protocol"


class GroupAuthorizationException(AuthorizationException):
    """Not authorized for this group."""

    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    advice = "allow this principal to READ the group (an ACL)"


class TopicAuthorizationException(AuthorizationException):
    """Not authorized for this topic."""

    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    advice = "allow this principal to WRITE to the topic (an ACL)"


class ClusterAuthorizationException(AuthorizationException):
    """Not authorized for this operation on the cluster."""

    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    advice = "allow this principal to IDEMPOTENT_WRITE on the cluster (an ACL), or set enable.idempotence=false"


class TransactionalIdAuthorizationException(AuthorizationException):
    """Not authorized for this transactional id."""

    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    advice = "allow this principal to DESCRIBE and WRITE to the transactional id (an ACL)"


class SecurityDisabledException(ApiException):
    """Security features are disabled on the broker."""

    code = ErrorCode.SECURITY_DISABLED
