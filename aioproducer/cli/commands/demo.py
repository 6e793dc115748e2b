"""``aioproducer demo``: sends real input to a broker, reads it back, and proves that all arrived."""

from __future__ import annotations

import asyncio
import csv
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from importlib.resources import as_file, files
from typing import Annotated, Any
from uuid import uuid4

import typer

from aioproducer import Delivery, KafkaError, KafkaProducer, Outcome
from aioproducer.admin import AdminConfig, KafkaAdmin, NewTopic
from aioproducer.broker import EmbeddedCluster
from aioproducer.cli import report
from aioproducer.cli.byte_source import ByteSource
from aioproducer.cli.commands.proof import Proof, digest
from aioproducer.cli.formats import read_lines
from aioproducer.cli.options import ConfigFile, Overrides, Quiet, client_configs
from aioproducer.cli.running import FAILED, InputError, explain, run, until_interrupted
from aioproducer.cli.sending import Sending
from aioproducer.cli.terminal import Terminal
from aioproducer.configs.producer_config import known_to
from aioproducer.errors import UnknownTopicOrPartitionException
from aioproducer.errors.printable import printable
from aioproducer.reader import PartitionReader, ReaderConfig

EMBEDDED_BROKERS = 3
FLIGHTS = "flights.csv.xz"
"""The first week of the year's flights: see examples/flights.md."""
AIRCRAFT = "tailnum"
METER_EVERY = 5_000


def demo(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The file to send, one record per line; - is standard input. .gz, .xz and .zst files are unpacked. By "
            "default, every flight from New York in the first week of 2013, with the aircraft as key.",
            show_default=False,
        ),
    ] = None,
    key_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="FILE is CSV, its first line has the columns' names and is not sent, and this column is the key.",
            show_default=False,
        ),
    ] = None,
    records: Annotated[
        int | None, typer.Option(min=0, help="Send at most this many records.", show_default=False)
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the topic.")] = 6,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            metavar="HOST:PORT,...",
            help="Send to this cluster instead of the embedded broker.",
            show_default=False,
        ),
    ] = None,
    config: ConfigFile = None,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Send real input, read it back, and prove that all arrived.

    Every record must arrive once, unchanged and in order. The broker is the embedded one, in this process and in
    memory, unless --bootstrap-server or a config names a cluster. On a cluster, the demo creates its own topic and
    deletes it at the end.
    """
    terminal = Terminal(quiet=quiet)

    async def command() -> int:
        configs = client_configs(bootstrap_server, config, override, default_server=None)
        async with AsyncExitStack() as stack:
            if file is not None:
                what = Input(ByteSource(file), key_field=key_field)
            else:
                flights = stack.enter_context(as_file(files("aioproducer.cli") / FLIGHTS))
                name = "a week of flights from New York"
                what = Input(ByteSource(str(flights)), name, key_field=key_field or AIRCRAFT)
            stack.callback(what.source.stop)
            embedded = "bootstrap.servers" not in configs
            if embedded:
                cluster = await stack.enter_async_context(EmbeddedCluster(EMBEDDED_BROKERS))
                configs["bootstrap.servers"] = cluster.bootstrap_servers
            where = f"the embedded broker, {EMBEDDED_BROKERS} nodes" if embedded else configs["bootstrap.servers"]
            terminal.note(f"Sending {what.name} to {where}")
            return await Demo(configs, terminal, partitions).run(what, records, keep_topic=not embedded)

    run(terminal, lambda interrupt: until_interrupted(terminal, interrupt, command()))


class Input:
    """Where the records come from: one from each line. With ``key_field`` the first line names the columns."""

    def __init__(self, source: ByteSource, name: str | None = None, *, key_field: str | None = None) -> None:
        self.source = source
        self.name = name or source.name
        self._key_field = key_field
        self._key_index: int | None = None

    async def lines(self, limit: int | None) -> AsyncIterator[list[bytes]]:
        """The lines that are records, at most ``limit``."""
        heading = self._key_field is not None
        try:
            async for lines in read_lines(aiter(self.source)):
                wanted = [line.removesuffix(b"\r") for line in lines]
                if heading and wanted:
                    self._read_heading(wanted.pop(0))
                    heading = False
                if limit is not None:
                    wanted = wanted[:limit]
                    limit -= len(wanted)
                yield wanted
                if limit == 0:
                    return
        except InputError as error:
            raise InputError(f"{self.source.name}: {error}") from error

    def key(self, line: bytes) -> bytes | None:
        if self._key_index is None:
            return None
        columns = _columns(line)
        if self._key_index >= len(columns):
            shown = printable(line.decode(errors="replace"))
            raise InputError(f"{self.name}: a line has no column {self._key_field!r}: {shown}")
        return columns[self._key_index] or None

    def _read_heading(self, line: bytes) -> None:
        columns = _columns(line)
        name = str(self._key_field).encode()
        if name not in columns:
            there = ", ".join(column.decode(errors="replace") for column in columns)
            raise InputError(f"there is no column {self._key_field!r} for the key; there are {printable(there)}")
        self._key_index = columns.index(name)


def _columns(line: bytes) -> list[bytes]:
    if b'"' not in line:
        return line.split(b",")
    try:
        (row,) = csv.reader([line.decode("latin-1")], strict=True)  # which has a character for every byte
    except csv.Error as error:
        raise InputError(f"invalid CSV, {error}: {printable(line.decode(errors='replace'))}") from error
    return [column.encode("latin-1") for column in row]


class Demo:
    """One run: a new topic, the records sent, acknowledged, read back and compared."""

    def __init__(self, configs: Mapping[str, str], terminal: Terminal, partitions: int) -> None:
        self._configs = configs
        self._terminal = terminal
        self._partitions = partitions
        self._topic = f"aioproducer-demo-{uuid4().hex[:8]}"
        self._producer = KafkaProducer.from_config(configs)
        self._proof = Proof()
        self._sending: Sending[None] = Sending(self._producer, self._topic, on_failed=self._failed)
        self._under_way: deque[tuple[bytes, Delivery]] = deque()
        # A user who shortens the producer's time-outs means those of the other clients, too.
        self._others = {"default.api.timeout.ms": configs["max.block.ms"]} if "max.block.ms" in configs else {}

    async def run(self, what: Input, limit: int | None, *, keep_topic: bool) -> int:
        """Returns the exit status. With ``keep_topic``, a topic whose records differ is kept for inspection."""
        async with KafkaAdmin.from_config({**known_to(AdminConfig, self._configs), **self._others}) as admin:
            try:
                await admin.create_topic(NewTopic(self._topic, self._partitions))
            except asyncio.CancelledError:  # the request may have left
                await self._delete_topic(admin)
                raise
            differs = False
            try:
                differs = not await self._prove(what, limit)
            finally:
                if differs and keep_topic:
                    self._terminal.fail(f"Topic {self._topic} is left for you to look at.")
                else:
                    await self._delete_topic(admin)
        return FAILED if differs else 0

    async def _delete_topic(self, admin: KafkaAdmin) -> None:
        try:
            await admin.delete_topic(self._topic)
        except UnknownTopicOrPartitionException:
            pass
        except KafkaError as error:
            self._terminal.warn(f"Topic {self._topic} could not be deleted: {explain(error)}")

    async def _prove(self, what: Input, limit: int | None) -> bool:
        began = time.perf_counter()
        await self._send(what, limit)
        seconds = time.perf_counter() - began
        tally = self._sending.tally
        self._terminal.facts(report.delivered(tally, self._producer.metrics(), seconds))
        if tally.failures:
            self._terminal.fail(f"{report.count(tally.failed, 'record')} not delivered:")
            for line in report.failed(tally):
                self._terminal.fail(line)
            return False
        await self._read()
        differences = self._proof.differences()
        for sentence in differences:
            self._terminal.fail(sentence)
        if differences:
            return False
        keys = f" with {report.count(self._proof.key_count, 'key')}" if self._proof.key_count else ""
        self._terminal.say(
            f"Every record arrived once and in order: {report.count(self._proof.read_count, 'record')}{keys} "
            f"in {report.count(self._partitions, 'partition')}",
            style="green",
        )
        return True

    async def _send(self, what: Input, limit: int | None) -> None:
        began = time.perf_counter()
        await self._producer.start()
        try:
            with self._terminal.meter("Sending", what.source.size) as meter:
                async for lines in what.lines(limit):
                    for value in lines:
                        key = what.key(value)
                        delivery = await self._sending.send(None, value, key)
                        if delivery is not None:
                            self._under_way.append((digest(key, value), delivery))
                    if self._sending.broken is not None:
                        raise self._sending.broken
                    self._take_acknowledgements()
                    count = self._proof.sent_count
                    rate = report.per_second(count, time.perf_counter() - began)
                    meter.update(what.source.position, f"{report.count(count, 'record')}, {rate}")
                await self._producer.close()
        finally:
            await self._producer.close(0)  # closes nothing unless an error or Ctrl-C came before
        self._sending.settle()
        self._take_acknowledgements()

    def _take_acknowledgements(self) -> None:
        """Records the acknowledged offsets, in the order of sending."""
        while self._under_way and self._under_way[0][1].done():
            made, delivery = self._under_way.popleft()
            if delivery.outcome is None:
                metadata = delivery.result()
                self._proof.add_sent(metadata.partition, made, metadata.offset)

    async def _read(self) -> None:
        configs: dict[str, Any] = {**known_to(ReaderConfig, self._configs), **self._others}
        servers = configs.pop("bootstrap.servers")
        sent = self._proof.sent_count
        count = 0
        with self._terminal.meter("Reading back", sent) as meter:
            for partition in range(self._partitions):
                async with PartitionReader(servers, self._topic, partition, "earliest", **configs) as reader:
                    async for record in reader.read_to_end():
                        self._proof.add_read(partition, record.offset, record.key, record.value)
                        count += 1
                        if count % METER_EVERY == 0:
                            meter.update(count, f"{count:,} of {report.count(sent, 'record')}")

    def _failed(self, origin: None, error: KafkaError, outcome: Outcome) -> None:
        self._sending.tally.add_failure(type(error).__name__, outcome, str(error))
