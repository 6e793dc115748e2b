"""Where the SSL context of a new connection comes from."""

from __future__ import annotations

import ssl
from typing import Protocol


class TlsSource(Protocol):
    """Has the context for the next connection."""

    async def context(self) -> ssl.SSLContext:
        """Raises :class:`SslAuthenticationException` if there is none."""
