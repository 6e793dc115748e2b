"""The commands together."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from aioproducer.cli.broker import broker
from aioproducer.cli.demo import demo
from aioproducer.cli.perf import PerfCommand, perf
from aioproducer.cli.send import send
from aioproducer.cli.topics import app as topics

# Frames and colours are for people: whatever reads a pipe gets plain text.
_ON_TERMINAL = sys.stdout.isatty() and sys.stderr.isatty()

app = typer.Typer(
    help="A Kafka producer for the command line.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown" if _ON_TERMINAL else None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo)
app.command("send")(send)
app.add_typer(topics, name="topics")
app.command("broker")(broker)
app.command("perf", cls=PerfCommand)(perf)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        typer.echo(f"aioproducer {version('aioproducer')}")
    except PackageNotFoundError:
        typer.echo("aioproducer (a checkout, not installed)")
    raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
