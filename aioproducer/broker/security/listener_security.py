"""The security of a listener: what its clients must prove before their requests are handled."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.listeners import LISTENER_STORES
from aioproducer.broker.security.authentication_metrics import AuthenticationMetrics
from aioproducer.broker.security.failed_logins import FailedLogins
from aioproducer.broker.security.jwks import CONFIG, Jwks, jwks
from aioproducer.broker.security.oauth_bearer_server import OAuthBearerSaslServer
from aioproducer.broker.security.sasl_server_authenticator import SaslServerAuthenticator, SaslServers
from aioproducer.broker.security.sasl_servers import PlainSaslServer, SaslServer, ScramSaslServer
from aioproducer.broker.security.scram_credentials import ScramCredentials, ScramMechanism
from aioproducer.broker.security.tls_handshake import AlertingContext
from aioproducer.broker.security.token_validators import (
    SignedTokenValidator,
    TokenValidator,
    UnsecuredTokenValidator,
)
from aioproducer.errors import ConfigException
from aioproducer.security.oauth.libraries import pyjwt
from aioproducer.security.sasl import OAUTHBEARER, PLAIN, scramp
from aioproducer.security.tls.contexts import server_context
from aioproducer.security.tls.settings import store_files
from aioproducer.security.tls.sources import ContextFactory, RenewedContext
from aioproducer.security.tls.tls_source import TlsSource

log = logging.getLogger(__name__)


class ListenerSecurity:
    """The security of one listener of a node, whose own configs override the broker's.

    Raises :class:`ConfigException` if the configs ask for something that is not available here.
    """

    def __init__(self, listener: str, config: BrokerConfig, scram: ScramCredentials) -> None:
        self._listener = listener
        self.protocol = config.listening.protocols[listener]
        self.metrics = AuthenticationMetrics()
        self.failed_logins = FailedLogins(listener)
        self.is_sasl = self.protocol.startswith("SASL_")
        config = config.on_listener(listener)
        self._stores = _stores(config)
        self._tls = self._source(config)
        # The same time-out as for requests that arrive too slowly.
        self._handshake_timeout = max(config.socket_request_receive_timeout_ms, 0) / 1000
        self._max_reauth_ms = config.connections_max_reauth_ms
        self._servers: SaslServers = {}
        self._keys: Jwks | None = None
        if self.is_sasl:
            self._servers = _servers(listener, config, scram)
            if OAUTHBEARER in config.sasl_enabled_mechanisms:
                self._keys = _keys(config)
                validator = _token_validator(listener, config, self._keys)
                self._servers = {**self._servers, OAUTHBEARER: partial(OAuthBearerSaslServer, validator, time.time)}
        self.max_request_size = self.max_receive_size = config.socket_request_max_bytes
        """The largest request; ``max_receive_size`` until the client has authenticated."""
        if self.is_sasl:
            self.max_receive_size = min(config.sasl_server_max_receive_size, self.max_request_size)

    async def start(self) -> None:
        """Returns when it can authenticate clients: the keys of tokens are requested before."""
        if self._keys is not None:
            await self._keys.start()

    async def close(self) -> None:
        """Ends its task, if it has one."""
        if self._keys is not None:
            await self._keys.close()

    def _source(self, config: BrokerConfig) -> TlsSource | None:
        """Where the listener's contexts come from. Raises :class:`ConfigException`."""
        if not self.uses_tls:
            return None
        if config.ssl_engine_factory_class is not None:
            return ContextFactory(config.ssl_engine_factory_class)
        make = partial(server_context, config, client_auth=config.ssl_client_auth, context_class=AlertingContext)
        return RenewedContext(make, store_files(config), f"listener {self._listener}")

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol.endswith("SSL")

    def validate_reconfiguration(self, config: BrokerConfig) -> None:
        """Raises :class:`ConfigException` if the listener cannot use the new certificates."""
        config = config.on_listener(self._listener)
        if _stores(config) != self._stores:
            self._source(config)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Uses new certificates for new connections; open connections keep theirs."""
        config = config.on_listener(self._listener)
        stores = _stores(config)
        if stores != self._stores:
            self._tls, self._stores = self._source(config), stores

    async def transport_options(self) -> dict[str, Any]:
        """The TLS options of ``connect_accepted_socket``: with the certificates that the files have now."""
        context = None if self._tls is None else await self._tls.context()
        return {"ssl": context, "ssl_handshake_timeout": self._handshake_timeout or None}

    def authenticator(self) -> SaslServerAuthenticator | None:
        """The authenticator of a new connection; None if clients need not authenticate."""
        if not self.is_sasl:
            return None
        return SaslServerAuthenticator(self._servers, self._max_reauth_ms, self.metrics, self.failed_logins)


def _stores(config: BrokerConfig) -> list[object]:
    return [getattr(config, name.replace(".", "_")) for name in LISTENER_STORES]


def _servers(listener: str, config: BrokerConfig, scram: ScramCredentials) -> SaslServers:
    users = config.plain_users(listener)
    servers: dict[str, Callable[[], SaslServer]] = {}
    for name in config.sasl_enabled_mechanisms:
        if name == PLAIN:
            servers[name] = partial(PlainSaslServer, users)
        elif name != OAUTHBEARER:
            scramp()  # a missing library fails the start, not the first client
            mechanism = ScramMechanism.of(name)
            servers[name] = partial(ScramSaslServer, name, partial(scram.proving, mechanism=mechanism))
    return servers


def _keys(config: BrokerConfig) -> Jwks | None:
    url = config.sasl_oauthbearer_jwks_endpoint_url
    if url is None:
        return None
    pyjwt()  # now, and not with the first client
    return jwks(
        url,
        config.sasl_oauthbearer_jwks_endpoint_refresh_ms,
        config.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms,
        config.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms,
    )


def _token_validator(listener: str, config: BrokerConfig, keys: Jwks | None) -> TokenValidator:
    if keys is not None:
        return SignedTokenValidator(
            keys.candidates,
            config.sasl_oauthbearer_expected_issuer,
            config.sasl_oauthbearer_expected_audience,
            config.sasl_oauthbearer_clock_skew_seconds,
            config.sasl_oauthbearer_sub_claim_name,
            config.sasl_oauthbearer_scope_claim_name,
        )
    options = config.token_options(listener)
    if options is None:
        raise ConfigException(
            f"config {CONFIG!r} is missing: listener {listener} needs it for {OAUTHBEARER}. For tests with "
            f"unsigned tokens, give listener.name.{listener.lower()}.oauthbearer.sasl.jaas.config instead",
            name=CONFIG,
        )
    log.warning("listener %s accepts unsigned tokens: %s is not set", listener, CONFIG)
    return UnsecuredTokenValidator(options)
