"""``python -m benchmarks`` compares, ``curves`` as work grows; its other commands measure aioproducer alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from benchmarks.attacks import attacks
from benchmarks.broker import broker, connections
from benchmarks.comparison import curves_command, show
from benchmarks.comparison.arguments import parse_arguments
from benchmarks.comparison.comparison import compare_or_say_why_not
from benchmarks.pipelining import in_flight, linger, pipeline, window
from benchmarks.record_costs import encode, observability, schemas
from benchmarks.services import services, units
from benchmarks.spark import audit, spark
from benchmarks.stress import back_pressure, memory, outage, scale, stalls
from benchmarks.works.works import WORKS

COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "attacks": attacks.main,
    "audit": audit.main,
    "back-pressure": back_pressure.main,
    "connections": connections.main,
    "broker": broker.main,
    "curves": curves_command.main,
    "encode": encode.main,
    "in-flight": in_flight.main,
    "linger": linger.main,
    "memory": memory.main,
    "observability": observability.main,
    "outage": outage.main,
    "pipeline": pipeline.main,
    "report": show.main,
    "scale": scale.main,
    "schemas": schemas.main,
    "services": services.main,
    "spark": spark.main,
    "stalls": stalls.main,
    "units": units.main,
    "window": window.main,
}


def main() -> int:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in COMMANDS:
        return COMMANDS[arguments[0]](arguments[1:])
    options = parse_arguments(arguments)
    works = [WORKS[name] for name in options.works]
    report = compare_or_say_why_not(options, works, lambda report: show.keep(report, options.json))
    return 1 if report is None else show.show(report, plot=options.plot, plain=options.plain)


if __name__ == "__main__":
    sys.exit(main())
