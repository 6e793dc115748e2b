"""Ends a connection whose client failed to authenticate (KIP-306)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.protocol.schema import Response

log = logging.getLogger(__name__)


def fail(context: BrokerContext, request: Request, response: Response | None, reason: str) -> None:
    """Logs the failure, sends ``response`` if there is one, and closes the connection: both after
    ``connection.failed.authentication.delay.ms``.

    Until then nothing is read from it. This limits how many passwords can be tried per second and connection, and slows
    down a client that reconnects again and again. No other client waits.
    """
    connection = request.connection
    authenticator = connection.authenticator
    if authenticator is not None:
        now = context.clock.monotonic()
        for line in authenticator.failed_logins.failed(authenticator.claimed, connection.address, reason, now):
            log.warning("%s", line)
    delay_ms = context.config.connection_failed_authentication_delay_ms
    end = partial(request.close_connection, reason, response)
    if delay_ms == 0:
        end()
    else:
        request.on_abandon(asyncio.get_running_loop().call_later(delay_ms / 1000, end).cancel)
