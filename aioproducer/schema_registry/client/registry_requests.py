"""Requests to a registry: the next URL where one fails, again after a back-off, and errors in plain words."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from random import Random
from typing import Any, Final, NoReturn

from aioproducer.errors import ConfigException, KafkaError, TokenUnavailableException
from aioproducer.errors.printable import printable
from aioproducer.schema_registry.client.registry_config import RegistryConfig
from aioproducer.schema_registry.client.registry_credentials import RegistryCredentials
from aioproducer.schema_registry.errors import (
    IncompatibleSchemaException,
    InvalidSchemaException,
    SchemaNotFoundException,
    SchemaRegistryAuthenticationException,
    SchemaRegistryException,
    SchemaRegistryUnavailableException,
)
from aioproducer.security.oauth.http import HttpAnswer, HttpFailed, HttpLimits, ask
from aioproducer.timing.backoff import ExponentialBackoff
from aioproducer.timing.log_interval import LogInterval

log = logging.getLogger(__name__)

TRIED_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses of a registry that may answer later, or of another one that may."""

_ERRORS: Final = {
    401: SchemaRegistryAuthenticationException,
    403: SchemaRegistryAuthenticationException,
    404: SchemaNotFoundException,
    409: IncompatibleSchemaException,
    422: InvalidSchemaException,
}
_OWN_NUMBERS: Final = 40000
_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_SHOWN: Final = 1000
"""Characters of a registry's own words in a message."""


class RegistryRequests:
    """One connection for each request: there are a few in the life of a process, and so nothing is there to close."""

    def __init__(self, config: RegistryConfig) -> None:
        try:
            import httpx  # noqa: F401 - what requests are made with
        except ImportError as missing:
            raise ConfigException(
                "a schema registry is asked by the library httpx: pip install 'aioproducer[schema-registry]'",
                name="schema.registry.url",
            ) from missing
        self.urls = config.schema_registry_url
        self._tls = config.tls()
        self._limits = HttpLimits(config.http_connect_timeout_ms / 1000, config.http_read_timeout_ms / 1000)
        self._credentials = RegistryCredentials(config, self._limits)
        self._retries = config.max_retries
        self._backoff = ExponentialBackoff(config.retries_wait_ms, config.retries_max_wait_ms, Random())
        self._first = 0
        """The URL that has answered last."""
        self._lines = LogInterval()

    async def get(self, path: str) -> Any:
        return await self._request("GET", path)

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return await self._request("POST", path, body)

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        return await self._request("PUT", path, body)

    async def delete(self, path: str) -> Any:
        return await self._request("DELETE", path)

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer's JSON. Raises SchemaRegistryException, of the class that the answer means."""
        content = None if body is None else json.dumps(body).encode()
        failures, renewed = 0, False
        while True:
            reasons = []
            for number in range(len(self.urls)):
                index = (self._first + number) % len(self.urls)
                try:
                    answer, renewed = await self._answer(method, self.urls[index], path, content, renewed)
                except (HttpFailed, TokenUnavailableException) as failed:
                    reasons.append(str(failed))
                    continue
                if answer.status not in TRIED_AGAIN:
                    self._first = index
                    return self._read(answer, f"{method} {self.urls[index]}{path}")
                reasons.append(f"{self.urls[index]} answered {self._said(answer)}")
            failures += 1
            if failures > self._retries:
                raise SchemaRegistryUnavailableException(
                    f"{method} {path} failed {_times(failures)}, as no schema registry is available: "
                    + "; ".join(reasons)
                )
            wait = self._backoff.wait(failures)
            self._report(reasons, wait)
            await asyncio.sleep(wait)

    async def _answer(
        self, method: str, url: str, path: str, content: bytes | None, renewed: bool
    ) -> tuple[HttpAnswer, bool]:
        """A refused token is renewed and sent once more; the second result is whether that has happened."""
        while True:
            try:
                known_by = await self._credentials.headers()
            except TokenUnavailableException:
                raise
            except KafkaError as error:
                raise SchemaRegistryAuthenticationException(f"no token for the schema registry: {error}") from error
            headers = {"Accept": f"{_TYPE}, application/json", "Content-Type": _TYPE, **known_by}
            try:
                async with asyncio.timeout(self._limits.total):
                    context = await self._tls.context()
                    answer = await ask(
                        method, url + path, headers=headers, content=content, limits=self._limits, context=context
                    )
            except TimeoutError:
                raise HttpFailed(f"{url} did not answer within {self._limits.total:g} s") from None
            if answer.status != 401 or renewed or not self._credentials.refused(known_by):
                return answer, renewed
            renewed = True

    def _read(self, answer: HttpAnswer, what: str) -> Any:
        if 200 <= answer.status < 300:
            try:
                return json.loads(answer.body)
            except (ValueError, RecursionError):
                raise SchemaRegistryException(
                    f"{what} was answered with something that is no JSON: is it the URL of a schema registry, with the"
                    " path of its Confluent API?",
                    status=answer.status,
                ) from None
        self._refuse(answer, what)

    def _refuse(self, answer: HttpAnswer, what: str) -> NoReturn:
        error = _object(answer.body)
        code = error.get("error_code")
        number = code if isinstance(code, int) else 0
        kind: type[SchemaRegistryException] = _ERRORS.get(answer.status, SchemaRegistryException)
        if kind is SchemaNotFoundException and number < _OWN_NUMBERS:
            kind = SchemaRegistryException  # a wrong path: the registry's own errors have numbers such as 40401
        raise kind(f"{what} was refused: {self._said(answer)}", status=answer.status, error_code=number)

    def _said(self, answer: HttpAnswer) -> str:
        error = _object(answer.body)
        words = error.get("message")
        said = f"HTTP status {answer.status}"
        if isinstance(words, str) and words:
            said += f", {printable(self._credentials.hidden(words)[:_SHOWN])}"
        return said

    def _report(self, reasons: list[str], wait: float) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._lines.next("unavailable"):
            return
        self._lines.logged("unavailable", now)
        fields = {"event": "schema_registry_unavailable"}
        log.warning("no schema registry is available: %s; trying again", "; ".join(reasons), extra={"kafka": fields})


def _object(body: bytes) -> Mapping[str, Any]:
    """The object that the JSON is; empty if it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
