"""The configs of a registry's client, with Confluent's names."""

from __future__ import annotations

import dataclasses
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from aioproducer.configs.client_config import SSL_CONTEXT, TOKEN_PROVIDER
from aioproducer.configs.config_def import ANY, NON_EMPTY, Type, at_least, key, one_of, parse
from aioproducer.configs.plugins import made
from aioproducer.configs.tls_values import ENABLED_PROTOCOLS, PROTOCOL, STORE_TYPE
from aioproducer.errors import ConfigException
from aioproducer.security.oauth.http import shown_url, system_trust
from aioproducer.security.password import Password
from aioproducer.security.tls.sources import FixedContext, renewed_client_context
from aioproducer.security.tls.tls_source import TlsSource

_URL = "schema.registry.url"
_USER_INFO = "basic.auth.user.info"
_TOKEN = "bearer.auth.token"
_PROVIDER = "bearer.auth.token.provider"
_ISSUER = "bearer.auth.issuer.endpoint.url"
_CLIENT_ID = "bearer.auth.client.id"
_SECRET = "bearer.auth.client.secret"


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """Times are in milliseconds."""

    schema_registry_url: tuple[str, ...] = key(
        Type.LIST,
        dataclasses.MISSING,
        NON_EMPTY,
        "The registry's URL, https://host:port/path; of several, separated by commas, the next is asked if one fails.",
    )
    max_retries: int = key(
        Type.INT, 3, at_least(0), "How often all URLs are asked again before a request fails, after a back-off."
    )
    retries_wait_ms: int = key(
        Type.INT, 1000, at_least(0), "Wait before the first retry; doubles with each further one."
    )
    retries_max_wait_ms: int = key(Type.INT, 20000, at_least(0), "Longest wait before a retry.")
    http_connect_timeout_ms: int = key(Type.INT, 10000, at_least(1), "How long connecting to one URL may take.")
    http_read_timeout_ms: int = key(
        Type.INT, 10000, at_least(1), "How long one URL may take to answer, once it is connected."
    )
    basic_auth_user_info: Password | None = key(
        Type.PASSWORD, None, ANY, "user:password for HTTP basic authentication; a URL may have it, too."
    )
    bearer_auth_token: Password | None = key(Type.PASSWORD, None, ANY, "A token for HTTP bearer authentication.")
    bearer_auth_token_provider: object = key(
        Type.CLASS, None, TOKEN_PROVIDER, "Gets tokens, as sasl.oauth.token.provider does for brokers."
    )
    bearer_auth_issuer_endpoint_url: str | None = key(
        Type.STRING, None, NON_EMPTY, "The token endpoint of an identity provider that gives tokens (OAuth)."
    )
    bearer_auth_client_id: str | None = key(
        Type.STRING, None, NON_EMPTY, "What the identity provider knows this client by."
    )
    bearer_auth_client_secret: Password | None = key(Type.PASSWORD, None, ANY, "The secret that goes with it.")
    bearer_auth_scope: str | None = key(Type.STRING, None, NON_EMPTY, "The scope that tokens are requested for.")
    bearer_auth_logical_cluster: str | None = key(
        Type.STRING, None, NON_EMPTY, "The registry's logical cluster in Confluent Cloud, with a bearer token."
    )
    bearer_auth_identity_pool_id: str | None = key(
        Type.STRING, None, NON_EMPTY, "The identity pool in Confluent Cloud, with a bearer token."
    )
    ssl_truststore_type: str | None = key(
        Type.STRING, None, STORE_TYPE, "The format of the trust store; if it is not given, the file decides."
    )
    ssl_truststore_location: str | None = key(
        Type.STRING, None, NON_EMPTY, "A file with the authorities to trust; the system's without one."
    )
    ssl_truststore_password: Password | None = key(
        Type.PASSWORD, None, ANY, "The password of a trust store in Java's formats."
    )
    ssl_truststore_certificates: Password | None = key(Type.PASSWORD, None, ANY, "The same in PEM, instead of a file.")
    ssl_keystore_type: str | None = key(
        Type.STRING, None, STORE_TYPE, "The format of the key store; if it is not given, the file decides."
    )
    ssl_keystore_location: str | None = key(
        Type.STRING, None, NON_EMPTY, "A file with this client's key and certificate (mTLS)."
    )
    ssl_keystore_password: Password | None = key(
        Type.PASSWORD, None, ANY, "The password of a key store in Java's formats."
    )
    ssl_keystore_key: Password | None = key(
        Type.PASSWORD, None, ANY, "The key in PEM, instead of a file, with ssl.keystore.certificate.chain."
    )
    ssl_keystore_certificate_chain: Password | None = key(
        Type.PASSWORD, None, ANY, "The certificate in PEM, with those that certify it."
    )
    ssl_key_password: Password | None = key(Type.PASSWORD, None, ANY, "Opens the key if it is encrypted.")
    ssl_protocol: str = key(Type.STRING, "TLSv1.3", PROTOCOL, "With TLSv1.2, connections never use TLS 1.3.")
    ssl_enabled_protocols: tuple[str, ...] = key(
        Type.LIST, ("TLSv1.2", "TLSv1.3"), ENABLED_PROTOCOLS, "The protocols that may be used."
    )
    ssl_cipher_suites: tuple[str, ...] = key(
        Type.LIST, (), ANY, "The cipher suites that may be used, by Java's names or by OpenSSL's."
    )
    ssl_endpoint_identification_algorithm: str = key(
        Type.STRING,
        "https",
        one_of("https", ""),
        "Whether the certificate of the registry must be for the host in the URL; empty: not.",
    )
    ssl_context: ssl.SSLContext | None = key(
        Type.CLASS, None, SSL_CONTEXT, "Used as it is, instead of all other ssl configs."
    )

    def tls(self) -> TlsSource:
        """The context of each connection with TLS. Raises ConfigException for files that cannot be used."""
        rows = [field for field in dataclasses.fields(self) if field.name.startswith("ssl_")]
        given = [row.name for row in rows if getattr(self, row.name) != row.default]
        if self.ssl_context is not None:
            if len(given) > 1:
                raise _refused(given[0].replace("_", "."), "ssl.context is there, too: leave one of them out")
            return FixedContext(self.ssl_context)
        if not given:
            https = (url for url in self.schema_registry_url if url.startswith("https:"))
            return FixedContext(system_trust(next(https, "http:")))
        checks_hostname = self.ssl_endpoint_identification_algorithm == "https"
        return renewed_client_context(self, "this client for its schema registry", checks_hostname=checks_hostname)


_PREFIX = "schema.registry.ssl."


def registry_config(given: Mapping[str, object]) -> RegistryConfig:
    """The configs, checked by themselves and together. Raises :class:`ConfigException`.

    ``schema.registry.ssl.`` is the same as ``ssl.``. Users and passwords are moved from URLs to basic.auth.user.info.
    """
    dotted = {name.replace("_", "."): value for name, value in given.items()}
    if "url" in dotted:
        raise ConfigException(f"unknown schema registry config 'url'; it is {_URL!r} here", name="url")
    named = {f"ssl.{name.removeprefix(_PREFIX)}" if name.startswith(_PREFIX) else name: dotted[name] for name in dotted}
    if len(named) < len(given):
        raise ConfigException("a schema registry config is given twice", name=_URL)
    config = parse(RegistryConfig, named, owner="schema registry")
    config = dataclasses.replace(config, bearer_auth_token_provider=_provider(config))
    return _with_user(_checked(config))


def _provider(config: RegistryConfig) -> object:
    provider = config.bearer_auth_token_provider
    return None if provider is None else made(provider, config=_PROVIDER)


def _checked(config: RegistryConfig) -> RegistryConfig:
    rows = {
        _USER_INFO: config.basic_auth_user_info,
        _TOKEN: config.bearer_auth_token,
        _PROVIDER: config.bearer_auth_token_provider,
        _ISSUER: config.bearer_auth_issuer_endpoint_url,
    }
    ways = [name for name, value in rows.items() if value is not None]
    if len(ways) > 1:
        raise _refused(ways[1], f"{ways[0]} is there, too: leave one of them out")
    bearer = bool(ways) and ways != [_USER_INFO]
    if config.bearer_auth_issuer_endpoint_url is None:
        for name, value in (
            (_CLIENT_ID, config.bearer_auth_client_id),
            (_SECRET, config.bearer_auth_client_secret),
            ("bearer.auth.scope", config.bearer_auth_scope),
        ):
            if value is not None:
                raise _refused(name, f"without {_ISSUER} it is never sent")
    else:
        _split(_ISSUER, config.bearer_auth_issuer_endpoint_url)
        if config.bearer_auth_client_id is None:
            raise _refused(_CLIENT_ID, f"it is missing: {_ISSUER} needs it")
        if config.bearer_auth_client_secret is None:
            raise _refused(_SECRET, f"it is missing: {_ISSUER} needs it")
    for name, value in (
        ("bearer.auth.logical.cluster", config.bearer_auth_logical_cluster),
        ("bearer.auth.identity.pool.id", config.bearer_auth_identity_pool_id),
    ):
        if value is not None and not bearer:
            raise _refused(name, "without a bearer token it is never sent")
    if config.basic_auth_user_info is not None and ":" not in config.basic_auth_user_info.value:
        raise _refused(_USER_INFO, "it is not of the form user:password")
    if config.bearer_auth_token is not None and not _sendable(config.bearer_auth_token.value):
        raise _refused(_TOKEN, "it is empty, or has blanks or characters that cannot be sent")
    return config


def _with_user(config: RegistryConfig) -> RegistryConfig:
    urls, found = [], set()
    for url in config.schema_registry_url:
        parts = _split(_URL, url)
        if parts.query or parts.fragment:
            raise _refused(_URL, f"{shown_url(url)} goes on with a query or a fragment: remove it")
        if parts.username is not None:
            found.add(f"{unquote(parts.username)}:{unquote(parts.password or '')}")
        urls.append(shown_url(url).rstrip("/"))
    if len(found) > 1:
        raise _refused(_URL, f"the URLs have different users: set {_USER_INFO}, and give the URLs without any")
    info = config.basic_auth_user_info
    if found:
        if info is not None or config.bearer_auth_token is not None:
            other = _TOKEN if info is None else _USER_INFO
            raise _refused(other, f"{_URL} has a user and a password, too: leave one of them out")
        info = Password(found.pop())
    return dataclasses.replace(config, schema_registry_url=tuple(urls), basic_auth_user_info=info)


def _split(config: str, url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts
    except ValueError:
        pass  # brackets without an address, or a port that is no number
    raise _refused(config, "it is not of the form https://host:port/path or http://host:port/path")


def _sendable(token: str) -> bool:
    return token.isascii() and token.isprintable() and bool(token) and " " not in token


def _refused(config: str, why: str) -> ConfigException:
    return ConfigException(f"config {config!r}: {why}", name=config)
