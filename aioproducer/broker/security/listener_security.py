"""What a listener demands of its clients before it handles their requests."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.listeners import LISTENER_STORES
from aioproducer.broker.security.authentication_metrics import AuthenticationMetrics
from aioproducer.broker.security.failed_logins import FailedLogins
from aioproducer.broker.security.sasl_server_authenticator import SaslServerAuthenticator, SaslServers
from aioproducer.broker.security.sasl_servers import PlainSaslServer, SaslServer, ScramSaslServer
from aioproducer.broker.security.scram_credentials import ScramCredentials, ScramMechanism
from aioproducer.broker.security.tls_handshake import AlertingContext
from aioproducer.security.sasl import PLAIN, scramp
from aioproducer.security.tls import server_context


class ListenerSecurity:
    """Of one listener of a node, which may have configs in place of the broker's.

    Raises :class:`ConfigException` if what they ask for cannot be had here.
    """

    def __init__(self, listener: str, config: BrokerConfig, scram: ScramCredentials) -> None:
        self._listener = listener
        self.protocol = config.listening.protocols[listener]
        self.metrics = AuthenticationMetrics()
        self.failed_logins = FailedLogins(listener)
        self.is_sasl = self.protocol.startswith("SASL_")
        config = config.on_listener(listener)
        self._stores = _stores(config)
        self.tls = self._tls(config)
        # As for a request that arrives too slowly.
        self._handshake_timeout = max(config.socket_request_receive_timeout_ms, 0) / 1000
        self._max_reauth_ms = config.connections_max_reauth_ms
        self._servers: SaslServers = _servers(listener, config, scram) if self.is_sasl else {}
        self.max_request_size = self.max_receive_size = config.socket_request_max_bytes
        """The largest request; ``max_receive_size`` until the client has authenticated."""
        if self.is_sasl:
            self.max_receive_size = min(config.sasl_server_max_receive_size, self.max_request_size)

    def _tls(self, config: BrokerConfig) -> ssl.SSLContext | None:
        if not self.protocol.endswith("SSL"):
            return None
        return server_context(config, client_auth=config.ssl_client_auth, context_class=AlertingContext)

    def validate_reconfiguration(self, config: BrokerConfig) -> None:
        """Raises :class:`ConfigException` for certificates that it could not have."""
        config = config.on_listener(self._listener)
        if _stores(config) != self._stores:
            self._tls(config)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Has other certificates from now on; connections that are there keep theirs."""
        config = config.on_listener(self._listener)
        stores = _stores(config)
        if stores != self._stores:
            self.tls, self._stores = self._tls(config), stores

    @property
    def transport_options(self) -> dict[str, Any]:
        """The TLS options of ``connect_accepted_socket``."""
        return {"ssl": self.tls, "ssl_handshake_timeout": self._handshake_timeout or None}

    def authenticator(self) -> SaslServerAuthenticator | None:
        """For a new connection; None if its client need not authenticate."""
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
        else:
            scramp()  # now, and not with the first client
            mechanism = ScramMechanism.of(name)
            servers[name] = partial(ScramSaslServer, name, partial(scram.proving, mechanism=mechanism))
    return servers
