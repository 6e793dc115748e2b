"""Credentials of this client, as headers of its requests to a registry."""

from __future__ import annotations

import base64
import time
from collections.abc import Awaitable, Callable, Mapping
from random import Random

from aioproducer.schema_registry.client.registry_config import RegistryConfig
from aioproducer.schema_registry.client.single_flight import SingleFlight
from aioproducer.security.oauth.http import HttpLimits, system_trust
from aioproducer.security.oauth.retrieval import retrieval
from aioproducer.security.oauth.settings import OAuthSettings, TokenEndpoint, TokenProvider
from aioproducer.security.oauth.token import OAuthBearerToken
from aioproducer.security.password import without_secrets
from aioproducer.security.refresh_window import RefreshWindow
from aioproducer.security.tls.sources import FixedContext

Headers = Mapping[str, str]


class RegistryCredentials:
    """Basic or bearer authentication, or neither. Tokens are renewed before they expire; ``wall`` is the POSIX time."""

    def __init__(self, config: RegistryConfig, limits: HttpLimits, wall: Callable[[], float] = time.time) -> None:
        self._fixed: dict[str, str] = {}
        self._secrets: list[str] = []
        self._tokens: _Tokens | None = None
        if (info := config.basic_auth_user_info) is not None:
            encoded = base64.b64encode(info.value.encode()).decode()
            self._fixed["Authorization"] = f"Basic {encoded}"
            self._secrets = [info.value, encoded, info.value.partition(":")[2]]
        elif config.bearer_auth_token is not None:
            self._fixed["Authorization"] = f"Bearer {config.bearer_auth_token.value}"
            self._secrets = [config.bearer_auth_token.value]
        elif (source := _source(config)) is not None:
            settings = OAuthSettings(source, limits, RefreshWindow(), "sub", 0, 0)
            self._tokens = _Tokens(retrieval(settings, wall), wall)
        if config.bearer_auth_logical_cluster is not None:
            self._fixed["target-sr-cluster"] = config.bearer_auth_logical_cluster
        if config.bearer_auth_identity_pool_id is not None:
            self._fixed["Confluent-Identity-Pool-Id"] = config.bearer_auth_identity_pool_id

    async def headers(self) -> Headers:
        """Raises what an attempt to get a token raises: TokenUnavailableException if it makes sense to try again, and
        another KafkaError if not."""
        if self._tokens is None:
            return self._fixed
        token = (await self._tokens.token()).value
        self._secrets = [token]
        return {**self._fixed, "Authorization": f"Bearer {token}"}

    def hidden(self, words: str) -> str:
        """A registry's words without the secrets that it was sent."""
        return without_secrets(words, self._secrets)

    def refused(self, headers: Headers) -> bool:
        """The registry has refused these; whether the next ones will differ."""
        return self._tokens is not None and self._tokens.refused(headers["Authorization"].removeprefix("Bearer "))


def _source(config: RegistryConfig) -> TokenEndpoint | TokenProvider | None:
    if config.bearer_auth_token_provider is not None:
        return TokenProvider(config.bearer_auth_token_provider)
    if (url := config.bearer_auth_issuer_endpoint_url) is None:
        return None
    return TokenEndpoint(
        url,
        FixedContext(system_trust(url)),
        config.bearer_auth_client_id,
        config.bearer_auth_client_secret,
        config.bearer_auth_scope,
    )


class _Tokens:
    """The present token, until it is to be renewed."""

    def __init__(self, retrieve: Callable[[], Awaitable[OAuthBearerToken]], wall: Callable[[], float]) -> None:
        self._retrieve = retrieve
        self._wall = wall
        self._window = RefreshWindow()
        self._flight = SingleFlight()
        self._token: OAuthBearerToken | None = None
        self._renew_at = 0.0

    async def token(self) -> OAuthBearerToken:
        if self._token is not None and self._wall() < self._renew_at:
            return self._token
        return await self._flight.result("token", self._renewed)

    async def _renewed(self) -> OAuthBearerToken:
        token, now = await self._retrieve(), self._wall()
        self._token = token
        self._renew_at = 0.0 if token.expires_at is None else self._window.refresh_at(now, token.expires_at, Random())
        return token

    def refused(self, value: str) -> bool:
        if self._token is not None and self._token.value == value:
            self._token = None
        return True
