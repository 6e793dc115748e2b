"""Gets a token from where the configs say: the user's code, an identity provider, a file."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

from aioproducer.errors import KafkaError, SaslAuthenticationException, TokenUnavailableException
from aioproducer.errors.printable import printable
from aioproducer.security.oauth.assertion import AssertionFailed
from aioproducer.security.oauth.claims import LONGEST, expiry, number, text, unverified_claims
from aioproducer.security.oauth.http import HttpAnswer, HttpFailed, HttpLimits, ask, shown_url
from aioproducer.security.oauth.settings import (
    OAuthSettings,
    TokenEndpoint,
    TokenFile,
    TokenProvider,
    UnsecuredTokens,
)
from aioproducer.security.oauth.token import OAuthBearerToken
from aioproducer.security.oauth.unsecured import unsecured_token
from aioproducer.security.password import without_secrets
from aioproducer.tasks.coroutine_functions import is_async

Retrieve = Callable[[], Awaitable[OAuthBearerToken]]
"""Gets a new token. Raises :class:`TokenUnavailableException` if it makes sense to try again, and another
:class:`KafkaError` if not."""

_JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_JWT_BEARER_CLIENT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

FINAL_STATUSES = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505})
"""HTTP statuses that are the same however often one asks (Kafka's list)."""

_SHOWN = 300
"""Characters of an identity provider's own words in a message."""


def retrieval(settings: OAuthSettings, wall: Callable[[], float] = time.time) -> Retrieve:
    """How this client gets its tokens; ``wall`` is the POSIX time."""
    match settings.source:
        case TokenEndpoint() as endpoint:
            return _Endpoint(endpoint, settings, wall).retrieve
        case TokenFile() as file:
            return _File(file, settings).retrieve
        case UnsecuredTokens(options):
            return _Unsecured(options, wall).retrieve
        case TokenProvider(provider):
            return _Provider(provider, settings.subject_claim).retrieve


class _Endpoint:
    """Asks an identity provider."""

    def __init__(self, endpoint: TokenEndpoint, settings: OAuthSettings, wall: Callable[[], float]) -> None:
        self._endpoint = endpoint
        self._limits: HttpLimits = settings.limits
        self._subject = settings.subject_claim
        self._wall = wall

    async def retrieve(self) -> OAuthBearerToken:
        endpoint = self._endpoint
        began = self._wall()
        headers, form, secrets = await asyncio.to_thread(self._request, began)  # files are read, and a JWT is signed
        try:
            answer = await ask(
                "POST",
                endpoint.url,
                headers=headers,
                form=form,
                limits=self._limits,
                context=await endpoint.tls.context(),
            )
        except HttpFailed as failed:
            raise TokenUnavailableException(f"the identity provider {failed}") from None
        if answer.status not in (200, 201):
            raise self._refusal(answer, secrets)
        return self._token(answer.body, began)

    def _request(self, now: float) -> tuple[Mapping[str, str], Mapping[str, str], Sequence[str]]:
        """Headers, the form, and what in them is secret, in every way in which it is written."""
        endpoint = self._endpoint
        headers: dict[str, str] = {}
        secrets: list[str] = []
        form = {"grant_type": _JWT_BEARER_GRANT if endpoint.grants_assertion else "client_credentials"}
        if endpoint.assertion is not None:
            try:
                assertion = endpoint.assertion.make(now)
            except AssertionFailed as failed:
                raise TokenUnavailableException(f"no assertion for the identity provider: {failed}") from None
            secrets.append(assertion)
            if endpoint.grants_assertion:
                form["assertion"] = assertion
            else:
                form |= {"client_assertion_type": _JWT_BEARER_CLIENT, "client_assertion": assertion}
                form["client_id"] = endpoint.client_id or ""
        elif endpoint.client_secret is not None:
            known_by = [endpoint.client_id or "", endpoint.client_secret.value]
            if endpoint.urlencode:
                known_by = [quote_plus(part) for part in known_by]
            basic = base64.b64encode(":".join(known_by).encode()).decode()
            headers["Authorization"] = f"Basic {basic}"
            secrets += [basic, endpoint.client_secret.value, known_by[1]]
        if endpoint.scope:
            form["scope"] = endpoint.scope
        return headers, form, secrets

    def _refusal(self, answer: HttpAnswer, secrets: Sequence[str]) -> KafkaError:
        """The error for an answer without a token. Its words are the provider's (RFC 6749, section 5.2), without the
        secrets that it may repeat."""
        error = _json(answer.body)
        words = ": ".join(text(error, name) for name in ("error", "error_description") if text(error, name))
        words = without_secrets(words, secrets)
        whom = f" for client {self._endpoint.client_id!r}" if self._endpoint.client_id else ""
        said = f"HTTP status {answer.status}" + (f", {printable(words[:_SHOWN])}" if words else "")
        message = f"the identity provider {shown_url(self._endpoint.url)} gave no token{whom}: {said}"
        return (SaslAuthenticationException if answer.status in FINAL_STATUSES else TokenUnavailableException)(message)

    def _token(self, body: bytes, now: float) -> OAuthBearerToken:
        answer = _json(body)
        value, lifetime = text(answer, "access_token"), number(answer.get("expires_in"))
        expires_at = None if lifetime is None else now + lifetime
        # A provider may hand out a token that it made earlier, and brokers look at what the token says. One that seems
        # to have expired is left to them: it may be this machine's clock that is wrong.
        own = expiry(unverified_claims(value))
        if expires_at is not None and own is not None and now < own < expires_at:
            expires_at = own
        try:
            return _token(value, expires_at, self._subject, self._endpoint.extensions)
        except ValueError:
            raise TokenUnavailableException(
                f"the identity provider {shown_url(self._endpoint.url)} answered without a usable access_token"
            ) from None


class _File:
    """Reads a file."""

    def __init__(self, file: TokenFile, settings: OAuthSettings) -> None:
        self._file = file
        self._subject = settings.subject_claim

    async def retrieve(self) -> OAuthBearerToken:
        path = self._file.path
        try:
            value = await asyncio.to_thread(self._read)
            return _token(value.strip(), None, self._subject, self._file.extensions)
        except OSError as error:
            raise TokenUnavailableException(f"the token in {path} cannot be read: {error.strerror or error}") from None
        except ValueError:
            raise TokenUnavailableException(f"{path} has no token that can be used") from None

    def _read(self) -> str:
        with self._file.path.open(encoding="ascii") as file:
            return file.read(LONGEST)


class _Unsecured:
    """Makes a token."""

    def __init__(self, options: Mapping[str, str], wall: Callable[[], float]) -> None:
        self._options = options
        self._wall = wall

    async def retrieve(self) -> OAuthBearerToken:
        return unsecured_token("sasl.jaas.config", self._options, self._wall())


class _Provider:
    """Calls the user's code: a coroutine function in the event loop, any other function in a thread."""

    def __init__(self, provider: Any, subject: str) -> None:
        method = getattr(provider, "token", None)
        self._call: Callable[[], Any] = method if callable(method) else provider
        extensions = getattr(provider, "extensions", None)
        self._extensions: Callable[[], Any] | None = extensions if callable(extensions) else None
        self._subject = subject
        self._running: asyncio.Future[Any] | None = None

    async def retrieve(self) -> OAuthBearerToken:
        try:
            if is_async(self._call):
                found = await self._call()
            else:
                found = await self._in_thread()
                if inspect.isawaitable(found):  # of a function that only passes on what a coroutine function returned
                    found = await found
            return self._checked(found)
        except (KafkaError, asyncio.CancelledError):
            raise
        except Exception as error:  # it is the user's code, and may raise anything
            raise TokenUnavailableException(
                f"the token provider failed ({type(error).__name__}: {printable(str(error)[:_SHOWN])})"
            ) from error

    def _checked(self, found: object) -> OAuthBearerToken:
        if isinstance(found, OAuthBearerToken):
            return found
        if not isinstance(found, str):
            raise TypeError(f"it returned {type(found).__name__}, and not an OAuthBearerToken or str")
        extensions = {} if self._extensions is None else self._extensions()
        return _token(found, None, self._subject, extensions)

    async def _in_thread(self) -> Any:
        """A call that still runs is waited for, and not made once more: a provider that hangs holds one thread."""
        if self._running is None or self._running.done():
            self._running = _in_daemon_thread(self._call)
        return await asyncio.shield(self._running)


def _in_daemon_thread(call: Callable[[], Any]) -> asyncio.Future[Any]:
    """What the call returns or raises. The process can end while it runs, unlike with the loop's own threads."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    done.add_done_callback(lambda done: done.cancelled() or done.exception())  # its caller may have stopped waiting

    def settle(result: Any, error: Exception | None) -> None:
        if not done.done():
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

    def run() -> None:
        outcome: tuple[Any, Exception | None]
        try:
            outcome = call(), None
        except StopIteration as error:  # which no future takes
            outcome = None, RuntimeError(f"StopIteration: {error}")
        except Exception as error:
            outcome = None, error
        except BaseException as error:
            outcome = None, RuntimeError(f"{type(error).__name__}: {error}")
        try:
            loop.call_soon_threadsafe(settle, *outcome)
        except RuntimeError:
            pass  # the loop was closed meanwhile

    threading.Thread(target=run, name="aioproducer-token-provider", daemon=True).start()
    return done


def _token(value: str, expires_at: float | None, subject_claim: str, extensions: Mapping[str, str]) -> OAuthBearerToken:
    return OAuthBearerToken(value, expires_at, text(unverified_claims(value), subject_claim), extensions)


def _json(body: bytes) -> Mapping[str, Any]:
    """The object that ``body`` is; empty if it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
