"""``aioproducer audit``: a Spark job that proves what was delivered to topics; a report, and an exit status."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aioproducer.admin import AdminConfig, KafkaAdmin
from aioproducer.cli import report
from aioproducer.cli.options import BootstrapServer, ConfigFile, Overrides, Quiet, client_configs
from aioproducer.cli.running import FAILED, InputError, Interrupt, run, until_interrupted
from aioproducer.cli.terminal import Terminal
from aioproducer.configs.producer_config import known_to
from aioproducer.reader import ReaderConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aioproducer.spark.audit.finding import Finding
    from aioproducer.spark.audit.options import AuditOptions
    from aioproducer.spark.audit.summary import Summary

_LOOK_EVERY = 1.0
"""Seconds between two checks whether a producer has fallen silent."""


class Start(StrEnum):
    """Where watching begins."""

    EARLIEST = "earliest"
    LATEST = "latest"


def audit(
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC", help="Topics to audit.", show_default=False)
    ] = None,
    delivery_log: Annotated[
        list[str] | None,
        typer.Option(
            "--delivery-log",
            metavar="FILE or topic:NAME",
            help="A log that producers wrote (DeliveryLog): files, or a topic; may be repeated. Without one, the audit "
            "cannot find acknowledged records that are missing.",
            show_default=False,
        ),
    ] = None,
    metrics_topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC", help="The topic with the producers' metrics (MetricsTopicReporter).", show_default=False
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="DIRECTORY",
            help="Where to write the report and the Parquet files: on this machine, or, as hdfs:/… or s3a:/…, on "
            "another file system that Spark can reach.",
        ),
    ] = "delivery-audit",
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Also read the topics as read_committed consumers do.")
    ] = False,
    unique: Annotated[bool, typer.Option("--unique", help="Expect no records with equal key and value.")] = False,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="Accept gaps in the producers' numbers: they also write to other topics."),
    ] = False,
    keyed: Annotated[bool, typer.Option("--keyed", help="Expect all records of a key in one partition.")] = False,
    latency: Annotated[
        float,
        typer.Option(metavar="MS", min=1, help="How soon 99 of 100 records of a minute must arrive."),
    ] = 15_000,
    skew: Annotated[
        float,
        typer.Option(metavar="TIMES", min=1, help="How many times the average a partition may have."),
    ] = 4,
    transaction_timeout: Annotated[
        int, typer.Option(metavar="MS", min=1, help="How long a transaction may be open.")
    ] = 60_000,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Watch new records until Ctrl-C, instead of auditing the existing ones."),
    ] = False,
    start: Annotated[Start, typer.Option("--from", help="With --watch: where to begin.")] = Start.LATEST,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIRECTORY",
            help="With --watch: where to remember the position. The next watch with this directory continues there.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[int, typer.Option(metavar="SECONDS", min=1, help="With --watch: how often to check.")] = 10,
    master: Annotated[
        str, typer.Option(metavar="URL", help="Where Spark runs: this machine, or a cluster.")
    ] = "local[*]",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory for Spark's driver.")] = "2g",
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Prove what was delivered to topics.

    A Spark job finds gaps, duplicates, reorderings, torn and open transactions, acknowledged records that are missing,
    and more. It writes a report and all findings to a directory, and lists what it could check and what it could not.
    The exit status is 0 only if it found nothing.
    """
    if not topics and not (watch and metrics_topic):
        raise typer.BadParameter("name the topics to audit", param_hint="TOPIC")
    terminal = Terminal(quiet=quiet)

    async def command(interrupt: Interrupt) -> int:
        if find_spec("pyspark") is None:
            raise InputError("the audit is a Spark job, and pyspark is not installed: pip install 'aioproducer[spark]'")
        from aioproducer.spark.audit.options import AuditOptions
        from aioproducer.spark.audit.place import Place
        from aioproducer.spark.audit.session import audit_session

        options = AuditOptions(
            now_ms=round(time.time() * 1000),
            unique=unique,
            partial=partial,
            keyed=keyed,
            latency_ms=latency,
            skew=skew,
            transaction_ms=transaction_timeout,
        )
        configs = known_to(ReaderConfig, known_to(AdminConfig, client_configs(bootstrap_server, config, override)))
        KafkaAdmin.from_config(configs)  # a wrong config is refused before Spark starts
        Place(output).make()
        with tempfile.TemporaryDirectory(prefix="aioproducer-audit-", ignore_cleanup_errors=True) as scratch:
            kept = checkpoint or f"{scratch}/checkpoint"
            wanted = Wanted(topics or [], delivery_log or [], metrics_topic, output, read_committed, start, kept, every)
            terminal.note("Starting Spark")
            with spark_errors("Spark did not start; it needs Java 17 or newer (JAVA_HOME)"):
                spark = await asyncio.to_thread(audit_session, master, memory, scratch)
            try:
                work = Audit(spark, configs, wanted, options, terminal)
                with spark_errors():
                    if watch:
                        return await work.watch(interrupt)
                    return await until_interrupted(terminal, interrupt, work.run())
            finally:
                await asyncio.to_thread(spark.stop)

    run(terminal, command)


@contextmanager
def spark_errors(what: str = "Spark failed") -> Iterator[None]:
    """Turns Spark's errors into errors that fit in a line."""
    from aioproducer.spark.audit.spark_errors import SPARK_ERRORS, explained

    try:
        yield
    except SPARK_ERRORS as error:
        raise InputError(f"{what}: {explained(error)}") from error


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    topics: Sequence[str]
    delivery_logs: Sequence[str]
    metrics_topic: str | None
    output: str
    read_committed: bool
    start: Start
    checkpoint: str
    every: int


class Audit:
    """One run of the command, in a session of Spark."""

    def __init__(
        self,
        spark: SparkSession,
        configs: dict[str, str],
        wanted: Wanted,
        options: AuditOptions,
        terminal: Terminal,
    ) -> None:
        self._spark = spark
        self._config = configs
        self._wanted = wanted
        self._options = options
        self._terminal = terminal

    async def run(self) -> int:
        """Audits the records in the topics; returns the exit status."""
        from aioproducer.spark.audit.run import audit_topics

        wanted = self._wanted
        summary = await audit_topics(
            self._spark,
            self._config,
            wanted.topics,
            wanted.output,
            self._options,
            delivery_logs=wanted.delivery_logs,
            metrics_topic=wanted.metrics_topic,
            read_committed=wanted.read_committed,
            on_progress=lambda step: self._terminal.note(f"Working on {step}"),
        )
        return self._print(summary)

    def _print(self, summary: Summary) -> int:
        from aioproducer.spark.audit.place import Place
        from aioproducer.spark.audit.run import REPORT

        terminal = self._terminal
        terminal.say(summary.verdict)
        for found in summary.found:
            terminal.fail(f"{found.kind.value}: {report.count(found.records, 'record')} in {found.findings:,} places")
            for finding in found.examples[:3]:
                terminal.fail(f"    {finding}")
        for sentence in summary.checked:
            terminal.say(f"Checked: {sentence}")
        for sentence in summary.not_checked:
            terminal.say(f"Not proved: {sentence}")
        terminal.say(f"The report is {Place(self._wanted.output).path(REPORT)}")
        return 0 if summary.ok else FAILED

    async def watch(self, interrupt: Interrupt) -> int:
        """Watches new records until Ctrl-C; status 0 if it found nothing."""
        from aioproducer.spark.audit.place import Place
        from aioproducer.spark.audit.source import Source
        from aioproducer.spark.audit.spark_errors import explained
        from aioproducer.spark.audit.watch import ProducerWatch, watch_producers, watch_topics

        source = Source(self._spark, self._config)
        wanted, start, interval = self._wanted, self._wanted.start.value, f"{self._wanted.every} seconds"
        seen = WatchReport(self._terminal)
        producers = ProducerWatch(seen.alert, lag_ms=2000 * wanted.every)

        def begin() -> list[Any]:
            # Spark does not adapt the number of tasks in a stream: by default, each shuffle of a few rows has 200.
            self._spark.conf.set("spark.sql.shuffle.partitions", self._spark.sparkContext.defaultParallelism)
            queries = []
            if wanted.topics:
                place = Place(wanted.output)
                kept = Place(wanted.checkpoint)
                queries.append(
                    watch_topics(source, wanted.topics, start, self._options, seen.batch, place, kept, interval)
                )
            if wanted.metrics_topic is not None:
                queries.append(watch_producers(source, wanted.metrics_topic, start, producers, interval))
            return queries

        queries = await asyncio.to_thread(begin)
        self._terminal.note("Watching; Ctrl-C ends it")
        try:
            while not interrupt.once.is_set() and all(query.isActive for query in queries):
                producers.look()
                try:
                    async with asyncio.timeout(_LOOK_EVERY):
                        await interrupt.once.wait()
                except TimeoutError:
                    pass
        finally:
            for query in queries:
                await asyncio.to_thread(query.stop)
        for query in queries:
            # Ctrl-C in a terminal also ends Spark's Python processes: that a query fails then is no error.
            if (error := query.exception()) is not None and not interrupt.once.is_set():
                raise InputError(f"{query.name}: {explained(error)}")
        self._terminal.say(f"{report.count(seen.records, 'record')} watched, {report.count(seen.found, 'finding')}")
        return FAILED if seen.found else 0


class WatchReport:
    """Prints what watching finds, and counts it."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self.records = 0
        self.found = 0

    def batch(self, records: int, findings: Sequence[Finding], count: int) -> None:
        self.records += records
        self.found += count
        self._terminal.note(f"{report.count(records, 'record')}, {report.count(count, 'finding')}")
        for finding in findings:
            self._terminal.fail(str(finding))

    def alert(self, alert: Any) -> None:
        if alert.over:
            self._terminal.note(str(alert))
            return
        self.found += 1
        self._terminal.fail(str(alert))
