"""Tokens without a signature, by the options of ``sasl.jaas.config``: for tests against listeners that accept them.

Kafka's ``OAuthBearerUnsecuredLoginCallbackHandler``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from aioproducer.errors import ConfigException
from aioproducer.security.oauth.token import OAuthBearerToken

PREFIX = "unsecuredLogin"

_LIFETIME = "unsecuredLoginLifetimeSeconds"
_PRINCIPAL = "unsecuredLoginPrincipalClaimName"
_SCOPE = "unsecuredLoginScopeClaimName"
_STRING = "unsecuredLoginStringClaim_"
_NUMBER = "unsecuredLoginNumberClaim_"
_LIST = "unsecuredLoginListClaim_"
_EXTENSION = "unsecuredLoginExtension_"


def unsecured_token(config: str, options: Mapping[str, str], now: float) -> OAuthBearerToken:
    """A new token; ``now`` is POSIX time. Raises :class:`ConfigException` that names the option of ``config``."""
    lifetime = _number(config, _LIFETIME, options.get(_LIFETIME, "3600"))
    claims: dict[str, Any] = {"iat": now, "exp": now + lifetime}
    extensions = {}
    for name, value in options.items():
        if name.startswith(_STRING):
            claims[name.removeprefix(_STRING)] = value
        elif name.startswith(_NUMBER):
            claims[name.removeprefix(_NUMBER)] = _number(config, name, value)
        elif name.startswith(_LIST) and value:
            claims[name.removeprefix(_LIST)] = [one for one in value[1:].split(value[0]) if one]
        elif name.startswith(_EXTENSION):
            extensions[name.removeprefix(_EXTENSION)] = value
        elif name not in (_LIFETIME, _PRINCIPAL, _SCOPE):
            raise ConfigException(f"config {config!r}: it has an unknown option {name}", name=config)
    principal = claims.get(options.get(_PRINCIPAL, "sub"))
    if not isinstance(principal, str) or not principal:
        raise ConfigException(f'config {config!r}: it has no {_STRING}sub="name", who the client is', name=config)
    try:
        return OAuthBearerToken(f"{_part({'alg': 'none'})}.{_part(claims)}.", now + lifetime, principal, extensions)
    except ValueError as error:
        raise ConfigException(f"config {config!r}: {error}", name=config) from None


def _number(config: str, name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ConfigException(f"config {config!r}: the option {name} is no number", name=config) from None


def _part(content: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
