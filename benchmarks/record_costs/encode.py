"""``python -m benchmarks encode``: from a table's columns, or from lists, to the bytes of record batches.

What a bulk send does before anything is sealed and sent, in one thread, with memory always at hand.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import median
from typing import Any, Final

from aioproducer.net.metadata.cluster import NO_TOPIC_ID
from aioproducer.producer.accumulator.built_in_partitioner import Partitioning
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator, TopicQueues
from aioproducer.producer.batches.buffer_pool import BufferPool
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.bulk.columns import Columns
from aioproducer.producer.bulk.table_columns import TableColumns
from aioproducer.producer.bulk.tally import BulkTally
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu

PARTITIONS: Final = 6

FROM_ARROW: Final = "a table, 100 B"
TARGET: Final = 15
"""Million records a second of that kind."""


class Loop:
    """The part of a loop that an accumulator needs; nothing waits here."""

    def time(self) -> float:
        return 0.0

    def create_future(self) -> Any:
        raise NotImplementedError("nothing is awaited")

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Any:
        raise NotImplementedError("nothing is called later")


class Encoder:
    """An accumulator whose batches are given up as soon as they are full. (Delivered, as far as the account goes.)"""

    def __init__(self, batch_size: int) -> None:
        self.bytes = self.records = 0
        loop = Loop()
        self.tally = BulkTally(loop)
        self._accumulator = RecordAccumulator(
            BufferPool(64 * 1024 * 1024, batch_size),
            loop,
            None,
            batch_size=batch_size,
            max_request_size=1024 * 1024,
            ignore_keys=False,
            on_full=self._full,
        )
        self._accumulator.detour = False
        topic = TopicQueues("t", NO_TOPIC_ID, Partitioning(Random(0)))
        topic.queues = [PartitionQueue("t", partition, None) for partition in range(PARTITIONS)]
        topic.partitioner.follow(topic.queues)
        self._accumulator.topics["t"] = topic
        self._queues = topic.queues

    def encode(self, columns: TableColumns | Columns) -> None:
        """Reads and appends everything."""
        while (rows := columns.read()) is not None:
            if rows.append_to(self._accumulator, "t", 0, self.tally, []) < rows.count:
                raise RuntimeError("there was no memory")
        for queue in self._queues:
            self._accumulator.close_batch(queue)

    def _full(self, queue: PartitionQueue) -> None:
        batch: ProducerBatch = queue.batches.popleft()
        self.bytes += len(batch.records)
        self.records += batch.count
        self._accumulator.pool.deallocate(batch.allocated)
        batch.succeed(0, -1)


@dataclass(frozen=True)
class Shape:
    """Records of one kind; ``portions`` makes all of them anew, to be read a little at a time."""

    title: str
    portions: Callable[[], TableColumns | Columns]


def shapes(records: int) -> Iterator[Shape]:
    """Tables and lists of records of 100 and 1,000 bytes, with keys and without."""
    import pyarrow as pa

    keys = [b"%016d" % number for number in range(records)]
    for size, count in ((100, records), (1000, records // 5)):
        values = [bytes(size)] * count
        table = pa.table({"value": pa.array(values, pa.binary()), "key": pa.array(keys[:count], pa.binary())})
        yield Shape(f"a table, {size} B", partial(TableColumns, table, value="value"))
        yield Shape(f"a table, {size} B and a key of 16 B", partial(TableColumns, table, value="value", key="key"))
        yield Shape(f"a list, {size} B", partial(Columns, values))
        yield Shape(f"a list, {size} B and a key of 16 B", partial(Columns, values, keys=keys[:count]))


@dataclass(frozen=True)
class Run:
    """One turn of a shape: CPU time per record, and bytes of it that were encoded."""

    records: str
    round: int
    ns: float
    size: float


@dataclass(frozen=True)
class Report:
    """All rounds."""

    environment: Environment
    batch_size: int
    rounds: int
    runs: Sequence[Run]

    def ns(self, records: str) -> float:
        """The median of the rounds."""
        return median(run.ns for run in self.runs if run.records == records)

    def verdicts(self) -> list[Verdict]:
        reached = 1000 / self.ns(FROM_ARROW)
        target = f"{FROM_ARROW}: million records/s ≥ {TARGET:g}"
        return [Verdict(target, f"{reached:.1f}", reached >= TARGET)]

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            f"Batches of {self.batch_size:,} B; medians of {self.rounds} rounds, of one core's time.",
            "",
            "| records | ns a record | million records/s | MB/s |",
            "|---|---:|---:|---:|",
        ]
        for records, size in {run.records: run.size for run in self.runs}.items():
            ns = self.ns(records)
            lines.append(f"| {records} | {ns:.0f} | {1000 / ns:.1f} | {1000 * size / ns:,.0f} |")
        return [*lines, "", *Verdict.table(self.verdicts())]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())


def turn(shape: Shape, round_: int, batch_size: int) -> Run:
    encoder = Encoder(batch_size)
    portions = shape.portions()
    began = time.process_time_ns()
    encoder.encode(portions)
    took = time.process_time_ns() - began
    if encoder.records != portions.count or encoder.tally.result(portions.count).delivered != portions.count:
        raise RuntimeError(f"{encoder.records} of {portions.count} records were encoded")
    return Run(shape.title, round_, took / encoder.records, encoder.bytes / encoder.records)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks encode",
        description=__doc__,
        epilog=f"Exit status 0: {TARGET:g} million records of 100 B a second from Arrow; 1: fewer.",
    )
    parser.add_argument("--records", type=positive, default=1_000_000, help="of 100 bytes; of 1,000 a fifth")
    parser.add_argument("--rounds", type=positive, default=7)
    parser.add_argument("--batch-size", type=positive, default=16 * 1024)
    command.add_json(parser)
    options = parser.parse_args(arguments)
    environment, cpu = Environment.now(loop="asyncio", broker="none"), MachineCpu()
    rounds = range(1, options.rounds + 1)
    runs = [turn(shape, round_, options.batch_size) for shape in shapes(options.records) for round_ in rounds]
    environment = dataclasses.replace(environment, others=cpu.others())
    return command.end(Report(environment, options.batch_size, options.rounds, runs), options)
