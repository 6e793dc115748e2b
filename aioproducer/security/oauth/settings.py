"""The settings of OAUTHBEARER, from a client's configs and by Kafka's rules: the source of tokens, and its time limits.

``sasl.oauth.token.provider`` is the user's own code. Otherwise Kafka's configs name a file, or an identity provider and
what it knows the client by (client credentials, or an assertion); some of that may stand in ``sasl.jaas.config``, as
before KIP-1139.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from aioproducer.errors import ConfigException
from aioproducer.security.jaas import OAUTHBEARER_LOGIN_MODULE, parse_jaas
from aioproducer.security.oauth.assertion import Assertion
from aioproducer.security.oauth.http import HttpLimits, system_trust
from aioproducer.security.oauth.java_classes import DEFAULT_RETRIEVER, FILE, JWT_BEARER
from aioproducer.security.oauth.libraries import httpx, pyjwt
from aioproducer.security.oauth.token import OAuthBearerToken
from aioproducer.security.oauth.token_config import TokenConfig
from aioproducer.security.oauth.unsecured import PREFIX as UNSECURED
from aioproducer.security.oauth.unsecured import unsecured_token
from aioproducer.security.password import Password
from aioproducer.security.refresh_window import RefreshWindow
from aioproducer.security.sasl import OAUTHBEARER
from aioproducer.security.tls.sources import FixedContext, renewed_client_context
from aioproducer.security.tls.tls_source import TlsSource

_PROVIDER = "sasl.oauth.token.provider"
_URL = "sasl.oauthbearer.token.endpoint.url"
_JAAS = "sasl.jaas.config"
_ID = "sasl.oauthbearer.client.credentials.client.id"
_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_ASSERTION = "sasl.oauthbearer.assertion."
_KEY_FILE = "sasl.oauthbearer.assertion.private.key.file"
_EXTENSION = "extension_"


@dataclass(frozen=True, slots=True)
class EndpointTls:
    """The ``ssl.`` options of ``sasl.jaas.config``, which are for the identity provider alone."""

    ssl_truststore_type: str | None = None
    ssl_truststore_location: str | None = None
    ssl_truststore_password: Password | None = None
    ssl_truststore_certificates: Password | None = None
    ssl_keystore_type: str | None = None
    ssl_keystore_location: str | None = None
    ssl_keystore_password: Password | None = None
    ssl_keystore_key: Password | None = None
    ssl_keystore_certificate_chain: Password | None = None
    ssl_key_password: Password | None = None
    ssl_protocol: str = "TLSv1.3"
    ssl_enabled_protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    ssl_cipher_suites: tuple[str, ...] = ()


_JAAS_SSL = tuple(one.name.replace("_", ".") for one in fields(EndpointTls))


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """An identity provider, and what it knows the client by: a secret, or an assertion.

    ``grants_assertion``: the assertion itself is exchanged for a token (jwt-bearer); otherwise it only says who the
    client is.
    """

    url: str
    tls: TlsSource
    client_id: str | None = None
    client_secret: Password | None = None
    scope: str | None = None
    urlencode: bool = False
    assertion: Assertion | None = None
    grants_assertion: bool = False
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file with the token, which another program renews."""

    path: Path
    extensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnsecuredTokens:
    """The options of ``sasl.jaas.config``."""

    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenProvider:
    """The user's code: called, or its method ``token``."""

    provider: Any


TokenSource = TokenEndpoint | TokenFile | UnsecuredTokens | TokenProvider


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """All that a client needs for OAUTHBEARER. Back-offs are in milliseconds."""

    source: TokenSource
    limits: HttpLimits
    window: RefreshWindow
    subject_claim: str
    retry_backoff_ms: int
    retry_backoff_max_ms: int


def oauth_settings(config: TokenConfig) -> OAuthSettings:
    """Raises :class:`ConfigException` for what is missing, contradictory or without effect."""
    connect, read = config.sasl_login_connect_timeout_ms, config.sasl_login_read_timeout_ms
    return OAuthSettings(
        _source(config),
        HttpLimits(10.0 if connect is None else connect / 1000, 10.0 if read is None else read / 1000),
        RefreshWindow(
            config.sasl_login_refresh_window_factor,
            config.sasl_login_refresh_window_jitter,
            config.sasl_login_refresh_min_period_seconds,
            config.sasl_login_refresh_buffer_seconds,
        ),
        config.sasl_oauthbearer_sub_claim_name,
        config.sasl_login_retry_backoff_ms,
        config.sasl_login_retry_backoff_max_ms,
    )


def _source(config: TokenConfig) -> TokenSource:
    url, options = config.sasl_oauthbearer_token_endpoint_url, _jaas_options(config.sasl_jaas_config)
    if config.sasl_oauth_token_provider is not None:
        if config.sasl_jaas_config is not None:
            raise _refused(_JAAS, f"{_PROVIDER} is there, too: leave one of them out")
        return TokenProvider(config.sasl_oauth_token_provider)
    if url is None:
        if not any(name.startswith(UNSECURED) for name in options):
            raise _refused(
                _URL, f"it is missing: {OAUTHBEARER} needs an identity provider, a file, or a {_PROVIDER} of your own"
            )
        unsecured_token(_JAAS, options, 0)
        return UnsecuredTokens(options)
    extensions = _extensions(options)
    parts, retriever = _parts(url), config.sasl_oauthbearer_jwt_retriever_class
    if parts.scheme == "file":
        if retriever not in (DEFAULT_RETRIEVER, FILE):
            raise _refused(_URL, f"it is a file, and {_RETRIEVER}={retriever} asks an identity provider")
        return TokenFile(Path(unquote(parts.path)), extensions)
    if retriever == FILE:
        raise _refused(_URL, f"it is no file, and {_RETRIEVER}={retriever} reads one")
    httpx()
    return _endpoint(config, url, options, extensions, grants_assertion=retriever == JWT_BEARER)


def _endpoint(
    config: TokenConfig, url: str, options: Mapping[str, str], extensions: Mapping[str, str], *, grants_assertion: bool
) -> TokenEndpoint:
    client_id = config.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
    secret = config.sasl_oauthbearer_client_credentials_client_secret
    if secret is None and "clientSecret" in options:
        secret = Password(options["clientSecret"])
    assertion = None
    if grants_assertion or secret is None:
        assertion = _assertion(config)
        if assertion is None and grants_assertion:
            raise _refused(_KEY_FILE, f"it is missing: {JWT_BEARER} needs it, or {_ASSERTION}file")
    if not grants_assertion:
        if not client_id:
            raise _refused(_ID, "it is missing: the identity provider must know which client this is")
        if assertion is None and (secret is None or not secret.value):
            raise _refused(_SECRET, f"it is missing: {_URL} needs it, or {_KEY_FILE}")
    return TokenEndpoint(
        url,
        _tls(url, options),
        client_id,
        secret,
        config.sasl_oauthbearer_scope or options.get("scope"),
        config.sasl_oauthbearer_header_urlencode,
        assertion,
        grants_assertion,
        extensions,
    )


def _assertion(config: TokenConfig) -> Assertion | None:
    """Files are only checked here for being there: they are read for each assertion."""
    names = ("file", "private_key_file", "template_file")
    paths = {name: getattr(config, f"sasl_oauthbearer_assertion_{name}") for name in names}
    for name, path in paths.items():
        if path is not None and not Path(path).is_file():
            raise _refused(_ASSERTION + name.replace("_", "."), f"there is no file {path}")
    if paths["file"] is not None:
        return Assertion(Path(paths["file"]))
    if paths["private_key_file"] is None:
        return None
    pyjwt()
    claims = {
        "iss": config.sasl_oauthbearer_assertion_claim_iss,
        "sub": config.sasl_oauthbearer_assertion_claim_sub,
        "aud": config.sasl_oauthbearer_assertion_claim_aud,
    }
    template = paths["template_file"]
    return Assertion(
        None,
        config.sasl_oauthbearer_assertion_algorithm.upper(),
        Path(paths["private_key_file"]),
        config.sasl_oauthbearer_assertion_private_key_passphrase,
        None if template is None else Path(template),
        {name: value for name, value in claims.items() if value is not None},
        config.sasl_oauthbearer_assertion_claim_exp_seconds,
        config.sasl_oauthbearer_assertion_claim_nbf_seconds,
        config.sasl_oauthbearer_assertion_claim_jti_include,
    )


def _jaas_options(jaas: Password | None) -> Mapping[str, str]:
    if jaas is None:
        return {}
    entry = parse_jaas(_JAAS, jaas)
    if entry.login_module != OAUTHBEARER_LOGIN_MODULE:
        raise _refused(
            _JAAS,
            f"its login module is {entry.login_module}, and sasl.mechanism={OAUTHBEARER} has"
            f" {OAUTHBEARER_LOGIN_MODULE}",
        )
    for name in entry.options:
        if name not in ("clientId", "clientSecret", "scope", *_JAAS_SSL) and not name.startswith(
            (UNSECURED, _EXTENSION)
        ):
            raise _refused(_JAAS, f"it has an unknown option {name}")
    return entry.options


def _extensions(options: Mapping[str, str]) -> Mapping[str, str]:
    extensions = {name.removeprefix(_EXTENSION): text for name, text in options.items() if name.startswith(_EXTENSION)}
    try:
        OAuthBearerToken("checked", None, "", extensions)
    except ValueError as error:
        raise _refused(_JAAS, str(error)) from None
    return extensions


def _tls(url: str, options: Mapping[str, str]) -> TlsSource:
    given = {name.replace(".", "_"): _option(name, options[name]) for name in _JAAS_SSL if name in options}
    if not given:
        return FixedContext(system_trust(url))
    return renewed_client_context(EndpointTls(**given), "this client for its identity provider", checks_hostname=True)


def _option(name: str, text: str) -> Any:
    if name in ("ssl.enabled.protocols", "ssl.cipher.suites"):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text if name.endswith(("location", "type", "protocol")) else Password(text)


def _parts(url: str) -> SplitResult:
    wrong = _refused(_URL, "it is not of the form https://host/path, http://host/path or file:///path")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # brackets without an address, or a port that is no number
        raise wrong from None
    if parts.username is not None:
        raise _refused(_URL, f"it has user information, which is not used: set {_ID} and {_SECRET}")
    if parts.scheme == "file" or (parts.scheme in ("http", "https") and parts.hostname):
        return parts
    raise wrong


def _refused(config: str, why: str) -> ConfigException:
    return ConfigException(f"config {config!r}: {why}", name=config)
