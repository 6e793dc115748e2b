"""Starts, follows, interrupts and replaces workers, one after the other, with the same transactional id."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from aioproducer.testing.process_guard import ProcessGuard
from aioproducer.testing.transactions.journal import Entry, Journal
from aioproducer.testing.transactions.plan import Interruption, Step, Transaction
from aioproducer.testing.transactions.worker import FENCED, Work

SILENCE = 300.0
"""Seconds without a line of its journal after which a worker counts as stuck."""

_STANDARD_ERROR = 2


class CampaignFailed(Exception):
    """The campaign ended with an error before it could be judged."""


class Worker:
    """A process and its journal."""

    def __init__(self, process: subprocess.Popen[bytes], said: asyncio.StreamReader) -> None:
        self._process = process
        self._said = said

    @classmethod
    async def start(cls, guard: ProcessGuard, work: Work) -> Worker:
        pipe = subprocess.PIPE
        process = guard.spawn(work.command(), cwd=Path.cwd(), stdin=pipe, stdout=pipe, stderr=_STANDARD_ERROR)
        said = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(said), process.stdout)
        return cls(process, said)

    async def next(self) -> Entry | None:
        """The next line of the journal; None at its end."""
        try:
            async with asyncio.timeout(SILENCE):
                line = await self._said.readline()
        except TimeoutError:
            raise CampaignFailed(f"a worker has written nothing for {SILENCE:g} s") from None
        return Entry.of(line) if line.endswith(b"\n") else None

    def ask_to_stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    async def status(self) -> int:
        status = await asyncio.to_thread(self._process.wait)
        self.ask_to_stop()  # closes the pipe
        return status


class Workers:
    """``interrupted`` has each interruption with the last step of the worker before it."""

    def __init__(
        self,
        work: Work,
        journal: Journal,
        *,
        bounced: Callable[[], bool],
        show: Callable[[str], object],
    ) -> None:
        self.interrupted: list[tuple[Interruption, Entry]] = []
        self._work = work
        self._journal = journal
        self._bounced = bounced
        self._show = show
        self._interruptions = deque(work.plan.interruptions())
        self._stopped: Worker | None = None
        self._last = Entry(Step.ABORTED, work.first)

    async def run(self) -> None:
        """Runs until all interruptions have happened. The last worker ends in order."""
        with ProcessGuard() as guard:
            while True:
                worker = await Worker.start(guard, self._work)
                if not await self._follow(worker):
                    return
                self._work = replace(self._work, first=self._successor())

    def _successor(self) -> Transaction:
        step, (run, number), _ = self._last
        return Transaction(run + 1, number if step is Step.INITIALIZE else number + 1)

    async def _follow(self, worker: Worker) -> bool:
        """Follows a worker to its end or interruption; True if it was interrupted."""
        ended = False
        while (entry := await worker.next()) is not None:
            self._note(entry)
            if self._stopped is not None:
                if entry.step is Step.BEGIN:
                    await self._wake(self._stopped)
                    self._stopped = None
            elif self._interruptions:
                if self._interruptions[0].is_due(entry.step, entry.transaction.number):
                    await self._interrupt(worker, self._interruptions.popleft())
                    return True
            elif not ended and entry.transaction.number + 1 >= self._work.plan.transactions and self._bounced():
                worker.ask_to_stop()
                ended = True
        status = await worker.status()
        if status != 0:
            run = self._work.first.run
            raise CampaignFailed(f"run {run} ended unexpectedly, with status {status}, after {self._last}")
        return False

    async def _interrupt(self, worker: Worker, interruption: Interruption) -> None:
        await asyncio.sleep(interruption.delay)
        if interruption.stopped:
            worker.stop()
            self._stopped = worker
        else:
            worker.kill()
            await self._follow_to_its_end(worker)
        self.interrupted.append((interruption, self._last))
        how = "stopped" if interruption.stopped else "killed"
        self._show(f"{how} after {self._last.step.value} of {self._last.transaction.number}")

    async def _follow_to_its_end(self, worker: Worker) -> int:
        while (entry := await worker.next()) is not None:
            self._note(entry)
        return await worker.status()

    async def _wake(self, stopped: Worker) -> None:
        """Wakes a worker that was replaced: it must be fenced, and end."""
        stopped.wake()
        last = self._last
        try:
            async with asyncio.timeout(SILENCE):
                status = await self._follow_to_its_end(stopped)
        except TimeoutError:
            raise CampaignFailed(f"a producer that was replaced was not fenced within {SILENCE:g} s") from None
        self._last = last
        if status != FENCED:
            raise CampaignFailed(f"a producer that was replaced was not fenced: it ended with status {status}")
        self._show(f"woken and fenced: {self._journal.fenced[-1].detail}")

    def _note(self, entry: Entry) -> None:
        self._journal.add(entry)
        self._last = entry
