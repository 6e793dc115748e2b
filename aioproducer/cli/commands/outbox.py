"""``aioproducer outbox``: relays the rows of an outbox table of PostgreSQL."""

from __future__ import annotations

import asyncio
import os
from enum import StrEnum
from typing import Annotated, Any

import typer

from aioproducer.cli.options import BootstrapServer, ConfigFile, Overrides, Quiet, client_configs
from aioproducer.cli.running import Interrupt, first_of, run
from aioproducer.cli.terminal import Terminal
from aioproducer.errors import ConfigException, IllegalArgumentException
from aioproducer.outbox import Outbox, OutboxRelay

DATABASE = "AIOPRODUCER_OUTBOX_DATABASE"


class Begin(StrEnum):
    """Where to begin."""

    MARKER = "marker"
    ADOPT = "adopt"
    ANEW = "anew"


def outbox(
    database: Annotated[
        str | None,
        typer.Option(
            metavar="postgresql://…",
            help=f"The address of the database; by default the environment variable {DATABASE}, where a password is "
            "hidden from other users of the machine.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[str, typer.Option(metavar="[SCHEMA.]TABLE", help="The outbox table.")] = "outbox",
    name: Annotated[
        str, typer.Option(help="The transactional.id, and the group that has the position. Each outbox needs its own.")
    ] = "aioproducer-outbox",
    position_topic: Annotated[
        str, typer.Option(metavar="TOPIC", help="The topic that the position is committed for; created if missing.")
    ] = "aioproducer-outbox",
    dead_letters: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help="The topic for rows that cannot be sent; without it the first such row ends the command.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Do not delete relayed rows.")] = False,
    begin: Annotated[
        Begin,
        typer.Option(
            help="Where to begin: at the position in Kafka (marker); there, although the database has another "
            "identity, or at the copy in the database if Kafka has none (adopt); or with all rows of the table (anew)."
        ),
    ] = Begin.MARKER,
    print_schema: Annotated[
        bool, typer.Option("--print-schema", help="Print the SQL that makes the tables, and exit.")
    ] = False,
    no_notify: Annotated[
        bool,
        typer.Option(
            "--no-notify", help="Print it without the trigger that wakes the relay; PREPARE TRANSACTION needs that."
        ),
    ] = False,
    report: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Log a line with the figures this often; 0: never.")
    ] = 60,
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
    quiet: Quiet = False,
) -> None:
    """Relay an outbox table of PostgreSQL.

    Each row becomes a record exactly once. Any number may run: one relays, the others stand by. Ctrl-C ends it after
    the present transaction. Needs aioproducer[outbox].
    """
    terminal = Terminal(quiet=quiet)

    async def command(interrupt: Interrupt) -> int:
        relay = _relay(
            database or os.environ.get(DATABASE),
            _outbox(table),
            client_configs(bootstrap_server, config, override),
            name=name,
            position_topic=position_topic,
            dead_letter_topic=dead_letters,
            clean_up=not keep,
            begin=begin.value,
        )
        work = asyncio.ensure_future(relay.run())
        reporting = asyncio.ensure_future(_report(terminal, relay, report))
        try:
            await first_of(work, interrupt.once)
            relay.stop()
            await first_of(work, interrupt.again)
        finally:
            for task in (work, reporting):
                task.cancel()
            await asyncio.wait([work, reporting])
        if not work.cancelled():
            work.result()
        terminal.note(_figures(relay))
        return 0

    if print_schema:
        try:
            typer.echo(_outbox(table).schema(notify=not no_notify), nl=False)
        except ConfigException as error:
            raise typer.BadParameter(str(error), param_hint="--table") from None
        return
    run(terminal, command)


def _outbox(table: str) -> Outbox:
    try:
        return Outbox(table)
    except IllegalArgumentException as error:
        raise ConfigException(str(error)) from None


def _relay(database: str | None, table: Outbox, configs: dict[str, str], **more: Any) -> OutboxRelay:
    if not database:
        raise ConfigException(f"no database is named: use --database or the environment variable {DATABASE}")
    given: dict[str, Any] = {name.replace(".", "_"): value for name, value in configs.items()}
    try:
        return OutboxRelay(database, table, **more, **given)
    except IllegalArgumentException as error:
        raise ConfigException(str(error)) from None


async def _report(terminal: Terminal, relay: OutboxRelay, every: float) -> None:
    while every:
        await asyncio.sleep(every)
        terminal.note(_figures(relay))


def _figures(relay: OutboxRelay) -> str:
    metrics = relay.metrics().select("outbox-metrics")
    rows, dead, lag, age = (metrics[name] for name in ("row-relayed-total", "row-dead-total", "lag-rows", "lag-age"))
    letters = f", {dead:,.0f} of them as dead letters" if dead else ""
    behind = f"; behind by {lag:,.0f} rows and {age:.1f} s" if lag else ""
    state = "" if metrics["active"] else "; not active"
    return f"{rows:,.0f} rows relayed{letters}{behind}{state}"
