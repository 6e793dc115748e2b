"""``aioproducer spark`` shows and repairs an exactly-once write of Spark's sink. Needs no Spark."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from aioproducer.cli import report
from aioproducer.cli.options import BootstrapServer, ConfigFile, Overrides, client_configs
from aioproducer.cli.running import FAILED, run, until_interrupted
from aioproducer.cli.terminal import Terminal
from aioproducer.spark.exactly_once.checkpoint import Checkpoint
from aioproducer.spark.exactly_once.inspection import inspect_write
from aioproducer.spark.exactly_once.ledger import KafkaDriversLedger, open_drivers_ledger
from aioproducer.spark.exactly_once.prepared import names_of, slot_named
from aioproducer.spark.exactly_once.two_phases import abort_undecided, finish, set_by_hand
from aioproducer.spark.exactly_once.write_state import Fate, WriteState
from aioproducer.spark.sink.sink_options import DEFAULT_PREFIX, SinkOptions

app = typer.Typer(
    help="Show and repair exactly-once writes of Spark's sink.",
    no_args_is_help=True,
)

Query = Annotated[
    str | None,
    typer.Argument(
        metavar="QUERY",
        help="A streaming query: its id, or its checkpoint if that is a directory of this machine.",
        show_default=False,
    ),
]
WriteId = Annotated[
    str | None, typer.Option(metavar="ID", help="The writeId of a batch write, instead of a query.", show_default=False)
]
MarkerTopic = Annotated[
    str,
    typer.Option(
        "--topic", metavar="TOPIC", help="The sink's option markerTopic, or its option topic if that is not set."
    ),
]
Prefix = Annotated[str, typer.Option(metavar="PREFIX", help="The sink's option transactionalIdPrefix.")]
Yes = Annotated[bool, typer.Option("--yes", help="Make the changes; without it, the command only lists them.")]

_ID: Final = re.compile(r"[\w-]+")
"""Spark's ids are UUIDs. A path has other characters; without this rule, a path that does not exist would be an id."""

_COLUMNS = ("TRANSACTIONAL ID", "STATE", "PRODUCER ID", "EPOCH", "OPEN FOR", "")


@app.command("show")
def show(
    topic: MarkerTopic,
    query: Query = None,
    write_id: WriteId = None,
    prefix: Prefix = DEFAULT_PREFIX,
    epoch: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="The epoch that the next start runs; by default that of the checkpoint, or the last one and the next "
            "one.",
            show_default=False,
        ),
    ] = None,
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
) -> None:
    """Show a write, and what its next start does.

    It shows the last decision and the open transactions, and changes nothing. The exit status is 0 if the next start
    needs no help.
    """

    async def command(write: Write, state: WriteState, terminal: Terminal) -> int:
        return write.show_next_start(state, epoch, terminal)

    _run(command, query, write_id, topic, prefix, (bootstrap_server, config, override))


@app.command("finish")
def finish_(
    topic: MarkerTopic,
    query: Query = None,
    write_id: WriteId = None,
    prefix: Prefix = DEFAULT_PREFIX,
    yes: Yes = False,
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
) -> None:
    """Commit what the last decision left open.

    The next start of the query does the same.
    """

    async def command(write: Write, state: WriteState, terminal: Terminal) -> int:
        found = state.decided(Fate.OPEN)
        if not found:
            terminal.say("No decided transaction is open")
            return 0
        assert state.decision is not None
        terminal.say(f"Commits {report.count(len(found), 'transaction')} of epoch {state.decision.epoch}:")
        _names(terminal, write, (one.name for one in found))

        async def repair(ledger: KafkaDriversLedger) -> None:
            await finish(ledger)

        return await write.repair(terminal, repair, yes=yes)

    _run(command, query, write_id, topic, prefix, (bootstrap_server, config, override))


@app.command("abort")
def abort(
    topic: MarkerTopic,
    query: Query = None,
    write_id: WriteId = None,
    prefix: Prefix = DEFAULT_PREFIX,
    yes: Yes = False,
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
) -> None:
    """Abort open transactions without a decision.

    Running tasks fail, and Spark runs them again. Readers with read_committed wait at open transactions, so abort those
    of a query that will not be started again.
    """

    async def command(write: Write, state: WriteState, terminal: Terminal) -> int:
        found = [name for name in state.open if name not in {one.name for one in state.decided(Fate.OPEN)}]
        if not found:
            terminal.say("No undecided transaction is open")
            return 0
        terminal.say(f"Aborts {report.count(len(found), 'transaction')}:")
        _names(terminal, write, found)
        return await write.repair(terminal, abort_undecided, yes=yes)

    _run(command, query, write_id, topic, prefix, (bootstrap_server, config, override))


@app.command("mark")
def mark(
    topic: MarkerTopic,
    epoch: Annotated[int, typer.Option(min=-1, help="The epoch that counts as the last one written; -1: none.")],
    query: Query = None,
    write_id: WriteId = None,
    prefix: Prefix = DEFAULT_PREFIX,
    yes: Yes = False,
    bootstrap_server: BootstrapServer = None,
    config: ConfigFile = None,
    override: Overrides = None,
) -> None:
    """Set the marker by hand.

    This epoch and those before it then count as written, later ones do not. A run of this epoch writes nothing and does
    not compare its rows. Runs of later epochs write all their rows, even those that can be read already: that makes
    duplicates.
    """

    async def command(write: Write, state: WriteState, terminal: Terminal) -> int:
        terminal.say(f"Sets the marker to epoch {epoch}:")
        if epoch >= 0:
            terminal.say(f"    epoch {epoch} writes nothing any more, even if its rows cannot be read")
        last = state.decision
        again = "" if last is None or last.epoch <= epoch else f", even those up to {last.epoch}, which were decided"
        terminal.say(f"    epoch {epoch + 1} and those after it write all their rows{again}")

        async def repair(ledger: KafkaDriversLedger) -> None:
            await set_by_hand(ledger, epoch)

        return await write.repair(terminal, repair, yes=yes)

    _run(command, query, write_id, topic, prefix, (bootstrap_server, config, override))


@dataclass(frozen=True)
class Write:
    """The write that the command line names."""

    name: str
    checkpoint: Checkpoint | None
    options: SinkOptions

    def show(self, state: WriteState, terminal: Terminal) -> None:
        """Prints what brokers know of the write."""
        last = state.decision
        terminal.facts(
            [
                ("write", f"{self.name}, {'a streaming query' if state.streaming else 'batches'}"),
                ("marker", f"group {state.group}, at {state.place}"),
                ("last decision", state.unreadable or ("none" if last is None else f"epoch {last.epoch}, {last}")),
            ]
        )
        if state.is_unknown:
            terminal.say(
                "Brokers know nothing of this write: it has not begun, or its name, --topic or --prefix differs"
            )
        if last is not None and last.prepared:
            fates = [(fate, len(state.decided(fate))) for fate in Fate]
            terminal.facts([("transactions", ", ".join(f"{number} {fate}" for fate, number in fates if number))])
        now_ms = time.time() * 1000
        terminal.table(_COLUMNS, list(self._open(state, now_ms)))

    def show_next_start(self, state: WriteState, epoch: int | None, terminal: Terminal) -> int:
        """Prints what the next start does; returns the exit status."""
        found = [state.next_start(one) for one in self._next_epochs(state, epoch)]
        for one in found:
            (terminal.fail if one.refused else terminal.say)(f"A run of epoch {one.epoch} {one.does}")
        wrong = any(state.decided(fate) for fate in (Fate.LOST, Fate.GONE, Fate.FORGOTTEN))
        return FAILED if found[-1].refused or wrong else 0

    async def repair(
        self, terminal: Terminal, work: Callable[[KafkaDriversLedger], Coroutine[Any, Any, None]], *, yes: bool
    ) -> int:
        """With ``yes``, does the work and shows the new state."""
        terminal.say("Stop the query first: a running driver fails")
        if not yes:
            terminal.say("Nothing was changed; do it with --yes")
            return 0
        async with open_drivers_ledger(self.options, self.name, self.name) as ledger:
            await work(ledger)
        state = await inspect_write(self.options, self.name)
        terminal.say("Done. Now:")
        self.show(state, terminal)
        return self.show_next_start(state, None, terminal)

    def _next_epochs(self, state: WriteState, epoch: int | None) -> list[int]:
        if epoch is not None:
            return [epoch]
        if self.checkpoint is not None:
            return [self.checkpoint.next_epoch]
        return [0] if state.decision is None else [max(state.decision.epoch, 0), state.decision.epoch + 1]

    def _open(self, state: WriteState, now_ms: float) -> Iterator[tuple[object, ...]]:
        decided = {one.name for one in state.decided(Fate.OPEN)}
        for name, one in state.open.items():
            age = f"{max(now_ms - one.start_time_ms, 0) / 1000:.0f} s of {one.timeout_ms / 1000:.0f} s"
            whose = "decided" if name in decided else "undecided"
            if slot_named(name) is None:
                whose = "a driver that is deciding, or was killed"
            yield self.transactional_id(name), one.state, one.producer_id, one.producer_epoch, age, whose

    def transactional_id(self, name: str) -> str:
        return names_of(self.options.prefix, self.name) + name


def _run(
    command: Callable[[Write, WriteState, Terminal], Coroutine[Any, Any, int]],
    query: str | None,
    write_id: str | None,
    topic: str,
    prefix: str,
    client: tuple[str | None, Path | None, list[str] | None],
) -> None:
    if (query is None) == (write_id is None):
        raise typer.BadParameter("name a query, or the --write-id of batches", param_hint="QUERY")
    terminal = Terminal()

    async def work() -> int:
        write = _write(query, write_id, topic, prefix, client_configs(*client))
        state = await inspect_write(write.options, write.name)
        write.show(state, terminal)
        return await command(write, state, terminal)

    run(terminal, lambda interrupt: until_interrupted(terminal, interrupt, work()))


def _write(query: str | None, write_id: str | None, topic: str, prefix: str, configs: dict[str, str]) -> Write:
    given = {f"kafka.{name}": value for name, value in configs.items()}
    given |= {"topic": topic, "transactionalIdPrefix": prefix, "deliveryGuarantee": "exactly-once"}
    if write_id is not None:
        return Write(write_id, None, SinkOptions.of({**given, "writeId": write_id}, streaming=False))
    assert query is not None
    checkpoint = Checkpoint.read(Path(query)) if Path(query).is_dir() else None
    if checkpoint is None and not _ID.fullmatch(query):
        raise typer.BadParameter(
            f"{query} is neither a directory of this machine nor the id of a query; the file metadata in a checkpoint "
            "has the id, and the errors of the sink contain it",
            param_hint="QUERY",
        )
    name = query if checkpoint is None else checkpoint.query_id
    return Write(name, checkpoint, SinkOptions.of(given, streaming=True))


def _names(terminal: Terminal, write: Write, names: Iterator[str] | list[str]) -> None:
    for name in names:
        terminal.say(f"    {write.transactional_id(name)}")
