"""Runs the cases: in every round each client once, one after the other, each in a process of its own.

Each round has another order, the same in every comparison: who comes first, or after whom, finds another broker.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from aioproducer.errors import KafkaError
from benchmarks.comparison.broker import Broker, BrokerOf
from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.figures import FIGURES
from benchmarks.comparison.worker import WorkerFailed, measure
from benchmarks.harness.page_cache import ready_page_cache
from benchmarks.harness.topics import Topics, fresh_topics
from benchmarks.works.payload import write_payload
from benchmarks.works.run import Description, Measurement, Run
from benchmarks.works.works import PACED, Work

WARM_UP_SHARE = 10
"""The warm-up is a tenth of the records."""
WARM_UP_CLIENTS = 6
"""So many clients have a run that counts for nothing before all others: brokers warm up, or fill many partitions.

In the first millions of records a broker spends more CPU on its JIT compiler than on them.
"""
CLIENT_MEMORY = 256 << 20
"""More than any client takes, in bytes: memory is made ready for it, too."""
RUN_TIMEOUT = 180.0
"""Seconds after which a run is given up."""
MANY = 100
"""Topics with more partitions are created once for a case; others for each run."""
CONFIGS_OF_MANY = {"segment.index.bytes": "65536"}
"""Kafka maps two index files of 10 MB for each partition, and some systems read 8 MB ahead when it first writes to one.
With thousands of partitions the broker then spends minutes on filling memory with zeros."""
PACE_MAKER, PACED_BY = "confluent-kafka", "stream-100"
"""Paced work is done at half the speed of this client in this work."""


class Runner:
    """``records`` is the number of records of a work for a client; ``progress(case, done)`` is called after each run.

    ``broker_of`` names the broker of each client: of all the same one, unless they need different ones.
    """

    def __init__(
        self,
        broker_of: BrokerOf,
        loop: str,
        records: Callable[[Work, Description], int],
        progress: Callable[[Case, Done], object],
    ) -> None:
        self._broker_of = broker_of
        self._loop = loop
        self._records = records
        self._progress = progress

    async def run(self, cases: Sequence[Case], clients: Sequence[Description], rounds: int) -> None:
        """Adds every run to its case."""
        for number, case in enumerate(cases):
            able = [client for client in clients if case.work.name in client.works]
            if not able:
                continue
            rate = 0.0
            if case.work.way == PACED and not (rate := _half_speed(cases)):
                case.skipped.append(f"there is no pace: {PACED_BY} was not done by {PACE_MAKER}")
                continue
            turns = [(client, 0) for client in able[:WARM_UP_CLIENTS] if number == 0 or _many(case.work)]
            for round_number in range(1, rounds + 1):
                order = Random(f"{case.work.name} {round_number}").sample(able, len(able))
                turns += [(client, round_number) for client in order]
            with _payload(case.work) as payload:
                try:
                    async with self._topics_of(case.work, self._broker_of(able[0].name)) as topics:
                        for client, round_number in turns:
                            done = await self._turn(case, client, round_number, payload, rate, topics)
                            if round_number:
                                case.done.append(done)
                            self._progress(case, done)
                except KafkaError as error:  # the next case's may be better
                    case.done.append(Done("topics", 0, None, str(error)))
                    self._progress(case, case.done[-1])

    @contextlib.asynccontextmanager
    async def _topics_of(self, work: Work, broker: Broker) -> AsyncIterator[Topics | None]:
        """Topics for all runs, where it takes long to make them."""
        if not _many(work):
            yield None
            return
        made = fresh_topics(broker.bootstrap_servers, work.partitions, work.topics, CONFIGS_OF_MANY)
        async with made as topics:
            yield topics

    async def _turn(
        self, case: Case, client: Description, round_number: int, payload: Path, rate: float, shared: Topics | None
    ) -> Done:
        work, broker = case.work, self._broker_of(client.name)
        records = self._records(work, client)
        async with contextlib.AsyncExitStack() as stack:
            topics = shared
            if topics is None:
                fresh = fresh_topics(broker.bootstrap_servers, work.partitions, work.topics)
                topics = await stack.enter_async_context(fresh)
            run = Run(
                client=client.name,
                work=work.name,
                bootstrap_servers=broker.bootstrap_servers,
                topic=topics.name,
                payload=str(payload),
                records=records,
                warm_up=-(-records // WARM_UP_SHARE),
                loop=self._loop,
                linger_ms=work.linger_ms,
                batch_size=work.batch_size,
                compression=work.compression,
                keyed=work.keyed,
                keys=work.keys,
                tasks=work.tasks,
                rate=rate,
                topics=work.topics,
                partitions=work.partitions,
                round_trip_ms=work.round_trip_ms,
            )
            await ready_page_cache((run.records + run.warm_up) * work.record_size + CLIENT_MEMORY)
            before, cpu_before = 0 if shared is None else await shared.records(), broker.cpu()
            try:
                measurement = await _measure(run, work, broker)
            except WorkerFailed as error:
                return Done(client.name, round_number, None, str(error))
            cpu, expected = broker.cpu(), run.records + run.warm_up
            if cpu is not None and cpu_before is not None:
                measurement = dataclasses.replace(measurement, broker_cpu=(cpu - cpu_before) / expected)
            found = await topics.records() - before
        return Done(client.name, round_number, measurement, _problem(measurement.failures, found, expected))


async def _measure(run: Run, work: Work, broker: Broker) -> Measurement:
    """Over the broker's line, if it has one: then with the count of what went over it after the warm-up."""
    line = broker.line
    if line is None:
        return await measure(run, timeout=RUN_TIMEOUT)
    await line.set_round_trip(work.round_trip_ms, uncounted=run.warm_up * work.record_size)
    try:
        measurement = await measure(run, timeout=RUN_TIMEOUT)
    finally:
        sent = await line.set_round_trip(0)
    return dataclasses.replace(
        measurement,
        requests=sent.requests,
        batch_bytes=sent.batch_bytes / max(1, sent.batches),
    )


def _many(work: Work) -> bool:
    return work.topics * work.partitions > MANY


def _half_speed(cases: Sequence[Case]) -> float:
    """In records a second; 0 if unknown."""
    for case in cases:
        if case.work.name == PACED_BY and (speed := case.spread(PACE_MAKER, FIGURES["speed"])):
            return speed.median / 2
    return 0.0


@contextlib.contextmanager
def _payload(work: Work) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="aioproducer-benchmark-") as directory:
        path = Path(directory, "payload")
        write_payload(path, work.record_size)
        yield path


def _problem(failures: dict[str, int], found: int, expected: int) -> str:
    problems = [f"{count:,} × {kind}" for kind, count in failures.items()]
    if found < expected:
        problems.append(f"{expected - found:,} of {expected:,} records are not in the log")
    elif found > expected:
        problems.append(f"{found - expected:,} more records are in the log than were sent")
    return "; ".join(problems)
