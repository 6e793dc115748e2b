"""Keeps the credentials of a client fresh, a token or a Kerberos ticket: Kafka's ``ExpiringCredentialRefreshingLogin``
and ``KerberosLogin``, for asyncio."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from aioproducer.errors import KafkaError, TokenUnavailableException
from aioproducer.security.refresh_window import RefreshWindow
from aioproducer.timing.backoff import ExponentialBackoff
from aioproducer.timing.log_interval import LogInterval
from aioproducer.timing.loop_clock import LoopClock

log = logging.getLogger(__name__)


class Expiring(Protocol):
    """What a client logs in with for a time."""

    @property
    def expires_at(self) -> float | None:
        """POSIX time in seconds; None if it is for one authentication only."""

    def described(self, now: float) -> str:
        """What messages say about it. ``now`` is POSIX time."""


E = TypeVar("E", bound=Expiring)


class Kind(NamedTuple):
    """What a login gets, in messages, and the log's fields when it is renewed or not."""

    noun: str
    limited_by: str
    """What sets the limit of an attempt."""
    renewed: dict[str, object]
    not_renewed: dict[str, object]


TOKEN: Final = Kind(
    "token",
    "sasl.login.connect.timeout.ms and sasl.login.read.timeout.ms together",
    {"event": "token_renewed"},
    {"event": "token_not_renewed"},
)
TICKET: Final = Kind("ticket", "krb5.conf may set less", {"event": "ticket_renewed"}, {"event": "ticket_not_renewed"})


class ExpiringLogin(Generic[E]):
    """The token of one client, or its ticket, which all its connections share.

    The first caller of :meth:`token` starts a task by ``launch(coroutine, name)``. The task gets tokens, one attempt at
    a time. It renews a token within its refresh window, while the present one is used; failed attempts are repeated
    with ``backoff``. An attempt takes ``limit`` seconds at most. Without a valid token, callers wait for the attempt
    under way, or for the next one, and get its error.

    ``wall`` is the POSIX time: it is read once for each token, so a change of the system's clock affects no token that
    is there.
    """

    def __init__(
        self,
        retrieve: Callable[[], Awaitable[E]],
        window: RefreshWindow,
        backoff: ExponentialBackoff,
        limit: float,
        *,
        random: Random,
        launch: Callable[[Coroutine[Any, Any, None], str], None],
        wall: Callable[[], float] = time.time,
        kind: Kind = TOKEN,
    ) -> None:
        self._kind = kind
        self._retrieve = retrieve
        self._window = window
        self._backoff = backoff
        self._limit = limit
        self._random = random
        self._launch = launch
        self.wall = wall
        self._loop = asyncio.get_running_loop()
        self._clock = LoopClock(self._loop)
        self._lines = LogInterval()
        self._launched = False
        self._token: E | None = None
        self._valid_until = -math.inf
        """These and all times below are the loop's."""
        self._refresh_at = math.inf
        self._not_before = -math.inf
        """When the next attempt may begin."""
        self._failures = 0
        """Attempts that failed in a row."""
        self._refusals = 0
        """Tokens that brokers refused in a row."""
        self._waiting: list[asyncio.Future[E]] = []
        self._wanted = asyncio.Event()

    async def token(self) -> E:
        """A valid token. Raises what the attempt to get one raised."""
        if self._token is not None and self._loop.time() < self._valid_until:
            return self._token
        if not self._launched:
            self._launched = True
            self._launch(self._run(), f"aioproducer {self._kind.noun}")
        waiting: asyncio.Future[E] = self._loop.create_future()
        self._waiting.append(waiting)
        self._wanted.set()
        return await waiting

    def accepted(self) -> None:
        """A broker has accepted a token."""
        self._refusals = 0

    def refused(self, token: E) -> None:
        """A broker has refused a token: it is not used again, and the next one is got after a back-off."""
        if token is self._token:
            self._token = None
            self._valid_until = -math.inf
            self._refresh_at = math.inf
            self._refusals += 1
            self._back_off()

    async def _run(self) -> None:
        while True:
            await self._until_due()
            outcome: E | KafkaError
            try:
                outcome = await self._attempt()
            except KafkaError as error:
                outcome = error
                self._failures += 1
                self._back_off()
                self._report(error)
            else:
                self._hold(outcome)
            self._answer(outcome)

    def _answer(self, outcome: E | KafkaError) -> None:
        answered, self._waiting = self._waiting, []
        self._wanted.clear()
        for waiting in answered:
            if waiting.done():
                continue  # its caller was cancelled
            if isinstance(outcome, KafkaError):
                waiting.set_exception(outcome.fresh())
            else:
                waiting.set_result(outcome)

    async def _until_due(self) -> None:
        while True:
            now = self._loop.time()
            due = max(self._not_before, -math.inf if self._wanted.is_set() else self._refresh_at)
            if due <= now:
                return
            if self._wanted.is_set():
                await asyncio.sleep(due - now)
                continue
            try:
                async with asyncio.timeout_at(None if due == math.inf else self._clock.tick(due)):
                    await self._wanted.wait()
            except TimeoutError:
                pass

    async def _attempt(self) -> E:
        try:
            async with asyncio.timeout(self._limit):
                token = await self._retrieve()
        except TimeoutError:
            raise TokenUnavailableException(
                f"no {self._kind.noun} within {self._limit * 1000:.0f} ms ({self._kind.limited_by})"
            ) from None
        if token.expires_at is not None and token.expires_at <= self.wall():
            raise TokenUnavailableException(
                f"the {self._kind.noun} is not valid any more ({token.described(self.wall())}):"
                " is this machine's clock right?"
            )
        return token

    def _hold(self, token: E) -> None:
        now = self._loop.time()
        if self._failures and self._token is not None:
            log.info("the %s is renewed again", self._kind.noun, extra={"kafka": self._kind.renewed})
        self._failures = 0
        # Without an expiry it may be invalid soon: the next authentication gets another one.
        if token.expires_at is None:
            self._token, self._valid_until, self._refresh_at = None, -math.inf, math.inf
            return
        self._token = token
        self._valid_until = now + (token.expires_at - self.wall())
        self._refresh_at = self._window.refresh_at(now, self._valid_until, self._random)

    def _back_off(self) -> None:
        wait = self._backoff.wait(self._failures + self._refusals)
        self._not_before = self._clock.tick(self._loop.time() + wait)

    def _report(self, error: KafkaError) -> None:
        """Logs that a token could not be renewed. Of a first token, the connections that need it log the error."""
        now = self._loop.time()
        if self._token is None or now < self._lines.next("renewal"):
            return
        self._lines.logged("renewal", now)
        left = self._valid_until - now
        present = f"the present one is valid for another {left:.0f} s" if left > 0 else "the last one has expired"
        fields = {**self._kind.not_renewed, "error": type(error).__name__}
        log.warning(
            "the %s could not be renewed: %s; %s; trying again",
            self._kind.noun,
            error,
            present,
            extra={"kafka": fields},
        )
