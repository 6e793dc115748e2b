"""The public keys that tokens are signed with: a JWKS (RFC 7517) from a file or an identity provider."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote, urlsplit

from aioproducer.errors import ConfigException
from aioproducer.errors.printable import printable
from aioproducer.security.oauth.http import HttpFailed, HttpLimits, ask, shown_url, system_trust
from aioproducer.security.oauth.libraries import httpx, pyjwt
from aioproducer.tasks.own_task import start_task
from aioproducer.timing.backoff import ExponentialBackoff

log = logging.getLogger(__name__)

CONFIG = "sasl.oauthbearer.jwks.endpoint.url"

EXPEDITED = 10.0
"""Seconds between two requests for keys that tokens with unknown keys may cause: anybody can send such tokens."""

MOST_KEYS = 100
LARGEST_FILE = 1 << 20

_ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""By the type of the key. Secret keys are excluded: a party that verifies with one could sign with it."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """``key`` is the library's; ``algorithms`` are those it may verify."""

    kid: str | None
    key: Any
    algorithms: Sequence[str]


def parse_jwks(text: bytes) -> list[VerificationKey]:
    """The keys for signatures in a JWKS. Raises ValueError."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(isinstance(jwk, dict) for jwk in listed):
        raise ValueError('it is not of the form {"keys": [{…}]}')
    keys = [key for jwk in listed[:MOST_KEYS] if (key := _key(jwk)) is not None]
    if not keys:
        raise ValueError("it has no public key for signatures")
    return keys


def _key(jwk: Mapping[str, Any]) -> VerificationKey | None:
    library = pyjwt()
    kid, algorithm, use = jwk.get("kid"), jwk.get("alg"), jwk.get("use", "sig")
    algorithms: Sequence[str] = _ALGORITHMS.get(str(jwk.get("kty")), ())
    if algorithm is not None:
        algorithms = tuple(name for name in algorithms if name == algorithm)
    if use != "sig" or not algorithms:
        return None
    try:
        key = library.PyJWK(jwk, algorithms[0]).key
    except (library.PyJWTError, LookupError, TypeError, ValueError):
        return None  # of a kind that the library does not know; others may be fine
    return VerificationKey(kid if isinstance(kid, str) else None, key, algorithms)


class Jwks:
    """The keys of one listener, which are requested again every ``refresh`` seconds, and for a token whose key is
    unknown. Failed requests are repeated with ``backoff``; the keys that are there stay in use.

    Raises :class:`ConfigException` for a URL that is none, or a file without keys.
    """

    def __init__(self, url: str, refresh: float, backoff: ExponentialBackoff) -> None:
        self._url = url
        self._refresh = refresh
        self._backoff = backoff
        self._keys: Sequence[VerificationKey] = ()
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._failures = 0
        """Requests that failed in a row."""
        self._file = _file(url)
        if self._file is None:
            httpx()
            self._context = system_trust(url)
        else:
            self._keys = _read(self._file)

    async def start(self) -> None:
        """Returns after the first request. Without keys no token is valid, until a later request succeeds."""
        if self._file is None:
            await self._update()
            self._task = start_task(self._run(), "aioproducer keys of tokens")

    async def close(self) -> None:
        """Ends the task; raises what it raised, which is a bug."""
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()

    def candidates(self, kid: str | None, algorithm: str) -> list[VerificationKey]:
        """The keys that may have signed a token with this header. If its key is unknown, the keys are requested
        again."""
        found = [key for key in self._keys if algorithm in key.algorithms and (kid is None or key.kid == kid)]
        if not found:
            self._wanted.set()
        return found

    async def _run(self) -> None:
        while True:
            if self._failures:
                await asyncio.sleep(self._backoff.wait(self._failures))
            else:
                await self._until_due()
            await self._update()

    async def _update(self) -> None:
        try:
            self._keys = await self._request()
        except (HttpFailed, ValueError) as error:
            self._failures += 1
            if self._failures == 1:
                text = "the keys of tokens (%s) cannot be had: %s; %d are known; trying again"
                log.warning(text, CONFIG, error, len(self._keys))
            return
        if self._failures:
            log.info("the keys of tokens were received from %s again", shown_url(self._url))
        self._failures = 0

    async def _until_due(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._refresh
        await asyncio.sleep(min(EXPEDITED, self._refresh))
        self._wanted.clear()
        try:
            async with asyncio.timeout_at(due):
                await self._wanted.wait()
        except TimeoutError:
            pass

    async def _request(self) -> list[VerificationKey]:
        limits = HttpLimits()
        try:
            async with asyncio.timeout(limits.total):
                answer = await ask("GET", self._url, headers={}, limits=limits, context=self._context)
        except TimeoutError:
            raise HttpFailed(f"{shown_url(self._url)} did not answer within {limits.total:.0f} s") from None
        if answer.status != 200:
            raise HttpFailed(f"{shown_url(self._url)} answered with HTTP status {answer.status}")
        try:
            return parse_jwks(answer.body)
        except ValueError as error:
            raise ValueError(f"the answer of {shown_url(self._url)} is no JWKS: {printable(str(error))}") from None


def jwks(url: str, refresh_ms: int, retry_backoff_ms: int, retry_backoff_max_ms: int) -> Jwks:
    """By the configs ``sasl.oauthbearer.jwks.endpoint.*``."""
    return Jwks(url, refresh_ms / 1000, ExponentialBackoff(retry_backoff_ms, retry_backoff_max_ms, Random()))


def _file(url: str) -> Path | None:
    """The path of a file:// URL; None for an identity provider's."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _refused("it is not of the form https://host/path, http://host/path or file:///path")
    return None


def _read(path: Path) -> list[VerificationKey]:
    try:
        with path.open("rb") as file:
            return parse_jwks(file.read(LARGEST_FILE))
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise _refused(f"{path} is no JWKS: {printable(str(error))}") from None


def _refused(why: str) -> ConfigException:
    return ConfigException(f"config {CONFIG!r}: {why}", name=CONFIG)
