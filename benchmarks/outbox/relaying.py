"""The process that relays: prints a line when the backlog is relayed, and the times of the other rows at the end."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from aioproducer.outbox import OutboxRelay
from aioproducer.outbox.marker import Marker
from aioproducer.outbox.row import Row
from aioproducer.outbox.transaction import Transactions
from benchmarks.harness.runtime import loop_factory
from benchmarks.outbox.poller import poll

RELAY: Final = "relay"
POLLER: Final = "poller"
WAYS: Final = (RELAY, POLLER)

BACKLOG: Final = b"b"
"""What the values of the backlog begin with. Others begin with their number and a colon."""


class Acknowledged:
    """When rows were acknowledged, by the machine's monotonic clock."""

    def __init__(self, backlog: int) -> None:
        self._left = backlog
        self._began = 0.0
        self._first = 0
        self.times: dict[int, float] = {}

    def __call__(self, values: Sequence[bytes]) -> None:
        now = time.monotonic()
        for value in values:
            if not value.startswith(BACKLOG):
                self.times[int(value.partition(b":")[0])] = now
                continue
            self._left -= 1
        if not self._began:  # connections, metadata and a producer id have been made: from here on
            self._began, self._first = now, self._left
        elif self._left == 0:
            self._left = -1
            print(json.dumps({"rows_per_s": self._first / (now - self._began)}), flush=True)


async def relay(dsn: str, servers: str, most_rows: int, done: Acknowledged) -> None:
    """The relay of the package."""
    commit = Transactions.commit

    async def commit_and_tell(self: Transactions, rows: Sequence[Row], marker_at: Callable[[Row], Marker]) -> int:
        dead = await commit(self, rows, marker_at)
        done([row.value or b"" for row in rows])
        return dead

    Transactions.commit = commit_and_tell  # type: ignore[method-assign]
    name = dsn.rpartition("/")[2]  # the database's, which no other turn has
    await OutboxRelay(dsn, name=name, bootstrap_servers=servers, most_rows=most_rows).run()


async def run(way: str, dsn: str, servers: str, most_rows: int, backlog: int) -> None:
    """Until standard input ends."""
    done = Acknowledged(backlog)
    work = asyncio.ensure_future((relay if way == RELAY else poll)(dsn, servers, most_rows, done))
    ended = asyncio.ensure_future(asyncio.to_thread(sys.stdin.buffer.read))
    await asyncio.wait([work, ended], return_when=asyncio.FIRST_COMPLETED)
    work.cancel()
    await asyncio.wait([work])
    if not work.cancelled():
        work.result()
    print(json.dumps({"times": done.times}), flush=True)


def main() -> None:
    way, dsn, servers, most_rows, backlog, loop = sys.argv[1:]
    with asyncio.Runner(loop_factory=loop_factory(loop)) as runner:
        runner.run(run(way, dsn, servers, int(most_rows), int(backlog)))
