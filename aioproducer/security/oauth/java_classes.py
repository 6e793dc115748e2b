"""The classes of Java's clients that configs of tokens may name, and that are known here."""

from __future__ import annotations

_PACKAGE = "org.apache.kafka.common.security.oauthbearer."
DEFAULT_RETRIEVER = f"{_PACKAGE}DefaultJwtRetriever"
CLIENT_CREDENTIALS = f"{_PACKAGE}ClientCredentialsJwtRetriever"
JWT_BEARER = f"{_PACKAGE}JwtBearerJwtRetriever"
FILE = f"{_PACKAGE}FileJwtRetriever"
RETRIEVERS = (DEFAULT_RETRIEVER, CLIENT_CREDENTIALS, JWT_BEARER, FILE)
VALIDATORS = (f"{_PACKAGE}DefaultJwtValidator", f"{_PACKAGE}ClientJwtValidator")
LOGIN_HANDLERS = (
    f"{_PACKAGE}OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}secured.OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
)
