"""The command line: ``aioproducer``, the same as ``python -m aioproducer``. It uses only the public package.

    app.py           all commands
    demo.py          aioproducer demo
    proof.py         proves that what was read is what was sent
    flights.csv.xz   what demo sends
    send.py          aioproducer send
    formats.py       lines, NDJSON, CSV: from bytes to records
    failed_file.py   keeps records that were not delivered, to be sent again
    stall.py         says what the producer waits for
    read.py          aioproducer read
    start.py         where reading begins: --from
    line_output.py   writes lines to standard output, in a thread
    topics.py        aioproducer topics
    broker.py        aioproducer broker
    collector.py     when Python's garbage collector runs in the broker
    perf.py          aioproducer perf
    perf_stats.py    what perf counts, and the lines it prints
    perf_payload.py  what perf sends
    audit.py         aioproducer audit
    spark.py         aioproducer spark

    options.py       options that commands share, and the configs they make
    running.py       a command's event loop, Ctrl-C, and errors as plain lines
    terminal.py      what people see: progress, tables, warnings
    log_lines.py     writes log lines to standard error, in a thread
    byte_source.py   a file or standard input, read by a thread
    sending.py       sends records, and counts what became of them
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
