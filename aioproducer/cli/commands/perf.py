"""``aioproducer perf`` measures how fast a cluster takes records, with the options of kafka-producer-perf-test."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from aioproducer import Delivery, KafkaError, KafkaProducer
from aioproducer.cli.commands.perf_payload import counting, drawn_from, from_file, random_letters
from aioproducer.cli.commands.perf_stats import PerfStats
from aioproducer.cli.options import pairs, read_config_file
from aioproducer.cli.running import FAILED, explain, run, until_interrupted
from aioproducer.cli.terminal import Terminal

CLIENT_ID = "perf-producer-client"
TRANSACTIONAL_ID = "performance-producer-"
TRANSACTION_DURATION_MS = 3000
_MANY_VALUES = ("--producer-props", "--command-property")


def repeated(arguments: Sequence[str]) -> list[str]:
    """``--command-property A B`` as ``--command-property A --command-property B``, which is what the parser knows."""
    made: list[str] = []
    option = ""
    for argument in arguments:
        if argument.startswith("-"):
            option = argument if argument in _MANY_VALUES else ""
        elif option and made[-1] != option:
            made.append(option)
        made.append(argument)
    return made


class PerfCommand(TyperCommand):
    """Takes several values after one option, as Kafka's tool does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, repeated(args))


def perf(
    topic: Annotated[str, typer.Option(help="The topic to send to.")],
    num_records: Annotated[int, typer.Option(min=1, help="How many records to send.")],
    throughput: Annotated[float, typer.Option(help="The approximate rate, in records per second; -1 for no limit.")],
    bootstrap_server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT,...", help="The first brokers to contact.", show_default=False),
    ] = None,
    record_size: Annotated[
        int | None, typer.Option(min=1, help="Send random letters, this many bytes per record.", show_default=False)
    ] = None,
    payload_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Send records drawn from this file.", show_default=False)
    ] = None,
    payload_monotonic: Annotated[bool, typer.Option("--payload-monotonic", help="Send 0, 1, 2, …")] = False,
    payload_delimiter: Annotated[str, typer.Option(metavar="TEXT", help="What separates the file's records.")] = "\\n",
    command_property: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE...", help="Producer configs; one or more.", show_default=False),
    ] = None,
    command_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Producer configs in a .properties file.", show_default=False)
    ] = None,
    producer_props: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE...", help="The older name of --command-property.", show_default=False),
    ] = None,
    producer_config: Annotated[
        Path | None,
        typer.Option(
            "--producer.config", metavar="FILE", help="The older name of --command-config.", show_default=False
        ),
    ] = None,
    print_metrics: Annotated[bool, typer.Option("--print-metrics", help="Print the producer's metrics at the end.")] = (
        False
    ),
    transactional_id: Annotated[
        str | None, typer.Option(help="Send in transactions, with this transactional.id.", show_default=False)
    ] = None,
    transaction_duration_ms: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Send in transactions, and commit each after this long; {TRANSACTION_DURATION_MS} by default.",
            show_default=False,
        ),
    ] = None,
    warmup_records: Annotated[
        int, typer.Option(min=0, help="Leave this many first records out of a second closing line.")
    ] = 0,
    reporting_interval: Annotated[
        int, typer.Option(min=1, metavar="MS", help="Milliseconds between two lines of progress.")
    ] = 5000,
) -> None:
    """Measure how fast a cluster takes records.

    Options and output are those of Kafka's own kafka-producer-perf-test. The exit status is 0 only if every record was
    delivered.
    """
    if throughput == 0:
        raise typer.BadParameter("0 records per second would never end; -1 means no limit", param_hint="--throughput")
    if not payload_delimiter:
        raise typer.BadParameter("must not be empty", param_hint="--payload-delimiter")
    if warmup_records >= num_records:
        raise typer.BadParameter("must be fewer than --num-records", param_hint="--warmup-records")
    if sum((record_size is not None, payload_file is not None, payload_monotonic)) != 1:
        raise typer.BadParameter("give exactly one of --record-size, --payload-file and --payload-monotonic")
    for one, other in ((command_property, producer_props), (command_config, producer_config)):
        if one is not None and other is not None:
            raise typer.BadParameter("--command-property and --producer-props, and the two files, are one and the same")
    given = pairs(command_property, "--command-property") | pairs(producer_props, "--producer-props")
    terminal = Terminal()

    async def command() -> int:
        file = command_config or producer_config
        configs = ({} if file is None else read_config_file(file)) | given
        if bootstrap_server is not None:
            configs["bootstrap.servers"] = bootstrap_server
        if transaction_duration_ms is not None or transactional_id is not None or "transactional.id" in configs:
            configs.setdefault("transactional.id", f"{TRANSACTIONAL_ID}{uuid.uuid4()}")
        if transactional_id is not None:
            configs["transactional.id"] = transactional_id
        configs.setdefault("client.id", CLIENT_ID)
        for name in ("key.serializer", "value.serializer"):
            configs.pop(name, None)  # records are bytes already
        if payload_file is not None:
            terminal.say(f"Reading payloads from: {payload_file.absolute()}")
            records = from_file(payload_file, payload_delimiter)
            terminal.say(f"Number of records read: {len(records)}")
            payload = drawn_from(records)
        else:
            payload = counting() if record_size is None else random_letters(record_size)
        plan = Plan(topic, num_records, warmup_records, throughput, transaction_duration_ms, reporting_interval)
        return await Performance(KafkaProducer.from_config(configs), plan, payload, terminal).run(print_metrics)

    run(terminal, lambda interrupt: until_interrupted(terminal, interrupt, command()))


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send, and how fast."""

    topic: str
    records: int
    warm_up: int
    throughput: float
    transaction_duration_ms: int | None
    reporting_interval_ms: int


class Performance:
    """One producer at work."""

    def __init__(self, producer: KafkaProducer, plan: Plan, payload: Iterator[bytes], terminal: Terminal) -> None:
        self._producer = producer
        self._plan = plan
        self._payload = payload
        self._terminal = terminal
        self._transactional = producer.config.transactional_id is not None
        self._stats: PerfStats
        self._steady: PerfStats | None = None
        self._failures: Counter[str] = Counter()

    async def run(self, print_metrics: bool) -> int:
        """Sends all records and reports; returns the exit status."""
        plan = self._plan
        async with self._producer as producer:
            await producer.partitions_for(plan.topic)  # a missing topic is reported once
            if self._transactional:
                await producer.init_transactions()
            if plan.warm_up:
                self._terminal.say(
                    f"Warmup first {plan.warm_up} records. "
                    "Steady state results will print after the complete test summary."
                )
            self._stats = self._counted(plan.records)
            await self._send_all()
            await producer.flush()
            self._terminal.say(self._stats.total(_now_ms()))
            if self._steady is not None:
                self._terminal.say(self._steady.total(_now_ms()))
            if print_metrics:
                self._print_metrics()
        for failure, count in self._failures.most_common():
            self._terminal.fail(f"{count} records not delivered: {failure}")
        return FAILED if self._failures else 0

    async def _send_all(self) -> None:
        plan, producer, topic = self._plan, self._producer, self._plan.topic
        pause = 1 / plan.throughput if plan.throughput > 0 else 0.0
        duration_ms = plan.transaction_duration_ms or TRANSACTION_DURATION_MS
        begun = 0.0
        start = time.perf_counter()
        for number, value in zip(range(plan.records), self._payload, strict=False):
            now_ms = _now_ms()
            if self._transactional and not begun:
                await producer.begin_transaction()
                begun = now_ms
            if plan.warm_up and number == plan.warm_up:
                self._steady = self._counted(plan.records - plan.warm_up, steady_state=True)
                self._stats.silent = True
            try:
                delivery = await producer.enqueue(topic, value)
            except KafkaError as error:
                self._failures[explain(error)] += 1
            else:
                delivery.add_done_callback(partial(self._ended, now_ms, len(value), self._steady))
            if begun and now_ms - begun >= duration_ms:
                await producer.commit_transaction()
                begun = 0.0
            if pause and (early := start + number * pause - time.perf_counter()) > 0:
                await asyncio.sleep(early)
        if begun:
            await producer.commit_transaction()

    def _ended(self, began_ms: float, size: int, steady: PerfStats | None, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is not None:
            self._failures[explain(error)] += 1
            return
        now = _now_ms()
        self._stats.record(now - began_ms, size, now)
        if steady is not None:
            steady.record(now - began_ms, size, now)

    def _counted(self, records: int, *, steady_state: bool = False) -> PerfStats:
        return PerfStats(
            records,
            _now_ms(),
            interval=self._plan.reporting_interval_ms,
            say=self._terminal.say,
            steady_state=steady_state,
        )

    def _print_metrics(self) -> None:
        lines = {
            f"{name.group}:{name.name}:{{{', '.join(f'{tag}={value}' for tag, value in sorted(name.tags))}}}": value
            for name, value in self._producer.metrics().items()
        }
        width = max(map(len, lines))
        self._terminal.say(f"\n{'Metric Name':<{width}}   Value")
        for name in sorted(lines):
            self._terminal.say(f"{name:<{width}} : {lines[name]:.3f}")


def _now_ms() -> float:
    return time.perf_counter() * 1000
