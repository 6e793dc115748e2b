"""What ten thousand services need, computed from what was measured of one broker and one producer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from aioproducer.configs.config_def import table
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.producer.batches.producer_batch import BATCH_COST
from benchmarks.fleet.fleet import Report
from benchmarks.fleet.point import START, Point

SERVICES: Final = 10_000
RATE: Final = 1_000
"""Records a second of a service, of 100 B each."""
PARTITIONS: Final = 100
"""Partitions to which a service sends."""
LINGER: Final = 0.1
"""Seconds."""
BROKERS: Final = (100, 1_000)
IN_USE: Final = (100, 1_000, 10_000, 100_000)
"""Partitions in use by a producer, of which answers with metadata are computed."""
REFRESH: Final = 300.0
"""Seconds from one refresh of a producer to the next, by default."""

FULL_BATCH: Final = 130
"""Records of 100 B in a batch of 16 KiB."""
FULL_REQUEST: Final = 6
"""Batches in a request, one for each partition of the topic."""

_UNITS: Final = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
_CONFIGS: Final = table(ProducerConfig)
_BUFFER: Final[int] = _CONFIGS["buffer.memory"].default
_OPEN_BATCH: Final[int] = _CONFIGS["batch.initial.size"].default + BATCH_COST
"""Bytes of ``buffer.memory`` that a batch takes when it begins."""
_OPEN_BATCHES: Final[int] = _BUFFER // _OPEN_BATCH // 1000 * 1000
"""How many fit into ``buffer.memory``, in whole thousands."""


class Broker(NamedTuple):
    """Microseconds of a broker's CPU."""

    request: float
    batch: float
    record: float


class Client(NamedTuple):
    """What one producer takes, measured on real Kafka: microseconds of CPU for a record that is a request of its own
    and for one in a full batch; records a second in full batches at most; MiB of the process."""

    single: float
    full: float
    most: float
    mib: float


class Way(NamedTuple):
    """How the services send; requests and batches a second of all together."""

    title: str
    requests: float
    batches: float


def lingering(rate: float) -> float:
    """Batches a second of a partition that gets so many records a second: each begins with a record, and lingers."""
    return 1 / (LINGER + 1 / rate)


@dataclass(frozen=True)
class Budget:
    broker: Broker
    client: Client
    fleet: Report

    @property
    def records(self) -> float:
        return float(SERVICES * RATE)

    @property
    def kib_a_partition(self) -> float:
        """Memory of a producer for a partition in use."""
        few, many = self._fewest, self.fleet.largest
        return (_mib(many) - _mib(few)) * 1024 / (many.size.partitions - few.size.partitions)

    @property
    def kib_a_connection(self) -> float:
        """Memory of a producer for a connection: the larger one of what is left with the fewest partitions, and of what
        more brokers add with the most partitions."""
        few, many = self._fewest, self.fleet.largest
        least = (_mib(few) * 1024 - few.size.partitions * self.kib_a_partition) / few.size.brokers
        alike = [point for point in self.fleet.points if point.size.partitions == many.size.partitions]
        near = min(alike, key=lambda point: point.size.brokers)
        if near.size.brokers == many.size.brokers:
            return least
        return max(least, (_mib(many) - _mib(near)) * 1024 / (many.size.brokers - near.size.brokers))

    @property
    def bytes_a_partition(self) -> float:
        """Of an answer with metadata."""
        few, many = self._fewest, self.fleet.largest
        return (_answer(many) - _answer(few)) / (many.size.partitions - few.size.partitions)

    @property
    def bytes_a_broker(self) -> float:
        """Of an answer with metadata."""
        few = self._fewest
        return (_answer(few) - few.size.partitions * self.bytes_a_partition) / few.size.brokers

    @property
    def _growing(self) -> list[Point]:
        """The points with as many brokers as the largest, by their partitions in use."""
        brokers = self.fleet.largest.size.brokers
        points = [point for point in self.fleet.points if point.size.brokers == brokers]
        return sorted(points, key=lambda point: point.size.partitions)

    @property
    def _fewest(self) -> Point:
        return self._growing[0]

    def ways(self) -> list[Way]:
        keyed = SERVICES * PARTITIONS * lingering(RATE / PARTITIONS)
        batches = self.records / FULL_BATCH
        return [
            Way(f"with keys, to {PARTITIONS} partitions each; every record leaves at once", self.records, self.records),
            Way("the same, `linger_ms=100`", keyed, keyed),
            Way("without keys, `linger_ms=100`", SERVICES / LINGER, SERVICES / LINGER),
            Way("through 100 gateways with full batches", batches / FULL_REQUEST, batches),
        ]

    def cores(self, way: Way) -> float:
        """Of all brokers."""
        each = self.broker
        return (each.request * way.requests + each.batch * way.batches + each.record * self.records) / 1e6

    def requests(self) -> list[str]:
        each, ways = self.broker, self.ways()
        at_once, keyed, unkeyed, _ = (self.cores(way) for way in ways)
        rate = RATE / PARTITIONS
        each_second = lingering(rate)
        rows = [f"| {way.title} | {way.requests:,.0f} | {way.batches:,.0f} | {self.cores(way):,.0f} |" for way in ways]
        return [
            f"    CPU = {each.request:.0f} µs × requests + {each.batch:.0f} µs × batches"
            f" + {each.record:.2f} µs × records",
            "",
            "| how the services send | requests/s | batches/s | cores |",
            "|---|---:|---:|---:|",
            *rows,
            "",
            f"- With keys and a linger, a partition gets {rate:.0f} records a second. A batch begins with one of them"
            f" and lingers {LINGER * 1e3:.0f} ms;",
            f"  the next begins with the next record, {1e3 / rate:.0f} ms later on average. That is"
            f" {each_second:.0f} batches a second, of {rate / each_second:.0f} records each, and hardly",
            f"  two of them in a request: {keyed:,.0f} cores instead of {at_once:,.0f}.",
            "  **The more partitions records are spread over, the less a linger saves.**",
            "- Without keys the partitioner stays with one partition until `batch.size` bytes are in it:"
            f" {SERVICES:,} × {1 / LINGER:.0f} batches",
            f"  of {RATE * LINGER:.0f} records. This is the whole difference between {keyed:,.0f} cores and"
            f" {unkeyed:,.0f}.",
            f"- A full batch has {FULL_BATCH} records of 100 B, and a request of a gateway {FULL_REQUEST} batches.",
        ]

    def connections(self) -> list[str]:
        def row(title: str, cells: list[str]) -> str:
            return f"| {title} | {' | '.join(cells)} |"

        each = self.kib_a_connection
        return [
            row("", [f"{brokers:,} brokers" for brokers in BROKERS]),
            "|---|" + "---:|" * len(BROKERS),
            row(
                "connections of a service whose partitions are everywhere",
                [f"{brokers:,}" for brokers in BROKERS],
            ),
            row(
                f"memory of a service for them, at most {each:.0f} KiB each (simulated)",
                [f"{brokers * each / 1024:.0f} MiB" for brokers in BROKERS],
            ),
            row("connections of a broker", [f"{SERVICES:,}"] * len(BROKERS)),
            row("connections of the cluster", [f"{SERVICES * brokers:,}" for brokers in BROKERS]),
        ]

    def metadata(self) -> list[str]:
        brokers = self.fleet.largest.size.brokers
        lines = [
            f"An answer has {self.bytes_a_partition:.0f} bytes for each partition in use and {self.bytes_a_broker:.0f}"
            " for each broker (simulated; more with long host names).",
            f"Computed for {SERVICES:,} services in a cluster of {brokers:,} brokers:",
            "",
            "| partitions in use by each | an answer | every 5 minutes: answers/s, MB/s | after a moved leader, all"
            " within seconds |",
            "|---:|---:|---:|---:|",
        ]
        for partitions in IN_USE:
            answer = partitions * self.bytes_a_partition + brokers * self.bytes_a_broker
            rate = SERVICES / REFRESH
            lines.append(
                f"| {partitions:,} | {_size(answer)} | {rate:.0f}, {rate * answer / 1e6:.0f} |"
                f" {_size(answer * SERVICES)} |"
            )
        return lines

    def services(self) -> list[str]:
        client, batches = self.client, 1 / LINGER
        at_once, batched = RATE * client.single, batches * client.single + RATE * client.full
        return [
            f"Measured: {client.single:.1f} µs of CPU for a record that is a request of its own (`single`),"
            f" {client.full:.2f} µs for one in a full batch",
            f"(`stream-100`), and {client.mib:.0f} MiB for the whole process. Computed, of one core, for {RATE:,}"
            " records a second:",
            "",
            "| | CPU | all services |",
            "|---|---:|---:|",
            f"| every record leaves at once | {RATE:,} × {client.single:.1f} µs = {at_once / 1e4:.1f} % |"
            f" {at_once * SERVICES / 1e6:,.0f} cores |",
            f"| {batches:.0f} batches of {RATE * LINGER:.0f} records |"
            f" {batches:.0f} × {client.single:.1f} µs + {RATE:,} × {client.full:.2f} µs ="
            f" {batched / 1e4:.2f} % | {batched * SERVICES / 1e6:,.0f} cores |",
            "",
            f"Memory: the {client.mib:.0f} MiB, the connections above, {self.kib_a_partition:.1f} KiB for each"
            " partition in use (simulated), and what waits in `buffer.memory`.",
            f"An open batch takes {_OPEN_BATCH / 1024:.1f} KiB of that at least, so the default of"
            f" {_BUFFER >> 20} MiB holds {_OPEN_BATCHES:,} of them: with more partitions in use than"
            " that, raise it.",
        ]

    def limits(self) -> list[str]:
        client, points = self.client, self._growing
        largest, costs = self.fleet.largest, sorted(self.fleet.a_partition(point) for point in points)
        runs = [
            f"{max(one.longest_collection for one in point.happenings if one.event != START) / 1e3:.1f} s at once with"
            f" {point.size.partitions:,} partitions"
            for point in points[1:]
        ]
        return [
            "| limit | where | what shows it |",
            "|---|---|---|",
            f"| CPU: an event loop has one core | {client.most / 1e6:.1f} M records/s of 100 B in full batches"
            f" (measured), {1e6 / round(client.single, 1):,.0f} requests/s (1 s ÷ {client.single:.1f} µs, computed) |"
            " `record-queue-time-avg` grows, the loop is late |",
            "| open files | a descriptor for each broker; the soft limit of Linux is often 1,024 | `broker_unreachable`"
            ' in the log, "Too many open files" |',
            f"| partitions in use | a refresh takes {costs[0]:.0f} to {costs[-1]:.0f} µs of CPU for each (simulated):"
            f" of {largest.size.partitions:,} {self.fleet.refresh(largest):.1f} s | `metadata-age`, delays at p99 |",
            "| the garbage collector | its oldest generation scans every object:"
            f" {', '.join(runs)} (simulated, with the model's objects) | stalls; `gc.freeze()` after the start removes"
            " most of it |",
            f"| `buffer.memory` | {_OPEN_BATCHES:,} open batches by default | `bufferpool-wait-ratio` |",
        ]


def _mib(point: Point) -> float:
    return point.of("steady").rss


def _answer(point: Point) -> float:
    """Bytes of an answer with all metadata in use."""
    start = point.of(START)
    return start.metadata_mb * 1e6 / start.requests["METADATA"]


def _size(number: float) -> str:
    """Bytes, in two digits."""
    unit = next(unit for unit in ("GB", "MB", "kB", "bytes") if number >= _UNITS[unit] or unit == "bytes")
    return f"{float(f'{number / _UNITS[unit]:.2g}'):g} {unit}"
