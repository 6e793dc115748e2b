"""Runs the cases: in every round each client once, one after the other, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.case import Case, Done
from benchmarks.run import Description, Run
from benchmarks.topic import fresh_topic
from benchmarks.worker_process import WorkerFailed, measure

PARTITIONS = 6
WARM_UP_SHARE = 10
"""The warm-up is a tenth of the records."""
RUN_TIMEOUT = 600.0
"""Seconds after which a run is given up."""


class Runner:
    """``told(case, done)`` hears of each run."""

    def __init__(self, bootstrap_servers: str, loop: str, told: Callable[[Case, Done], object]) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._loop = loop
        self._told = told

    async def run(self, cases: Sequence[Case], clients: Sequence[Description], rounds: int) -> None:
        """Adds every run to its case. Before the first case comes a round that counts for nothing: brokers warm up."""
        for number, case in enumerate(cases):
            able = [client for client in clients if case.work.name in client.works]
            if number == 0:
                for client in able:
                    self._told(case, await self._turn(case, client, 0))
            for round_number in range(1, rounds + 1):
                for client in able:
                    done = await self._turn(case, client, round_number)
                    case.done.append(done)
                    self._told(case, done)

    async def _turn(self, case: Case, client: Description, round_number: int) -> Done:
        async with fresh_topic(self._bootstrap_servers, PARTITIONS) as topic:
            run = Run(
                client=client.name,
                work=case.work.name,
                bootstrap_servers=self._bootstrap_servers,
                topic=topic.name,
                record_size=case.record_size,
                records=case.records,
                warm_up=-(-case.records // WARM_UP_SHARE),
                loop=self._loop,
            )
            try:
                measurement = await measure(run, timeout=RUN_TIMEOUT)
            except WorkerFailed as error:
                return Done(client.name, round_number, None, str(error))
            found, expected = await topic.records(), run.records + run.warm_up
        return Done(client.name, round_number, measurement, _problem(measurement.failures, found, expected))


def _problem(failures: dict[str, int], found: int, expected: int) -> str:
    problems = [f"{count:,} × {kind}" for kind, count in failures.items()]
    if found < expected:
        problems.append(f"{expected - found:,} of {expected:,} records are not in the log")
    elif found > expected:
        problems.append(f"{found - expected:,} more records are in the log than were sent")
    return "; ".join(problems)
