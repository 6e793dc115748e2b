"""``python -m benchmarks broker-costs``: what a request, a batch in it and a record in that cost Kafka.

One finished Produce request goes to a real Kafka again and again, on one blocking socket. What differs is how many
batches it has, each for another partition, and how many records each of them has. What counts is the CPU time of the
broker's threads that serve clients, so neither its JIT compiler's nor its garbage collector's. Three shapes give the
three costs; the others tell how well these predict.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from statistics import median

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.protocol.framing import decode_response
from aioproducer.protocol.messages.produce import ProduceResponse
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.blocking_connection import BlockingConnection
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.produce_frame import VERSION, produce_frame
from benchmarks.harness.usage import cpu_seconds_of_threads

VALUE = b"x" * 100
TOPIC = "costs"
SERVING = "data-plane-kafk"
"""How the names of the threads that serve clients begin, as far as the system keeps them."""


@dataclass(frozen=True)
class Shape:
    """Of a request; ``records`` are those of each batch."""

    batches: int
    records: int

    def __str__(self) -> str:
        batches = f"{self.batches} batch{'' if self.batches == 1 else 'es'}"
        return f"{batches} of {self.records:,} record{'' if self.records == 1 else 's'}"


ONE, WIDE, LONG = Shape(1, 1), Shape(100, 1), Shape(1, 300)
"""They give the costs."""
SHAPES = (ONE, WIDE, LONG, Shape(6, 1), Shape(6, 130), Shape(1, 130), Shape(20, 10))

WARM_UP = 10
"""So many times the requests of a round come before: Kafka's JIT compiler goes on making it faster for a while."""


@dataclass(frozen=True)
class Run:
    """``cpu`` is the broker's, in seconds for all ``requests``."""

    shape: Shape
    round: int
    requests: int
    cpu: float

    @property
    def us(self) -> float:
        """Microseconds of a request."""
        return self.cpu / self.requests * 1e6


@dataclass(frozen=True)
class Report:
    """All rounds of all shapes."""

    environment: Environment
    requests: int
    """Of each run."""
    runs: Sequence[Run]

    def us(self, shape: Shape) -> float:
        """Microseconds of the broker for a request, the median of the rounds."""
        return median(run.us for run in self.runs if run.shape == shape)

    @property
    def record(self) -> float:
        """Microseconds of a record of 100 B in a batch."""
        return (self.us(LONG) - self.us(ONE)) / (LONG.records - ONE.records)

    @property
    def batch(self) -> float:
        """Microseconds of a batch, besides its records."""
        return (self.us(WIDE) - self.us(ONE)) / (WIDE.batches - ONE.batches) - self.record

    @property
    def request(self) -> float:
        """Microseconds of a request, besides its batches."""
        return self.us(ONE) - self.batch - self.record

    def computed(self, requests: float, batches: float, records: float) -> float:
        """Microseconds of the broker for so many of each."""
        return self.request * requests + self.batch * batches + self.record * records

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        rounds = max(run.round for run in self.runs)
        lines = [
            f"Microseconds of the broker's CPU; medians of {rounds} rounds of {self.requests:,} requests.",
            f"Computed: {self.request:.0f} for a request, {self.batch:.0f} for each batch,"
            f" {self.record:.2f} for each record.",
            "",
            "| request | measured | computed | measured ÷ computed |",
            "|---|---:|---:|---:|",
        ]
        for shape in SHAPES:
            measured = self.us(shape)
            computed = self.computed(1, shape.batches, shape.batches * shape.records)
            lines.append(f"| {shape} | {measured:,.0f} | {computed:,.0f} | {measured / computed:.2f} |")
        return lines

    def problems(self) -> list[str]:
        return [f"{shape} has no figure" for shape in SHAPES if not any(run.shape == shape for run in self.runs)]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables(), self.problems())


def repeat(connection: BlockingConnection, frame: bytes, times: int) -> None:
    """Sends a request so often. RuntimeError if the broker refuses a batch."""
    for _ in range(times):
        answer = connection.ask(frame)
    _, response = decode_response(ProduceResponse, VERSION, answer)
    for partition in response.responses[0].partition_responses:
        if partition.error_code:
            raise RuntimeError(f"the broker refused partition {partition.index}: error {partition.error_code}")


def cost(connection: BlockingConnection, shape: Shape, round_: int, times: int, cpu: Callable[[], float]) -> Run:
    """One run."""
    frame = produce_frame(TOPIC, VALUE, acks=-1, batches=shape.batches, records=shape.records)
    before = cpu()
    repeat(connection, frame, times)
    return Run(shape, round_, times, cpu() - before)


async def measure(options: argparse.Namespace, say: Callable[[str], object]) -> Report:
    kafka = ApacheKafka()
    environment = Environment.now(loop=options.loop, broker=f"Apache Kafka {kafka.version}, one node")
    machine = MachineCpu()
    runs: list[Run] = []
    async with kafka:
        async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
            await admin.create_topic(NewTopic(TOPIC, max(shape.batches for shape in SHAPES), 1))
        cpu = partial(cpu_seconds_of_threads, kafka.pid(1), SERVING)
        with closing(BlockingConnection(kafka.bootstrap_servers)) as connection:
            for round_ in range(-WARM_UP, options.rounds):
                # In turn from either end: what comes first finds another broker than what comes last.
                for shape in SHAPES if round_ % 2 else reversed(SHAPES):
                    run = cost(connection, shape, round_ + 1, options.requests, cpu)
                    if round_ >= 0:
                        runs.append(run)
                        say(f"round {run.round}: {shape}: {run.us:,.1f} µs")
    return Report(dataclasses.replace(environment, others=machine.others()), options.requests, runs)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks broker-costs",
        description="Measures what requests, batches and records cost Kafka.",
        epilog="Exit status 0: there are figures of all shapes.",
    )
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="%(default)s, of which medians count")
    parser.add_argument("--requests", type=positive, default=2_000, metavar="N", help="of each run (%(default)s)")
    command.add_options(parser)
    return command.report(measure, parser.parse_args(arguments))
