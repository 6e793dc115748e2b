"""One life of a relay: with the lock, one connection to the database, and one producer, until something fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from aioproducer.outbox.database import Database
from aioproducer.outbox.errors import MissingPositionException, PositionMismatchException
from aioproducer.outbox.marker import Marker
from aioproducer.outbox.position import Position, Progress
from aioproducer.outbox.relay_config import Begin, RelayConfig
from aioproducer.outbox.relay_metrics import RelayMetrics
from aioproducer.outbox.row import Page, Row
from aioproducer.outbox.transaction import Transactions
from aioproducer.tasks.own_task import start_task

log = logging.getLogger(__name__)


class Session:
    """Relays windows, one after the other.

    A position is taken as relayed only when its transaction is known to be committed. Every error ends the session; the
    next one begins at the position that Kafka has.
    """

    def __init__(
        self,
        config: RelayConfig,
        database: Database,
        identity: str,
        transactions: Transactions,
        metrics: RelayMetrics,
        wake: asyncio.Event,
    ) -> None:
        self._config = config
        self._database = database
        self._identity = identity
        self._transactions = transactions
        self._metrics = metrics
        self._wake = wake
        self._progress = Progress()
        """What is committed."""
        self._marked = 0.0
        """When the marker was last committed, in seconds of the loop."""
        self._windows = 0
        """How many with rows have ended."""
        self._said_too_long = False

    @property
    def committed(self) -> Position:
        """A position that Kafka's marker has reached; or passed, by rows that the table no longer had."""
        return self._progress.since

    async def begin(self, marker: Marker | None, begin: Begin) -> None:
        """Takes the marker as the place to begin; OutboxException if it does not fit the database."""
        self._progress = await self._first(marker, begin)
        if marker is None or marker.table != self._identity or marker.progress != self._progress:
            await self._mark()
        await self._database.leave(self._config.name, self.committed)

    async def _first(self, marker: Marker | None, begin: Begin) -> Progress:
        name = self._config.name
        if begin == "anew":
            return Progress()
        if marker is None:
            left = await self._database.begun(name)
            if left is None:
                return Progress()
            if begin == "adopt":
                return await self._drawn(Progress(Position.unpack(left)))
            raise MissingPositionException(
                f"the relay {name!r} has relayed rows of this database, but the group {name!r} has no position for "
                f"{self._config.position_topic}: its offsets have expired or were deleted, or this is another cluster. "
                "Begin with 'adopt' at the copy in the database (rows relayed after it was left are relayed twice), or "
                "with 'anew' with all rows of the table"
            )
        if marker.table != self._identity and begin != "adopt":
            raise PositionMismatchException(
                f"the position of {name!r} belongs to table {marker.table}, and this is {self._identity}: give "
                "each outbox a relay of its own name. Begin with 'adopt' if this is the same table after "
                "pg_upgrade, or with 'anew' with all rows of the table if they were restored into a new one"
            )
        return await self._drawn(marker.progress)

    async def _drawn(self, progress: Progress) -> Progress:
        """``progress``; PositionMismatchException if the ids up to there will be drawn again."""
        drawn = await self._database.drawn()
        if drawn < progress.newest:
            raise PositionMismatchException(
                f"the row {progress.newest} was relayed, but the database has drawn ids only up to {drawn}: it is an "
                "older copy, or a standby took over that had not received all, or the sequence was restarted. Begin "
                "with 'anew' with all rows of the table (relayed rows that are still there are relayed twice)"
            )
        return progress

    async def relay(self, stopped: Callable[[], bool]) -> None:
        """Relays until it is to stop."""
        loop = asyncio.get_running_loop()
        while not stopped():
            self._wake.clear()
            if await self._window(stopped):
                continue
            if loop.time() - self._marked > self._config.refresh_interval:
                await self._mark()
            try:
                async with asyncio.timeout(self._config.poll_interval):
                    await self._wake.wait()
            except TimeoutError:
                pass

    async def _window(self, stopped: Callable[[], bool]) -> bool:
        """Relays what was committed since the last window; returns whether there was anything."""
        window, first = self._progress, None  # the session before may have ended within a window
        if window.until is None:
            limits = self._config.most_rows, self._config.most_bytes
            here, first = await self._database.window(window.since, *limits)
            window = window.to(here)
            if not self._fits(window):
                return False
        any_row = False
        async with aclosing(self._pages(window, first)) as pages:
            async for page in pages:
                any_row = True
                await self._commit(page, window)
                if stopped():
                    return True
        if self._progress.until is not None or not any_row:
            self._progress = window.ended()
        self._windows += any_row or first is None
        self._metrics.lag_rows, self._metrics.oldest_ms = 0, None
        return any_row

    async def _pages(self, window: Progress, first: Page | None) -> AsyncGenerator[Page]:
        """The pages of the window; the next one is read ahead."""
        config = self._config
        page = await self._database.page(window, config.most_rows, config.most_bytes) if first is None else first
        while page.rows:
            if not page.more:
                yield page
                return
            ahead = window.past(page.rows[-1].id)
            reading = start_task(self._database.page(ahead, config.most_rows, config.most_bytes), "aioproducer page")
            try:
                yield page
            except BaseException:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
                raise
            page = await reading

    async def _commit(self, page: Page, window: Progress) -> None:
        rows = page.rows

        def progress_at(row: Row) -> Progress:
            return window.past(row.id) if page.more or row is not rows[-1] else window.ended()

        assert window.until is not None
        self._metrics.lag_rows = max(len(rows), window.until.last - rows[0].id + 1)
        self._metrics.oldest_ms = rows[0].created_ms
        dead = await self._transactions.commit(rows, lambda row: Marker(self._identity, progress_at(row)))
        self._marked = asyncio.get_running_loop().time()
        self._progress = progress_at(rows[-1])
        self._metrics.committed(len(rows), dead)

    def _fits(self, window: Progress) -> bool:
        """Whether the marker can be committed, at any row. If too many transactions are open, rows wait for fewer."""
        fits = window.until is None or Marker(self._identity, window.past(window.until.last)).fits()
        if not fits and not self._said_too_long:
            log.warning(
                "%d transactions are open in the database, too many for a marker; rows wait until there are fewer",
                0 if window.until is None else len(window.until.snapshot.xip),
            )
        self._said_too_long = not fits
        return fits

    async def _mark(self) -> None:
        await self._transactions.mark(Marker(self._identity, self._progress))
        self._marked = asyncio.get_running_loop().time()

    async def clean(self, cleaner: Database) -> None:
        """Deletes relayed rows, and leaves a copy of the position, over and over, through another connection."""
        before: Position | None = None
        left, windows = self.committed, self._windows
        newest = left.snapshot.xmax
        """Above the transactions of all rows that were relayed."""
        while True:
            await asyncio.sleep(self._config.clean_up_interval)
            here = self.committed
            # To leave it is a transaction, too, and moves the position, so there must be a reason, or it never ends:
            # rows were relayed, or the former ones are settled only now.
            any_row = windows != self._windows
            if here != left and (any_row or left.snapshot.xmin < newest <= here.snapshot.xmin):
                windows, newest = self._windows, here.snapshot.xmax if any_row else newest
                await cleaner.leave(self._config.name, here)
                left = here
            if self._config.clean_up and here != before:
                while deleted := await cleaner.clean(here):
                    self._metrics.cleaned += deleted
            before = here
