"""Sources of the SSL context of each new connection. Open connections keep theirs."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from aioproducer.errors import ConfigException, SslAuthenticationException
from aioproducer.security.tls.contexts import client_context
from aioproducer.security.tls.settings import TlsSettings, store_files

log = logging.getLogger(__name__)

FACTORY = "ssl.engine.factory.class"


class FixedContext:
    """A context that the user has made."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context

    async def context(self) -> ssl.SSLContext:
        return self._context


class ContextFactory:
    """The user's factory, which is called for each connection, in a thread."""

    def __init__(self, factory: Callable[[], ssl.SSLContext]) -> None:
        """Calls the factory once, and raises :class:`ConfigException` if that fails."""
        self._factory = factory
        try:
            self._made()
        except SslAuthenticationException as error:
            raise ConfigException(f"config {FACTORY!r}: {error}", name=FACTORY) from error.__cause__

    async def context(self) -> ssl.SSLContext:
        return await asyncio.to_thread(self._made)

    def _made(self) -> ssl.SSLContext:
        name = getattr(self._factory, "__qualname__", None) or type(self._factory).__qualname__
        try:
            made: Any = self._factory()
        except Exception as error:  # the user's code may raise anything
            raise SslAuthenticationException(f"{name} failed ({type(error).__name__}: {error})") from error
        if not isinstance(made, ssl.SSLContext):
            raise SslAuthenticationException(f"{name} returned {type(made).__name__}, not an ssl.SSLContext")
        return made


class RenewedContext:
    """A context made of files, and made anew when one of them has changed: certificates are renewed on disk.

    The files are looked at before each connection, in a thread. Files that cannot be used leave the context as it is;
    this is logged once, and they are read again when they change again.
    """

    def __init__(self, make: Callable[[], ssl.SSLContext], files: tuple[str, ...], whose: str) -> None:
        """``make`` raises :class:`ConfigException`; ``whose`` tells the log whose certificates these are."""
        self._make = make
        self._files = files
        self._whose = whose
        self._renewing = threading.Lock()
        self._stamps = self._now()
        self._context = make()

    async def context(self) -> ssl.SSLContext:
        if self._files:
            await asyncio.to_thread(self._renew)
        return self._context

    def _renew(self) -> None:
        with self._renewing:
            self._renew_if_changed()

    def _renew_if_changed(self) -> None:
        stamps = self._now()  # before the files are read, so that a change meanwhile is seen the next time
        if stamps == self._stamps:
            return
        self._stamps = stamps
        fields = {"event": "certificates_renewed", "files": list(self._files)}
        try:
            self._context = self._make()
        except ConfigException as error:
            fields |= {"event": "certificates_not_renewed", "error": str(error)}
            log.warning(
                "the changed certificates of %s cannot be used, so new connections have the former ones: %s",
                self._whose,
                error,
                extra={"kafka": fields},
            )
        else:
            log.info("new connections have the renewed certificates of %s", self._whose, extra={"kafka": fields})

    def _now(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(file) for file in self._files]


def renewed_client_context(settings: TlsSettings, whose: str, *, checks_hostname: bool) -> RenewedContext:
    """A client's context, made of its key store and trust store. Raises :class:`ConfigException`."""
    make = partial(client_context, settings, checks_hostname=checks_hostname)
    return RenewedContext(make, store_files(settings), whose)


def _stamp(file: str) -> tuple[int, int, int] | None:
    """What differs when a file is written or replaced; None if it is not there."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
