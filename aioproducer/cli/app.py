"""All commands. Each is imported only when it runs, so that one does not wait for the imports of another."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

# Frames and colours only on a terminal: a pipe gets plain text.
_ON_TERMINAL = sys.stdout.isatty() and sys.stderr.isatty()


def _audit(app: typer.Typer) -> None:
    from aioproducer.cli.commands.audit import audit

    app.command("audit")(audit)


def _broker(app: typer.Typer) -> None:
    from aioproducer.cli.commands.broker import broker

    app.command("broker")(broker)


def _demo(app: typer.Typer) -> None:
    from aioproducer.cli.commands.demo import demo

    app.command("demo")(demo)


def _outbox(app: typer.Typer) -> None:
    from aioproducer.cli.commands.outbox import outbox

    app.command("outbox")(outbox)


def _perf(app: typer.Typer) -> None:
    from aioproducer.cli.commands.perf import PerfCommand, perf

    app.command("perf", cls=PerfCommand)(perf)


def _read(app: typer.Typer) -> None:
    from aioproducer.cli.commands.read import read

    app.command("read")(read)


def _send(app: typer.Typer) -> None:
    from aioproducer.cli.commands.send import send

    app.command("send")(send)


def _spark(app: typer.Typer) -> None:
    from aioproducer.cli.commands.spark import app as spark

    app.add_typer(spark, name="spark")


def _topics(app: typer.Typer) -> None:
    from aioproducer.cli.commands.topics import app as topics

    app.add_typer(topics, name="topics")


_COMMANDS: dict[str, Callable[[typer.Typer], None]] = {
    "demo": _demo,
    "send": _send,
    "read": _read,
    "topics": _topics,
    "broker": _broker,
    "outbox": _outbox,
    "perf": _perf,
    "audit": _audit,
    "spark": _spark,
}


def make_app(wanted: str | None = None) -> typer.Typer:
    """The command line: with the command ``wanted`` only, or with all if there is none of this name."""
    app = typer.Typer(
        help="A Kafka producer for the command line.",
        no_args_is_help=True,
        rich_markup_mode="markdown" if _ON_TERMINAL else None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in [wanted] if wanted in _COMMANDS else _COMMANDS:
        _COMMANDS[name](app)
    app.callback()(_every_command)
    return app


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    from aioproducer import __version__

    typer.echo(f"aioproducer {__version__}")
    raise typer.Exit


def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
