"""Requests to identity providers and schema registries, bounded in time and size."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from aioproducer.security.oauth.libraries import httpx

LARGEST_ANSWER = 1 << 20
"""Bytes of an answer that are read."""


class HttpFailed(Exception):
    """There was no usable answer; the text has no secret."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """``sasl.login.connect.timeout.ms`` and ``sasl.login.read.timeout.ms``, in seconds."""

    connect: float = 10.0
    read: float = 10.0

    @property
    def total(self) -> float:
        """The longest time for one request."""
        return self.connect + self.read


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """``status`` is the HTTP status."""

    status: int
    body: bytes


async def ask(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    limits: HttpLimits,
    context: ssl.SSLContext,
    form: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> HttpAnswer:
    """Makes one request on a connection of its own, and follows no redirect: it may carry a secret.

    The body is a ``form``, or ``content`` as it is. Raises :class:`HttpFailed`.
    """
    library = httpx()
    timeout = library.Timeout(limits.read, connect=limits.connect)
    # The bytes are counted as they arrive, so they must not be compressed.
    sent = {"Accept": "application/json", "Accept-Encoding": "identity", "Cache-Control": "no-cache", **headers}
    body = bytearray()
    try:
        async with (
            library.AsyncClient(timeout=timeout, verify=context, follow_redirects=False) as client,
            client.stream(method, url, headers=sent, data=form, content=content) as response,
        ):
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > LARGEST_ANSWER:
                    raise HttpFailed(f"{shown_url(url)} answered with more than {LARGEST_ANSWER} bytes")
            status: int = response.status_code
    except (library.HTTPError, library.InvalidURL, OSError, ValueError) as error:
        # Not the error itself as the cause: it has the request, and that has the secret.
        why = str(error) or type(error).__name__
        raise HttpFailed(f"{shown_url(url)} cannot be asked: {why}") from None
    return HttpAnswer(status, bytes(body))


def system_trust(url: str) -> ssl.SSLContext:
    """A context that trusts the system's authorities. Reading those takes a while, and http needs none."""
    return _system_context() if urlsplit(url).scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@cache
def _system_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def shown_url(url: str) -> str:
    """A URL for messages: without user, password, query and fragment, which may be secret."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"
