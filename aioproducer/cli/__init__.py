"""The command line: ``aioproducer``, the same as ``python -m aioproducer``. It uses only the public package.

    app.py           all commands
    commands/        each command, with its own parts
    flights.csv.xz   the records of aioproducer demo

    options.py       options that commands share, and the configs they make
    references.py    ${env:NAME} and ${file:PATH:KEY} in the values of configs
    running.py       a command's event loop, Ctrl-C, and errors as plain lines
    terminal.py      prints for people: progress, tables, warnings
    log_lines.py     writes log lines to standard error, in a thread
    byte_source.py   a file or standard input, read by a thread
    formats.py       lines, NDJSON, CSV: from bytes to records
    sending.py       sends records, and counts their outcomes
    failed_file.py   keeps records that were not delivered, to be sent again
    stall.py         says what the producer waits for
    report.py        the closing lines

Exit status: 0 if everything was done (every record delivered), 1 if something was not, 2 for a wrong command line or
config, 130 after Ctrl-C. Only the command line needs typer and rich.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs the command that ``sys.argv`` names, and exits."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("aioproducer: the command line needs typer and rich: pip install 'aioproducer[cli]'")
    from aioproducer.cli.app import make_app

    make_app(next(iter(_words()), None))(prog_name="aioproducer")


def _words() -> list[str]:
    """The arguments of this command line, or of the one that a shell wants completed."""
    if "_AIOPRODUCER_COMPLETE" not in os.environ:
        return sys.argv[1:]
    os.environ["COLUMNS"] = "10000"  # the shell would take a description of two lines for two words
    # Bash sets the first variable, zsh and fish the second.
    return os.environ.get("COMP_WORDS", os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()[1:]
