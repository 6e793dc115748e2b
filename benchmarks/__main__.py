"""``python -m benchmarks`` compares, ``curves`` as work grows; its other commands measure aioproducer alone."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Sequence

from benchmarks import curves, encode, in_flight, memory, outage, pipeline, scale, window
from benchmarks.arguments import parse_arguments
from benchmarks.comparison import compare_or_say_why_not
from benchmarks.works import WORKS

COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "curves": curves.main,
    "encode": encode.main,
    "in-flight": in_flight.main,
    "memory": memory.main,
    "outage": outage.main,
    "pipeline": pipeline.main,
    "scale": scale.main,
    "window": window.main,
}


def main() -> int:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in COMMANDS:
        return COMMANDS[arguments[0]](arguments[1:])
    options = parse_arguments(arguments)
    report = compare_or_say_why_not(options, [WORKS[name] for name in options.works])
    if report is None:
        return 1
    if options.json is not None:
        options.json.write_text(json.dumps(report.json(), indent=2) + "\n", encoding="utf-8")
    if options.plot is not None:
        options.plot.write_text(report.svg(), encoding="utf-8")
    if sys.stdout.isatty() and not options.plain and importlib.util.find_spec("rich") is not None:
        report.print_to_terminal()
    else:
        print(report.markdown(), end="")
    return 1 if report.problems() else 0


if __name__ == "__main__":
    sys.exit(main())
