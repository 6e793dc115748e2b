"""``python -m benchmarks schemas``: what a serializer for schema registries costs besides its library, and beside
confluent-kafka's.

Each way serializes the same records, in turn, in one thread, with the schema's id known. Time is this process's CPU
time.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import io
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from aioproducer.schema_registry import (
    AvroSerializer,
    JsonSchemaSerializer,
    ProtobufSerializer,
    RegisteredSchema,
    Schema,
)
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu

TOPIC: Final = "orders"
MOST: Final = 1.0
"""Microseconds that a record may cost besides fastavro's own time."""

AVRO: Final = "Avro, a dict"
LIBRARY, OURS, THEIRS = "library alone", "aioproducer", "confluent-kafka"

Serialize = Callable[[Any], object]


@dataclass
class Order:
    """A record of some 60 bytes."""

    number: int
    customer: str
    product: str
    quantity: int
    price: float
    paid: bool
    tags: list[str]
    note: str | None = None


ORDER: Final = Order(123456, "customer-42", "a book about Kafka", 2, 39.95, True, ["new", "gift"])


class Known:
    """Stands for the client of a registry that has registered everything before."""

    async def register_schema(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        return RegisteredSchema(1, subject, 1, schema)


@dataclass(frozen=True)
class Format:
    """A format, and what serializes ``data`` in it, by name."""

    title: str
    data: Any
    ways: Mapping[str, Serialize]


def formats() -> Iterator[Format]:
    """All formats; without confluent-kafka its way is missing."""
    yield from _avro()
    yield from _json()
    yield _protobuf()


def _avro() -> Iterator[Format]:
    import fastavro

    ours = AvroSerializer(_known(), Order)
    assert ours.schema is not None
    of_dicts = AvroSerializer(_known(), ours.schema)
    parsed, write = fastavro.parse_schema(json.loads(ours.schema.text)), fastavro.schemaless_writer
    data = dataclasses.asdict(ORDER)

    def library(data: Any) -> bytes:
        stream = io.BytesIO()
        write(stream, parsed, data)
        return stream.getvalue()

    theirs = _confluent("avro.AvroSerializer", lambda kind, client: kind(client, ours.schema.text))  # type: ignore[union-attr]
    yield Format(AVRO, data, {LIBRARY: library, OURS: _ours(of_dicts), **theirs})
    # A dict is what fastavro and confluent-kafka need of a dataclass.
    as_dict = {name: _of_dict(way) for name, way in {LIBRARY: library, **theirs}.items()}
    yield Format("Avro, a dataclass", ORDER, {LIBRARY: as_dict.pop(LIBRARY), OURS: _ours(ours), **as_dict})


def _json() -> Iterator[Format]:
    import pydantic

    ours = JsonSchemaSerializer(_known(), Order)
    assert ours.schema is not None
    text = ours.schema.text
    checked = JsonSchemaSerializer(_known(), text)
    theirs = _confluent("json_schema.JSONSerializer", lambda kind, client: kind(text, client))
    data = dataclasses.asdict(ORDER)
    ways = {LIBRARY: lambda data: json.dumps(data).encode(), OURS: _ours(checked), **theirs}
    yield Format("JSON, a dict, checked", data, ways)
    adapter = pydantic.TypeAdapter(Order)
    yield Format("JSON, a dataclass", ORDER, {LIBRARY: adapter.dump_json, OURS: _ours(ours)})


def _protobuf() -> Format:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    # A message that the library has: its generated class is like any other.
    data = FieldDescriptorProto(name="customer-42", number=123456, type_name="a book about Kafka", json_name="gift")
    ours = ProtobufSerializer(_known(), FieldDescriptorProto)
    options = {"use.deprecated.format": False}
    theirs = _confluent("protobuf.ProtobufSerializer", lambda kind, client: kind(FieldDescriptorProto, client, options))
    return Format(
        "Protobuf, a message", data, {LIBRARY: lambda data: data.SerializeToString(), OURS: _ours(ours), **theirs}
    )


def _known() -> Any:
    return Known()


def _ours(serializer: Any) -> Serialize:
    asyncio.run(serializer.prepare(TOPIC))
    serialize, headers = serializer.serialize, []  # type: ignore[var-annotated]
    return lambda data: serialize(TOPIC, headers, data)


def _of_dict(way: Serialize) -> Serialize:
    return lambda data: way(dataclasses.asdict(data))


def _confluent(path: str, make: Callable[[Any, Any], Any]) -> dict[str, Serialize]:
    """Its serializer with its own client that stands for a registry; nothing without confluent-kafka."""
    try:
        import importlib

        from confluent_kafka.schema_registry import SchemaRegistryClient
        from confluent_kafka.serialization import MessageField, SerializationContext

        module, _, name = path.partition(".")
        kind = getattr(importlib.import_module(f"confluent_kafka.schema_registry.{module}"), name)
    except ImportError:
        return {}
    serialize = make(kind, SchemaRegistryClient.new_client({"url": "mock://"}))
    context = SerializationContext(TOPIC, MessageField.VALUE)
    return {THEIRS: lambda data: serialize(data, context)}


@dataclass(frozen=True)
class Run:
    """One turn of a way: CPU time per record."""

    format: str
    way: str
    round: int
    us: float


@dataclass(frozen=True)
class Report:
    """All rounds."""

    environment: Environment
    records: int
    rounds: int
    runs: Sequence[Run]

    def us(self, format: str, way: str) -> float | None:
        """The median of the rounds; None if the way is missing."""
        found = list(self._by_round(format, way).values())
        return median(found) if found else None

    def besides(self, format: str, way: str) -> float | None:
        """The median over the rounds of what a record costs besides the library, in microseconds."""
        library, found = self._by_round(format, LIBRARY), self._by_round(format, way)
        both = [found[number] - library[number] for number in found if number in library]
        return median(both) if both else None

    def _by_round(self, format: str, way: str) -> dict[int, float]:
        return {run.round: run.us for run in self.runs if (run.format, run.way) == (format, way)}

    def verdicts(self) -> list[Verdict]:
        besides = self.besides(AVRO, OURS)
        assert besides is not None
        return [Verdict(f"{AVRO}: µs a record besides fastavro ≤ {MOST:g}", f"{besides:.2f}", besides <= MOST)]

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            f"CPU microseconds a record; medians of {self.rounds} alternating rounds of {self.records:,} records. In"
            " parentheses:",
            "what comes on top of the library, round by round.",
            "",
            f"| records | {LIBRARY} | {OURS} | {THEIRS} |",
            "|---|---:|---:|---:|",
        ]
        for format in dict.fromkeys(run.format for run in self.runs):
            cells = [f"{self.us(format, LIBRARY):.2f}", *(self._cell(format, way) for way in (OURS, THEIRS))]
            lines.append(f"| {format} | {' | '.join(cells)} |")
        return [*lines, "", *Verdict.table(self.verdicts())]

    def _cell(self, format: str, way: str) -> str:
        us, besides = self.us(format, way), self.besides(format, way)
        return "" if us is None else f"{us:.2f} ({besides:+.2f})"

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())


def turn(serialize: Serialize, data: Any, records: int) -> float:
    """CPU microseconds a record."""
    began = time.process_time_ns()
    for _ in range(records):
        serialize(data)
    return (time.process_time_ns() - began) / records / 1000


def measure(records: int, rounds: int) -> list[Run]:
    """Every way of a format has its turn in each round, and the first of a round changes."""
    runs = []
    for format in formats():
        ways = list(format.ways.items())
        for _, serialize in ways:
            turn(serialize, format.data, max(1, records // 10))
        for number in range(1, rounds + 1):
            first = number % len(ways)
            for name, serialize in ways[first:] + ways[:first]:
                runs.append(Run(format.title, name, number, turn(serialize, format.data, records)))
    return runs


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks schemas",
        description=__doc__,
        epilog=f"Exit status 0: a dict in Avro costs at most {MOST:g} µs besides fastavro's own time; 1: more.",
    )
    parser.add_argument("--records", type=positive, default=5_000, help="a turn")
    parser.add_argument("--rounds", type=positive, default=15)
    command.add_json(parser)
    options = parser.parse_args(arguments)
    environment, cpu = Environment.now(loop="asyncio", broker="none"), MachineCpu()
    runs = measure(options.records, options.rounds)
    environment = dataclasses.replace(environment, others=cpu.others())
    return command.end(Report(environment, options.records, options.rounds, runs), options)
