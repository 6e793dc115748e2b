"""The libraries of the extra ``oauth``, imported when they are needed."""

from __future__ import annotations

from types import ModuleType

from aioproducer.errors import ConfigException

_EXTRA = "pip install 'aioproducer[oauth]'"


def httpx() -> ModuleType:
    """The library that speaks HTTP; a :class:`ConfigException` says how to get it."""
    try:
        import httpx
    except ImportError as missing:
        raise ConfigException(
            f"an identity provider is asked by the library httpx: {_EXTRA}", name="sasl.mechanism"
        ) from missing
    return httpx


def pyjwt() -> ModuleType:
    """The library that signs and verifies JWTs; a :class:`ConfigException` says how to get it."""
    try:
        import cryptography  # noqa: F401 - PyJWT can be installed without it, and then lacks these algorithms
        import jwt
    except ImportError as missing:
        raise ConfigException(
            f"JWTs are signed and verified by the library PyJWT with cryptography: {_EXTRA}", name="sasl.mechanism"
        ) from missing
    return jwt
