"""``aioproducer send``: lines, NDJSON or CSV to a topic."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from aioproducer import KafkaError, KafkaProducer, Outcome
from aioproducer.cli import report
from aioproducer.cli.byte_source import STDIN, ByteSource
from aioproducer.cli.failed_file import FailedFile
from aioproducer.cli.formats import BadInput, Format, InputRecord, Parser, parser, read_lines
from aioproducer.cli.options import BootstrapServer, ConfigFile, Overrides, Quiet, client_configs, pairs
from aioproducer.cli.running import FAILED, InputError, Interrupt, explain, first_of, run
from aioproducer.cli.sending import Sending
from aioproducer.cli.stall import StallWatch
from aioproducer.cli.terminal import Meter, Terminal
from aioproducer.errors import UnknownTopicOrPartitionException
from aioproducer.types import Headers

REFRESH = 0.2
"""Seconds between two updates of the progress bar."""


def send(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to send to.")],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The file to send; - is standard input. .gz, .xz and .zst files are unpacked."
        ),
    ] = STDIN,
    format: Annotated[
        Format | None,
        typer.Option(
            help="A record is a line; a line of JSON, sent unchanged; or a row of CSV, sent as a JSON object of its "
            "columns' texts. By default the file's suffix decides (.csv, .ndjson, .jsonl; else lines).",
            show_default=False,
        ),
    ] = None,
    key_field: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The JSON field or the column that has the key. A text is the key itself, null and an empty column "
            "mean no key, any other value is the key as JSON.",
            show_default=False,
        ),
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The text that separates key and value in each line.", show_default=False),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(min=0, help="The partition to send to; otherwise the key decides.", show_default=False),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A header for every record; may be repeated.", show_default=False),
    ] = None,
    failed: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep every undelivered record in this file, in the input's format, so that it can be sent again. "
            "FILE.reasons.ndjson has its line, cause and outcome (not_sent, or unknown: it may have arrived).",
            show_default=False,
        ),
    ] = None,
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Send lines, NDJSON or CSV to a topic.

    The exit status is 0 only if every record was delivered. Ctrl-C ends the input and delivers the records that were
    read; a second Ctrl-C stops the delivery, too.
    """
    chosen = format or Format.of(file)
    if key_field is not None and chosen is Format.LINES:
        raise typer.BadParameter("lines have no fields: use --key-separator, or --format", param_hint="--key-field")
    if key_separator is not None and (chosen is not Format.LINES or not key_separator):
        raise typer.BadParameter("must not be empty, and is for --format lines", param_hint="--key-separator")
    headers = [(name, value.encode()) for name, value in pairs(header, "--header").items()] or None
    terminal = Terminal(quiet=quiet)

    async def command(interrupt: Interrupt) -> int:
        configs = client_configs(bootstrap_server, config, override)
        producer = KafkaProducer.from_config(configs)
        made = parser(chosen, key_field, key_separator)
        source = ByteSource(file)
        kept = None if failed is None else FailedFile(failed)
        try:
            shipment = Shipment(producer, Target(topic, partition, headers), source, made, kept, terminal)
            return await shipment.run(interrupt)
        finally:
            source.stop()
            if kept is not None:
                kept.close()

    run(terminal, command)


@dataclass(frozen=True, slots=True)
class Target:
    """Where the records go, and the headers of each."""

    topic: str
    partition: int | None
    headers: Headers | None


class Shipment:
    """Sends one input to one topic."""

    def __init__(
        self,
        producer: KafkaProducer,
        target: Target,
        source: ByteSource,
        parser: Parser,
        kept: FailedFile | None,
        terminal: Terminal,
    ) -> None:
        self._producer = producer
        self._target = target
        self._source = source
        self._parser = parser
        self._kept = kept
        self._terminal = terminal
        self._interrupt: Interrupt
        self._sending: Sending[InputRecord] = Sending(
            producer,
            target.topic,
            partition=target.partition,
            headers=target.headers,
            on_failed=self._failed,
        )
        self._stall = StallWatch(producer, target.topic)
        self._partitions = 0
        self._no_use: KafkaError | None = None
        """Why no record can be sent any more."""
        self._reported = False
        self._lines = 0
        self._began = 0.0

    async def run(self, interrupt: Interrupt) -> int:
        """Sends everything and reports; returns the exit status."""
        self._interrupt = interrupt
        await self._producer.start()
        with self._terminal.meter(f"Sending {self._source.name}", self._source.size) as meter:
            ticker = asyncio.create_task(self._tick(meter))
            pump = asyncio.create_task(self._pump())
            try:
                await self._until_done(pump)
            finally:
                ticker.cancel()
        self._sending.settle()
        seconds = time.perf_counter() - self._began
        trouble = pump.exception()
        if isinstance(trouble, InputError):
            self._terminal.fail(f"Error: {self._source.name}: {trouble}")
        elif isinstance(trouble, OSError):
            self._terminal.fail(f"Error: {explain(trouble)}")
        elif trouble is not None:
            raise trouble
        troubled = trouble is not None or self._no_use is not None or bool(self._sending.tally.failures)
        self._report(seconds, troubled)
        if interrupt.once.is_set():
            self._terminal.warn(f"Interrupted after line {self._lines:,}: the rest of the input was not sent.")
            return interrupt.status
        return FAILED if troubled else 0

    async def _until_done(self, pump: asyncio.Task[None]) -> None:
        """Waits for the input and its deliveries. The first Ctrl-C ends the input, the second one everything."""
        interrupt = self._interrupt
        self._began = time.perf_counter()
        watching = asyncio.create_task(self._watch_for_interrupt())
        await first_of(pump, interrupt.again)
        closing = asyncio.create_task(self._producer.close(0 if interrupt.again.is_set() else None))
        await first_of(closing, interrupt.again)
        if not closing.done():
            closing.cancel()
        await asyncio.wait([pump, closing])
        watching.cancel()
        if not closing.cancelled():
            closing.result()

    async def _watch_for_interrupt(self) -> None:
        await self._interrupt.once.wait()
        self._source.stop()
        self._terminal.warn("Delivering what was read; a second Ctrl-C stops that.")

    async def _pump(self) -> None:
        """Moves records from the input to the producer, until the input ends or the producer takes no more."""
        self._no_use = await self._no_such_target()
        async for lines in read_lines(aiter(self._source)):
            for item in self._parser.parse(lines):
                if self._interrupt.once.is_set() or self._gives_up():
                    return
                await self._take(item)
        for item in self._parser.end():
            await self._take(item)
        self._gives_up()

    def _gives_up(self) -> bool:
        """Whether to stop: no record can be sent, and none is kept."""
        self._no_use = self._no_use or self._sending.broken
        if self._no_use is None:
            return False
        if not self._reported:
            self._reported = True
            self._terminal.fail(f"Error: {explain(self._no_use)}")
            if self._kept is not None:
                self._terminal.fail(f"The rest of the input goes to {self._kept.path}")
        return self._kept is None

    async def _no_such_target(self) -> KafkaError | None:
        """Why no record can be sent to the topic or partition; checked once, not for every record."""
        topic, partition = self._target.topic, self._target.partition
        lookup = asyncio.ensure_future(self._producer.partitions_for(topic))
        await first_of(lookup, self._interrupt.once)
        if not lookup.done():
            lookup.cancel()
            return None
        try:
            partitions = lookup.result()
        except KafkaError as error:
            return error
        self._partitions = len(partitions)
        if partition is not None and partition >= len(partitions):
            return UnknownTopicOrPartitionException(
                f"topic {topic!r} has {report.count(len(partitions), 'partition')}, from 0 on: there is no {partition}"
            )
        return None

    async def _take(self, item: InputRecord | BadInput) -> None:
        self._lines = item.line
        if isinstance(item, BadInput):
            self._not_delivered(item, item.cause, Outcome.NOT_SENT, item.detail)
        elif self._no_use is not None:
            self._not_delivered(item, type(self._no_use).__name__, Outcome.NOT_SENT, str(self._no_use), "see above")
        else:
            await self._sending.send(item, item.value, item.key)

    def _failed(self, record: InputRecord, error: KafkaError, outcome: Outcome) -> None:
        self._not_delivered(record, type(error).__name__, outcome, str(error))

    def _not_delivered(
        self, item: InputRecord | BadInput, cause: str, outcome: Outcome, message: str, example: str = ""
    ) -> None:
        self._sending.tally.add_failure(cause, outcome, example or f"line {item.line}: {message}")
        if self._kept is not None:
            self._kept.keep(
                item.raw,
                heading=self._parser.heading,
                line=item.line,
                outcome=outcome.value,
                cause=cause,
                message=message,
            )

    async def _tick(self, meter: Meter) -> None:
        while True:
            sent = int(self._producer.metrics()["record-delivered-total"])
            detail = f"{report.count(sent, 'record')}, {report.per_second(sent, time.perf_counter() - self._began)}"
            failed = self._sending.tally.failed
            meter.update(self._source.position, f"{detail}, {failed:,} failed" if failed else detail)
            if stalled := self._stall.look(time.perf_counter(), sent + failed, self._partitions):
                self._terminal.warn(stalled)
            await asyncio.sleep(REFRESH)

    def _report(self, seconds: float, troubled: bool) -> None:
        tally = self._sending.tally
        if tally.delivered or not troubled:
            self._terminal.facts(report.delivered(tally, self._producer.metrics(), seconds))
        if not tally.failures:
            return
        self._terminal.fail(f"{report.count(tally.failed, 'record')} not delivered:")
        for line in report.failed(tally):
            self._terminal.fail(line)
        if self._kept is not None:
            self._terminal.fail(f"Kept in {self._kept.path}, with reasons in {self._kept.reasons_path}")
