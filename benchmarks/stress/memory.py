"""``python -m benchmarks memory``: how much memory a producer takes when no broker answers, however small its records.

Many senders against a broker that never answers a Produce request, until nothing more is accepted. The traced peak
(tracemalloc: all that Python and the compiled modules allocate) is to stay below ``buffer.memory`` plus what is in
flight plus a fixed part, and the whole pool has to be back after ``close``. It also measures what is charged for
bookkeeping: ``BATCH_COST`` per batch and ``PARKED_COST`` per record of ``send`` that waits.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import gc
import tracemalloc
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from aioproducer import Delivery, KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.faults.faults import Faults, ReceivedRequest, RequestFault
from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.batches.buffer_pool import SPARE_BYTES, BatchBuffer, BufferPool
from aioproducer.producer.batches.producer_batch import BATCH_COST, ProducerBatch
from aioproducer.producer.delivery.audience import Audience
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.parking.parked_record import PARKED_COST, ParkedRecord
from aioproducer.producer.parking.parking_lot import TRIAL, ParkingLot
from aioproducer.protocol.api_key import ApiKey
from aioproducer.types import ProducerRecord
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict, quiet
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.stress.producer_parts import parts_of

MIB = 1 << 20
FIXED = SPARE_BYTES + MIB
"""The free list; the producer itself, its connections, its metadata."""
PER_SENDER = 4096
"""A task with its coroutines, and in ``enqueue`` a Condition and the record that waits: its caller's memory."""

Sender = Callable[[KafkaProducer, bytes], Coroutine[Any, Any, None]]


async def enqueue(producer: KafkaProducer, value: bytes) -> None:
    """With back-pressure, without reading outcomes."""
    while True:
        _ = await producer.enqueue("t", value)


async def send(producer: KafkaProducer, value: bytes) -> None:
    """Without back-pressure, until nothing more may be parked; without reading outcomes."""
    recent: deque[Delivery] = deque(maxlen=TRIAL + 1)
    while not recent or not recent[0].done():
        recent.append(producer.send("t", value))
        await asyncio.sleep(0)


async def send_and_await(producer: KafkaProducer, value: bytes) -> None:
    """One record after another."""
    while True:
        _ = await producer.send("t", value)


SENDERS: dict[str, Sender] = {"enqueue": enqueue, "send": send, "await": send_and_await}
TITLES = {"enqueue": "`enqueue`", "send": "`send`, not awaited", "await": "`await send`"}


@dataclass(frozen=True)
class Held:
    """What a run took at most, in bytes, what it may have taken, and what is missing from the pool afterwards."""

    peak: int
    allowed: int
    records: int
    missing: int


@dataclass(frozen=True)
class Run:
    """Senders, by their name in ``SENDERS``, of values of a size."""

    size: int
    sender: str
    held: Held


@dataclass(frozen=True)
class Cost:
    """Bytes that something takes, and those that are charged for it by a constant."""

    constant: str
    measured: int
    charged: int


@dataclass(frozen=True)
class Report:
    """Everything that was held."""

    environment: Environment
    senders: int
    buffer_mib: int
    costs: Sequence[Cost]
    runs: Sequence[Run]

    def verdicts(self) -> list[Verdict]:
        costs = [
            Verdict(
                f"`{cost.constant}` is enough", f"{cost.measured} of {cost.charged} B", cost.measured <= cost.charged
            )
            for cost in self.costs
        ]
        most = max((run.held for run in self.runs), key=lambda held: held.peak / held.allowed)
        missing = sum(abs(run.held.missing) for run in self.runs)
        return [
            *costs,
            Verdict(
                "no peak is above what is allowed",
                f"most: {most.peak / MIB:.1f} of {most.allowed / MIB:.1f} MiB",
                most.peak <= most.allowed,
            ),
            Verdict("after `close` no memory is missing", f"{missing} B", missing == 0),
        ]

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            f"{self.senders:,} senders, `buffer.memory` of {self.buffer_mib} MiB; nothing is answered.",
            "",
            "| value | senders call | records in batches | traced peak, MiB | allowed, MiB |",
            "|---:|---|---:|---:|---:|",
        ]
        for run in self.runs:
            peak, allowed = run.held.peak / MIB, run.held.allowed / MIB
            lines.append(
                f"| {run.size:,} B | {TITLES[run.sender]} | {run.held.records:,} | {peak:.1f} | {allowed:.1f} |"
            )
        return [*lines, "", *Verdict.table(self.verdicts())]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())


class Mute(Faults):
    """No Produce request is ever answered."""

    def on_request(self, request: ReceivedRequest) -> RequestFault | None:
        return RequestFault(handled_after=10**6) if request.header.api_key == ApiKey.PRODUCE else None


async def hold(sender: Sender, *, buffer_memory: int, senders: int, size: int, **config: Any) -> Held:
    """Lets senders send values of a size until nothing moves any more."""
    async with EmbeddedCluster(faults=Mute()) as cluster:
        cluster.create_topic("t", 4)
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            buffer_memory=buffer_memory,
            max_block_ms=600_000,
            request_timeout_ms=600_000,
            delivery_timeout_ms=1_200_000,
            **config,
        )
        await producer.start()
        _ = await producer.partitions_for("t")
        value = bytes(size)
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            tasks = [asyncio.create_task(sender(producer, value)) for _ in range(senders)]
            available = -1.0
            while (now_available := producer.metrics()["buffer-available-bytes"]) != available:
                available = now_available
                await asyncio.sleep(0.1)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        batches = list(parts_of(producer).completer.incomplete)
        # What the transport and the broker, which is in this process too, have of what is in flight.
        in_flight = 2 * sum(len(batch.body) for batch in batches if batch.in_flight)
        counts = [batch.count for batch in batches]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await producer.close(timeout=0)
        metrics = producer.metrics()
    parked = producer.config.parked_memory if sender is send else 0
    return Held(
        peak=peak - before,
        allowed=buffer_memory + parked + in_flight + FIXED + senders * PER_SENDER,
        records=sum(counts),
        missing=int(metrics["buffer-total-bytes"] - metrics["buffer-available-bytes"] + metrics["parked-bytes"]),
    )


class _StandingStill:
    """A loop in which nothing ever happens."""

    def time(self) -> float:
        return 1000.0


LOOP: Any = _StandingStill()


def traced(build: Callable[[], object]) -> int:
    """Bytes that what ``build`` makes takes."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        made = build()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        del made
        return after - before
    finally:
        tracemalloc.stop()


def batch_cost(count: int = 2000) -> int:
    """Bytes that a batch of one record takes beside its record and 16 bytes of sizes, when it is closed."""

    audiences = []

    def build() -> dict[ProducerBatch, int]:
        batches = {}
        audience = Audience(LOOP)
        audiences.append(audience)
        for number in range(count):
            result = ProduceResult(audience, "topic", number)
            result.add_waiter(0, None)  # whose future is that of the task that awaits
            batch = ProducerBatch(result, BatchBuffer(), 10_000 + number, 10**12 + number, 1000.0 + number)
            _ = batch.append(10**12, None, b"0123456789", None)
            batch.freeze()
            batch.body, batch.records, batch.header = batch.records, b"", bytes(61)
            batch.retry_at, batch.sent_at, batch.ready_at, batch.producer_id = number + 0.1, number + 0.2, 0.3, 2**40
            batches[batch] = number
        return batches

    example = next(iter(build()))
    return traced(build) // count - len(example.body) - len(example.sizes)


def parked_cost(count: int = 2000) -> int:
    """Bytes that a record of ``send`` takes beside its own while it waits."""

    def lot_of(count: int) -> ParkingLot:
        pool = BufferPool(MIB, 1)
        accumulator = RecordAccumulator(pool, LOOP, None, batch_size=1, max_request_size=MIB, ignore_keys=False)
        lot = ParkingLot(
            accumulator,
            10**9,
            FailureLog(),
            ProducerMetrics(),
            on_failed=lambda error: None,
            wake=lambda: None,
            on_serializing=lambda: None,
            within_serializer=lambda: False,
        )
        for number in range(count):
            record = ProducerRecord("topic", b"value")
            lot.park(ParkedRecord(accumulator.audience, record, 100, now=1000.0 + number, max_block=60.0))
        return lot

    return (traced(lambda: lot_of(count)) - traced(lambda: lot_of(0))) // count


def measure(senders: int, buffer: int, sizes: Sequence[int]) -> Report:
    environment, cpu = Environment.now(loop="asyncio", broker="embedded, answers no Produce request"), MachineCpu()
    costs = [Cost("BATCH_COST", batch_cost(), BATCH_COST), Cost("PARKED_COST", parked_cost(), PARKED_COST)]
    runs: list[Run] = []
    for size in sizes:
        for name, sender in SENDERS.items():
            held = asyncio.run(hold(sender, buffer_memory=buffer * MIB, senders=senders, size=size))
            runs.append(Run(size, name, held))
            command.say(f"{runs[-1]}")
    return Report(dataclasses.replace(environment, others=cpu.others()), senders, buffer, costs, runs)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks memory",
        description=__doc__.partition("\n\n")[0],
        epilog="Exit status 0: no more is taken than is charged and allowed, and all comes back; 1: it is not so.",
    )
    parser.add_argument("--senders", type=positive, default=1000)
    parser.add_argument("--buffer", type=positive, default=32, help="buffer.memory in MiB")
    parser.add_argument("--sizes", type=positive, nargs="+", default=[10, 100, 1000], help="bytes of a value")
    command.add_json(parser)
    options = parser.parse_args(arguments)
    with quiet():
        return command.end(measure(options.senders, options.buffer, options.sizes), options)
