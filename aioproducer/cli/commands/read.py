"""``aioproducer read``: the records of a topic as lines of JSON."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from aioproducer.admin import AdminConfig, KafkaAdmin
from aioproducer.cli.commands.line_output import LineOutput
from aioproducer.cli.commands.start import EARLIEST, HELP, Start
from aioproducer.cli.options import BootstrapServer, ConfigFile, Overrides, client_configs
from aioproducer.cli.running import InputError, run, until_interrupted
from aioproducer.cli.terminal import Terminal
from aioproducer.configs.producer_config import known_to
from aioproducer.errors import KafkaError
from aioproducer.reader import PartitionReader, ReaderConfig, Record

MOST_FOLLOWED = 100
"""How many partitions are read at once, each with its own connections."""


def read(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to read.")],
    partition: Annotated[
        list[int] | None,
        typer.Option(min=0, help="Only this partition; may be repeated.", show_default=False),
    ] = None,
    start: Annotated[str, typer.Option("--from", metavar="WHERE", help=HELP)] = EARLIEST,
    count: Annotated[
        int | None, typer.Option("-n", min=1, help="End after this many records.", show_default=False)
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="At the end, wait for more records, until Ctrl-C.")
    ] = False,
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Leave out records of transactions that were not committed.")
    ] = False,
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
) -> None:
    """Read a topic, as lines of JSON.

    Each line has partition, offset, timestamp_ms, key, value and headers. Bytes are text, or {"base64": "…"} where they
    are not UTF-8. Partitions are read one after the other; with --follow, all at once. Records that are written
    meanwhile are read only with --follow.
    """
    try:
        begin = Start.parse(start)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from") from None
    terminal = Terminal()

    async def command() -> int:
        configs = client_configs(bootstrap_server, config, override)
        if read_committed:
            configs["isolation.level"] = "read_committed"
        output = LineOutput()
        try:
            reading = Reading(configs, topic, begin, count, output)
            partitions = await _partitions(configs, topic, partition)
            if begin.offset is not None and len(partitions) > 1:
                raise InputError("an offset belongs to one partition: name it with --partition")
            await (reading.follow(partitions) if follow else reading.to_the_end(partitions))
        except BrokenPipeError:
            pass  # the reader of the lines has read enough
        finally:
            await output.close()
        return 0

    run(terminal, lambda interrupt: until_interrupted(terminal, interrupt, command()))


async def _partitions(configs: dict[str, str], topic: str, wanted: Sequence[int] | None) -> list[int]:
    """The partitions to read; raises for a topic or a partition that does not exist."""
    async with KafkaAdmin.from_config(known_to(AdminConfig, known_to(AdminConfig, configs), of=ReaderConfig)) as admin:
        described = (await admin.describe_topics([topic]))[topic]
    if isinstance(described, KafkaError):
        raise described
    there = [info.partition for info in described.partitions]
    for partition in wanted or ():
        if partition not in there:
            raise InputError(f"{topic} has no partition {partition}: it has {len(there)}, counted from 0")
    return list(dict.fromkeys(wanted or there))


class Reading:
    """Moves records to the output, at most ``count``."""

    def __init__(
        self, configs: dict[str, str], topic: str, start: Start, count: int | None, output: LineOutput
    ) -> None:
        self._config: dict[str, Any] = known_to(ReaderConfig, configs)
        self._servers = self._config.pop("bootstrap.servers")
        self._topic = topic
        self._start = start
        self._left = count
        """How many records are still wanted; None for all."""
        self._output = output
        self._reader(0)  # refuses a wrong config before any request

    async def to_the_end(self, partitions: Sequence[int]) -> None:
        """Reads one partition after the other, each to its end."""
        for partition in partitions:
            if self._left != 0:
                await self._read(partition, follow=False)

    async def follow(self, partitions: Sequence[int]) -> None:
        """Reads all partitions at once, and waits for more records at their ends."""
        if len(partitions) > MOST_FOLLOWED:
            raise InputError(
                f"{len(partitions)} partitions are too many to follow at once: name {MOST_FOLLOWED} with --partition"
            )
        tasks = [asyncio.create_task(self._read(partition, follow=True)) for partition in partitions]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    async def _read(self, partition: int, *, follow: bool) -> None:
        """Returns at the end of the partition, or when ``count`` records were read."""
        async with self._reader(partition) as looking:
            offset = await self._start.of(looking)
        async with self._reader(partition, offset) as reader:
            async for record in reader if follow else reader.read_to_end():
                if self._left == 0:  # other partitions had enough
                    return
                if self._left is not None:
                    self._left -= 1
                await self._output.put(as_json(partition, record))
                if self._left == 0:
                    return

    def _reader(self, partition: int, offset: int = 0) -> PartitionReader:
        return PartitionReader(self._servers, self._topic, partition, offset, **self._config)


def as_json(partition: int, record: Record) -> str:
    """A record as a line."""
    return json.dumps(
        {
            "partition": partition,
            "offset": record.offset,
            "timestamp_ms": None if record.timestamp_ms < 0 else record.timestamp_ms,
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [[name, _text(value)] for name, value in record.headers],
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _text(data: bytes | None) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
