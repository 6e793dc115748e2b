"""The command line: ``aioproducer``, the same as ``python -m aioproducer``. It uses only the public package.

    app.py           the commands together
    demo.py          aioproducer demo
    broker.py        aioproducer broker
    send.py          aioproducer send
    read.py          aioproducer read
    start.py         where it begins
    line_output.py   the lines that it writes
    topics.py        aioproducer topics
    perf.py          aioproducer perf
    perf_stats.py    what it counts, and the lines it prints
    perf_payload.py  what it sends
    options.py       options that commands share, and the configs they make
    running.py       a command's event loop, Ctrl-C, and errors as plain lines
    terminal.py      what people see: progress, tables, warnings
    byte_source.py   a file or standard input, read by a thread
    formats.py       lines, NDJSON, CSV: from bytes to records
    sending.py       records through the producer, and what became of them
    failed_file.py   records kept to be sent again
    report.py        the closing lines
    proof.py         proves that what was read is what was sent

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
    """What follows the command's name: of this command line, or of the one that a shell asks to be completed."""
    if "_AIOPRODUCER_COMPLETE" not in os.environ:
        return sys.argv[1:]
    os.environ["COLUMNS"] = "10000"  # a description of two lines would be taken for two words
    # Bash has it in the one variable, zsh and fish in the other.
    return os.environ.get("COMP_WORDS", os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()[1:]
