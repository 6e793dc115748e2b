"""Gets the ticket of a client: with the key in a keytab, or out of a cache that others fill."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aioproducer.errors import SaslAuthenticationException
from aioproducer.security.kerberos.errors import explained
from aioproducer.security.kerberos.library import gssapi
from aioproducer.security.kerberos.settings import KerberosSettings

LIMIT = 60.0
"""Seconds that getting a ticket may take. The library has limits of its own for each KDC, which krb5.conf sets."""

_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class KerberosTicket:
    """A ticket-granting ticket. ``expires_at`` is POSIX time; None if it never does."""

    service: str
    principal: str
    expires_at: float | None
    credentials: Any

    def __repr__(self) -> str:
        return f"KerberosTicket({self.principal!r}, expires_at={self.expires_at})"

    def described(self, now: float) -> str:
        """Whose it is and how long it is valid, for errors."""
        if self.expires_at is None:
            return f"of {self.principal}"
        left = self.expires_at - now
        return f"of {self.principal}, " + (f"valid for another {left:.0f} s" if left > 0 else "expired")


class Tickets:
    """Gets one ticket after the other."""

    def __init__(self, settings: KerberosSettings, wall: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._wall = wall
        # Two caches in memory by turns: connections may still use the ticket in one while the other is filled.
        number = next(_NUMBERS)
        self._caches = itertools.cycle(f"MEMORY:aioproducer-{os.getpid()}-{number}-{turn}" for turn in "ab")

    async def retrieve(self) -> KerberosTicket:
        """Raises :class:`TokenUnavailableException` if it makes sense to try again, and
        :class:`SaslAuthenticationException` if not."""
        return await asyncio.to_thread(self._get)

    def _get(self) -> KerberosTicket:
        library, settings = gssapi(), self._settings
        keytab = settings.keytab
        if keytab is not None:
            _check_readable(keytab)
        whose = "" if settings.principal is None else f" of {settings.principal}"
        try:
            name = None
            if settings.principal is not None:
                name = library.Name(settings.principal, library.NameType.kerberos_principal)
            credentials = library.Credentials(usage="initiate", name=name, store=self._store())
            lifetime, principal = credentials.lifetime, str(credentials.name)
        except library.exceptions.GSSError as error:
            raise explained(error, f"no Kerberos ticket{whose}", keytab=keytab) from None
        expires_at = None if lifetime is None else self._wall() + lifetime
        return KerberosTicket(settings.service, principal, expires_at, credentials)

    def _store(self) -> dict[str, str] | None:
        if self._settings.keytab is not None:
            return {"client_keytab": self._settings.keytab, "ccache": next(self._caches)}
        return None if self._settings.cache is None else {"ccache": self._settings.cache}


def _check_readable(keytab: str) -> None:
    try:
        Path(keytab.removeprefix("FILE:")).open("rb").close()
    except OSError as error:
        raise SaslAuthenticationException(f"the keytab {keytab} cannot be read: {error.strerror}") from None
