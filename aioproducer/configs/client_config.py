"""The configs that every client of a cluster has, with Kafka's names, types, defaults and ranges."""

from __future__ import annotations

import dataclasses
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from aioproducer.configs.config_def import (
    ANY,
    MAX_NAME,
    NON_EMPTY,
    Type,
    Valid,
    at_least,
    between,
    bytes_of_text,
    key,
    one_of,
    one_of_in_any_case,
    parse,
    table,
)
from aioproducer.configs.plugins import made
from aioproducer.configs.providers import resolved
from aioproducer.configs.tls_values import CONTEXT_FACTORY, ENABLED_PROTOCOLS, PROTOCOL, STORE_TYPE
from aioproducer.configs.unsupported import BY_CLIENTS
from aioproducer.errors import ConfigException
from aioproducer.security.credentials import credentials_of
from aioproducer.security.oauth.java_classes import DEFAULT_RETRIEVER, LOGIN_HANDLERS, RETRIEVERS, VALIDATORS
from aioproducer.security.password import Password
from aioproducer.security.sasl import CLIENT_MECHANISMS, GSSAPI, OAUTHBEARER, SCRAM_MECHANISMS, Credentials, check_scram
from aioproducer.security.tls.tls_source import TlsSource

# What only secure connections need is imported when there is one: it takes as long as a tenth of the package.
if TYPE_CHECKING:
    from aioproducer.security.kerberos.settings import KerberosSettings
    from aioproducer.security.oauth.settings import OAuthSettings

MECHANISM = Valid(
    "", lambda mechanism: True, CLIENT_MECHANISMS
)  # what is wrong with another one, credentials_of() knows
_PROVIDER = "sasl.oauth.token.provider"
_OF_LOGINS = ("sasl.oauth", "sasl.login.", "sasl.kerberos.")
TOKEN_PROVIDER = Valid(
    "a callable, or an object with a method token", lambda plugin: callable(plugin) or hasattr(plugin, "token")
)
ALGORITHM = Valid(
    "one of RS256, ES256", lambda name: name.upper() in ("RS256", "ES256"), ("RS256", "ES256", "rs256", "es256")
)
RETRIEVER = Valid(
    "one of DefaultJwtRetriever, ClientCredentialsJwtRetriever, JwtBearerJwtRetriever, FileJwtRetriever in the package"
    " org.apache.kafka.common.security.oauthbearer",
    lambda name: name in RETRIEVERS,
)
KEY_MANAGER = one_of("SunX509", "NewSunX509", "PKIX")
TRUST_MANAGER = one_of("PKIX", "SunX509")
VALIDATOR = Valid(
    "DefaultJwtValidator or ClientJwtValidator in the package org.apache.kafka.common.security.oauthbearer",
    lambda name: name in VALIDATORS,
)
LOGIN_HANDLER = Valid("one of " + ", ".join(LOGIN_HANDLERS), lambda name: name in LOGIN_HANDLERS)
SSL_CONTEXT = Valid("an ssl.SSLContext", lambda context: isinstance(context, ssl.SSLContext))


# The methods would take milliseconds to make. Each client has a class of its own, which makes them.
@dataclass(init=False, frozen=True, slots=True, eq=False, repr=False)
class ClientConfig:
    """The configs of every client (Kafka's ``CommonClientConfigs``). Times are in milliseconds, sizes in bytes."""

    bootstrap_servers: tuple[str, ...] = key(
        Type.LIST, dataclasses.MISSING, NON_EMPTY, "host:port pairs to find the cluster by, separated by commas."
    )
    config_providers: tuple[str, ...] = key(
        Type.LIST,
        (),
        ANY,
        "Where references such as `${file:/path:key}` in values of configs are looked up: file, directory, env, and "
        "names with a config `config.providers.NAME.class`; see [security.md](security.md#secrets-in-configs).",
    )
    client_dns_lookup: str = key(
        Type.STRING,
        "use_all_dns_ips",
        one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        "Every address of a host is tried; the second also replaces bootstrap servers by their canonical names.",
    )
    client_id: str = key(
        Type.STRING,
        "aioproducer",
        bytes_of_text(0, MAX_NAME),
        "Sent with every request, for the broker's logs and quotas.",
    )
    request_timeout_ms: int = key(Type.INT, 30000, at_least(0), "How long one request may stay unanswered.")
    retry_backoff_ms: int = key(
        Type.LONG, 100, at_least(0), "Wait before the first retry; doubles with each further one."
    )
    retry_backoff_max_ms: int = key(Type.LONG, 1000, at_least(0), "Longest wait before a retry.")
    metadata_max_age_ms: int = key(Type.LONG, 300000, at_least(0), "Metadata older than this is refreshed.")
    metadata_recovery_strategy: str = key(
        Type.STRING,
        "rebootstrap",
        one_of_in_any_case("none", "rebootstrap"),
        "Whether to go back to bootstrap.servers when none of the known brokers can be used.",
    )
    metadata_recovery_rebootstrap_trigger_ms: int = key(
        Type.LONG,
        300000,
        at_least(0),
        "If the known brokers give no metadata for this long, they are forgotten and the bootstrap servers are asked.",
    )
    reconnect_backoff_ms: int = key(Type.LONG, 50, at_least(0), "Wait before connecting again; doubles each time.")
    reconnect_backoff_max_ms: int = key(Type.LONG, 1000, at_least(0), "Longest wait before connecting again.")
    socket_connection_setup_timeout_ms: int = key(
        Type.LONG, 10000, at_least(0), "How long setting up one connection may take; doubles with each failure."
    )
    socket_connection_setup_timeout_max_ms: int = key(
        Type.LONG, 30000, at_least(0), "Longest time allowed for setting up one connection."
    )
    connections_max_idle_ms: int = key(Type.LONG, 540000, at_least(-1), "Idle connections are closed; -1 means never.")
    send_buffer_bytes: int = key(
        Type.INT,
        131072,
        at_least(-1),
        "SO_SNDBUF; -1 leaves it to the system. If it is not given, this is the size at first: a producer doubles it, "
        "up to four times, on fast and long lines, and halves it when such a line becomes slow.",
    )
    receive_buffer_bytes: int = key(Type.INT, 32768, at_least(-1), "SO_RCVBUF; -1 leaves it to the system.")
    security_protocol: str = key(
        Type.STRING,
        "PLAINTEXT",
        one_of_in_any_case("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
        "Whether connections are encrypted (SSL), and whether the client authenticates by SASL; see "
        "[security.md](security.md).",
    )
    sasl_mechanism: str | None = key(
        Type.STRING, None, MECHANISM, f"One of {', '.join(CLIENT_MECHANISMS)}. Required with SASL."
    )
    sasl_jaas_config: Password | None = key(
        Type.PASSWORD,
        None,
        ANY,
        "Username and password, or what OAUTHBEARER or GSSAPI needs, in the notation of Java's clients.",
    )
    sasl_plain_username: str | None = key(
        Type.STRING, None, NON_EMPTY, "The username, instead of sasl.jaas.config, for PLAIN and SCRAM."
    )
    sasl_plain_password: Password | None = key(Type.PASSWORD, None, ANY, "The password that goes with it.")
    sasl_oauth_token_provider: Any = key(
        Type.CLASS,
        None,
        TOKEN_PROVIDER,
        "Gets tokens for OAUTHBEARER: a callable that returns an `aioproducer.OAuthBearerToken` or a JWT as str, or an "
        "object with such a method `token`; also a class, or the import path of any of these. A coroutine function is "
        "awaited, any other is called in a thread.",
    )
    sasl_oauthbearer_token_endpoint_url: str | None = key(
        Type.STRING,
        None,
        ANY,
        "The identity provider's token endpoint, https://… (or http://…), or a file with a token, file:///….",
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = key(
        Type.STRING, None, ANY, "What the identity provider knows this client by."
    )
    sasl_oauthbearer_client_credentials_client_secret: Password | None = key(
        Type.PASSWORD, None, ANY, "The secret that goes with it."
    )
    sasl_oauthbearer_scope: str | None = key(Type.STRING, None, ANY, "The scope that tokens are requested for.")
    sasl_oauthbearer_sub_claim_name: str = key(
        Type.STRING, "sub", ANY, "The claim that names the client, for messages."
    )
    sasl_oauthbearer_header_urlencode: bool = key(
        Type.BOOLEAN, False, ANY, "URL-encode client id and secret for the identity provider, as RFC 6749 wants it."
    )
    sasl_oauthbearer_jwt_retriever_class: str = key(
        Type.STRING,
        DEFAULT_RETRIEVER,
        RETRIEVER,
        "How tokens are requested. The default reads a file or sends client credentials, by the URL; "
        "JwtBearerJwtRetriever exchanges an assertion for a token.",
    )
    sasl_oauthbearer_jwt_validator_class: str = key(
        Type.STRING,
        VALIDATORS[0],
        VALIDATOR,
        "How tokens are looked at before they are sent: they need an expiry, and are not verified.",
    )
    sasl_login_callback_handler_class: str | None = key(
        Type.STRING,
        None,
        LOGIN_HANDLER,
        "Kafka's own handlers, which many a file names for OAUTHBEARER; they do what the client does without one.",
    )
    sasl_oauthbearer_assertion_algorithm: str = key(
        Type.STRING, "RS256", ALGORITHM, "The algorithm that signs assertions."
    )
    sasl_oauthbearer_assertion_claim_aud: str | None = key(Type.STRING, None, ANY, "The audience of assertions.")
    sasl_oauthbearer_assertion_claim_exp_seconds: int = key(
        Type.INT, 300, between(0, 86400), "How long an assertion is valid."
    )
    sasl_oauthbearer_assertion_claim_iss: str | None = key(Type.STRING, None, ANY, "The issuer of assertions.")
    sasl_oauthbearer_assertion_claim_jti_include: bool = key(
        Type.BOOLEAN, False, ANY, "Give each assertion a unique id."
    )
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = key(
        Type.INT, 60, between(0, 3600), "How long before it is made an assertion is valid already: clocks differ."
    )
    sasl_oauthbearer_assertion_claim_sub: str | None = key(Type.STRING, None, ANY, "The subject of assertions.")
    sasl_oauthbearer_assertion_file: str | None = key(
        Type.STRING, None, ANY, "A file with an assertion that is signed already; it is read for each request."
    )
    sasl_oauthbearer_assertion_private_key_file: str | None = key(
        Type.STRING, None, ANY, "The key that signs assertions, in PEM; it is read for each request."
    )
    sasl_oauthbearer_assertion_private_key_passphrase: Password | None = key(
        Type.PASSWORD, None, ANY, "The password of the key, if it is encrypted."
    )
    sasl_oauthbearer_assertion_template_file: str | None = key(
        Type.STRING, None, ANY, 'Further headers and claims of assertions, in JSON: `{"header": {}, "payload": {}}`.'
    )
    sasl_login_connect_timeout_ms: int | None = key(
        Type.INT, None, at_least(0), "How long a connection to the identity provider may take; 10000 if not set."
    )
    sasl_login_read_timeout_ms: int | None = key(
        Type.INT, None, at_least(0), "How long the identity provider may take to answer; 10000 if not set."
    )
    sasl_login_retry_backoff_ms: int = key(
        Type.LONG, 100, at_least(0), "Wait before a token is requested again; doubles with each further failure."
    )
    sasl_login_retry_backoff_max_ms: int = key(Type.LONG, 10000, at_least(0), "Longest such wait.")
    sasl_login_refresh_window_factor: float = key(
        Type.DOUBLE, 0.8, between(0.5, 1.0), "A token is renewed after this part of its lifetime."
    )
    sasl_login_refresh_window_jitter: float = key(
        Type.DOUBLE, 0.05, between(0.0, 0.25), "The most that is added to this part, at random."
    )
    sasl_login_refresh_min_period_seconds: int = key(
        Type.SHORT, 60, between(0, 900), "The least time between two renewals, if the lifetime allows it."
    )
    sasl_login_refresh_buffer_seconds: int = key(
        Type.SHORT, 300, between(0, 3600), "The least time from a renewal to the end of a token, if possible."
    )
    sasl_kerberos_service_name: str | None = key(
        Type.STRING,
        None,
        ANY,
        "The first part of the brokers' Kerberos principals, for GSSAPI: kafka in kafka/broker.example@EXAMPLE.COM.",
    )
    sasl_kerberos_ticket_renew_window_factor: float = key(
        Type.DOUBLE, 0.8, between(0.0, 1.0), "A Kerberos ticket is renewed after this part of its lifetime."
    )
    sasl_kerberos_ticket_renew_jitter: float = key(
        Type.DOUBLE, 0.05, between(0.0, 1.0), "The most that is added to this part, at random."
    )
    sasl_kerberos_min_time_before_relogin: int = key(
        Type.LONG,
        60000,
        at_least(0),
        "The least time between two renewals of a ticket, in milliseconds, if its lifetime allows it.",
    )
    ssl_context: Any = key(
        Type.CLASS, None, SSL_CONTEXT, "An `ssl.SSLContext` for the connections, instead of all other `ssl.` configs."
    )
    ssl_engine_factory_class: Any = key(
        Type.CLASS,
        None,
        CONTEXT_FACTORY,
        "Makes an `ssl.SSLContext` for each connection, instead of all other `ssl.` configs: a callable without "
        "arguments, a class whose objects are such, or the import path of either. It is called in a thread.",
    )
    ssl_truststore_type: str | None = key(
        Type.STRING,
        None,
        STORE_TYPE,
        "The format of the trust store. If it is not given, the file decides; JKS and PKCS12 stand for each other.",
    )
    ssl_truststore_location: str | None = key(
        Type.STRING,
        None,
        ANY,
        "A file with the certificates of the authorities to trust for brokers; without one, the system's are trusted.",
    )
    ssl_truststore_password: Password | None = key(
        Type.PASSWORD, None, ANY, "The password of a trust store in Java's formats."
    )
    ssl_truststore_certificates: Password | None = key(
        Type.PASSWORD, None, ANY, "The certificates to trust as PEM text, instead of a file."
    )
    ssl_keystore_type: str | None = key(
        Type.STRING,
        None,
        STORE_TYPE,
        "The format of the key store. If it is not given, the file decides; JKS and PKCS12 stand for each other.",
    )
    ssl_keystore_location: str | None = key(
        Type.STRING, None, ANY, "A file with the client's key and certificates, for brokers that ask for them."
    )
    ssl_keystore_password: Password | None = key(
        Type.PASSWORD, None, ANY, "The password of a key store in Java's formats."
    )
    ssl_keystore_key: Password | None = key(Type.PASSWORD, None, ANY, "The key as PEM text, instead of a file.")
    ssl_keystore_certificate_chain: Password | None = key(Type.PASSWORD, None, ANY, "The certificates that go with it.")
    ssl_key_password: Password | None = key(
        Type.PASSWORD,
        None,
        ANY,
        "The password of the key: in PEM if it is encrypted, in JKS if it is not the key store's.",
    )
    ssl_protocol: str = key(Type.STRING, "TLSv1.3", PROTOCOL, "With TLSv1.2, connections never use TLS 1.3.")
    ssl_enabled_protocols: tuple[str, ...] = key(
        Type.LIST,
        ("TLSv1.2", "TLSv1.3"),
        ENABLED_PROTOCOLS,
        "The protocols that may be used. Those older than TLSv1.2 may be named, and are never used: they are insecure.",
    )
    ssl_cipher_suites: tuple[str, ...] = key(
        Type.LIST,
        (),
        ANY,
        "The cipher suites that may be used, by Java's names or by OpenSSL's; empty: those that OpenSSL considers "
        "secure. A protocol without any of them is not used.",
    )
    ssl_keymanager_algorithm: str = key(
        Type.STRING, "SunX509", KEY_MANAGER, "Java's ways of choosing a key, which come to the same here."
    )
    ssl_trustmanager_algorithm: str = key(
        Type.STRING, "PKIX", TRUST_MANAGER, "Java's ways of verifying certificates; OpenSSL verifies as PKIX demands."
    )
    ssl_endpoint_identification_algorithm: str = key(
        Type.STRING,
        "https",
        Valid("https, or empty", lambda value: value.lower() in ("https", ""), ("https", "")),
        "With https, a broker's certificate must be for its host name; empty turns the check off.",
    )

    tls: TlsSource | None = field(default=None, repr=False)
    """Has the context of each connection with TLS; not a config of the user's."""

    @property
    def credentials(self) -> Credentials | OAuthSettings | KerberosSettings | None:
        """What the client authenticates with, or gets it from; None without SASL. Raises :class:`ConfigException`."""
        credentials = credentials_of(
            self.security_protocol,
            self.sasl_mechanism,
            self.sasl_jaas_config,
            self.sasl_plain_username,
            self.sasl_plain_password,
        )
        if self.uses_tokens:
            from aioproducer.security.oauth.settings import oauth_settings

            return oauth_settings(self)
        if self.uses_tickets:
            from aioproducer.security.kerberos.settings import kerberos_settings

            return kerberos_settings(self)
        return credentials

    @property
    def uses_tokens(self) -> bool:
        """Whether the client authenticates by OAUTHBEARER."""
        return self.security_protocol.upper().startswith("SASL_") and self.sasl_mechanism == OAUTHBEARER

    @property
    def uses_tickets(self) -> bool:
        """Whether the client authenticates by GSSAPI."""
        return self.security_protocol.upper().startswith("SASL_") and self.sasl_mechanism == GSSAPI

    @property
    def rebootstraps(self) -> bool:
        return self.metadata_recovery_strategy.lower() == "rebootstrap"

    # Only producers let their users choose these.

    @property
    def max_in_flight_requests_per_connection(self) -> int:
        return 100

    @property
    def max_request_size(self) -> int:
        return 1048576

    @property
    def metadata_max_idle_ms(self) -> int:
        return 300000


C = TypeVar("C", bound=ClientConfig)


def client_config(
    config_class: type[C],
    given: Mapping[str, object],
    *,
    owner: str,
    unsupported: Mapping[str, str] = BY_CLIENTS,
) -> C:
    """A client's configs, checked one by one; ``owner`` is the kind of client, for messages. ``unsupported`` are those
    that are refused by name, and why."""
    config = parse(config_class, resolved(given), unsupported=unsupported, owner=owner)
    config = _with_provider(config)
    credentials = config.credentials
    if isinstance(credentials, Credentials) and credentials.mechanism in SCRAM_MECHANISMS:
        check_scram(credentials)  # now, and not with the first connection
    return _with_tls(config)


def _with_provider(config: C) -> C:
    """With the token provider as an object. Raises :class:`ConfigException` for configs of tokens and tickets without
    effect."""
    rows = [row for name, row in table(type(config)).items() if name.startswith(_OF_LOGINS)]
    given = [row.name for row in rows if getattr(config, row.name.replace(".", "_")) != row.default]
    of_tickets = [name for name in given if name.startswith("sasl.kerberos.")]
    if of_tickets and not config.uses_tickets:
        raise ConfigException(
            f"config {of_tickets[0]!r} is for Kerberos, and sasl.mechanism is {config.sasl_mechanism} with "
            f"security.protocol={config.security_protocol}: set GSSAPI with SASL_SSL, or leave it out",
            name=of_tickets[0],
        )
    of_both = ("sasl.login.retry.backoff.ms", "sasl.login.retry.backoff.max.ms")
    given = [name for name in given if name not in of_tickets and not (config.uses_tickets and name in of_both)]
    if given and not config.uses_tokens:
        raise ConfigException(
            f"config {given[0]!r} is for tokens, and sasl.mechanism is {config.sasl_mechanism} with security.protocol="
            f"{config.security_protocol}: set OAUTHBEARER with SASL_SSL, or leave it out",
            name=given[0],
        )
    if config.sasl_oauth_token_provider is None:
        return config
    for name in given:
        if name.startswith("sasl.oauthbearer.") and name != "sasl.oauthbearer.sub.claim.name":
            raise ConfigException(f"config {name!r}: {_PROVIDER} is there, too: leave one of them out", name=name)
    provider = made(config.sasl_oauth_token_provider, config=_PROVIDER)
    if not TOKEN_PROVIDER.test(provider):
        raise ConfigException(f"config {_PROVIDER!r}: its objects must be {TOKEN_PROVIDER.text}", name=_PROVIDER)
    return dataclasses.replace(config, sasl_oauth_token_provider=provider)


def _with_tls(config: C) -> C:
    """With the source of contexts: files are read now, and not with the first connection."""
    rows = [row for name, row in table(type(config)).items() if name.startswith("ssl.")]
    given = [row.name for row in rows if getattr(config, row.name.replace(".", "_")) != row.default]
    if not config.security_protocol.upper().endswith("SSL"):
        if given:
            raise ConfigException(
                f"config {given[0]!r} is for connections with TLS, and security.protocol is {config.security_protocol}:"
                " set SSL or SASL_SSL, or leave it out",
                name=given[0],
            )
        return config
    from aioproducer.security.tls.sources import FACTORY, ContextFactory, FixedContext, renewed_client_context

    if config.ssl_context is None and config.ssl_engine_factory_class is None:
        checks_hostname = config.ssl_endpoint_identification_algorithm != ""
        tls = renewed_client_context(config, "this client", checks_hostname=checks_hostname)
        return dataclasses.replace(config, tls=tls)
    if len(given) > 1:
        raise ConfigException(f"config {given[1]!r}: {given[0]} is there, too: leave one of them out", name=given[1])
    if config.ssl_context is not None:
        return dataclasses.replace(config, tls=FixedContext(config.ssl_context))
    return dataclasses.replace(config, tls=ContextFactory(made(config.ssl_engine_factory_class, config=FACTORY)))
