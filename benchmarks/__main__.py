"""The command line, ``python -m benchmarks [COMMAND]``: every command is wired here. None compares the clients."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from benchmarks.attacks import attacks
from benchmarks.broker import broker, connections
from benchmarks.comparison.commands import compare_main, curves_main, lines_main, report_main
from benchmarks.fleet import fleet
from benchmarks.outbox import outbox
from benchmarks.pipelining import in_flight, linger, pipeline, window
from benchmarks.record_costs import broker_costs, encode, observability, schemas
from benchmarks.services import services, units
from benchmarks.spark import audit, spark
from benchmarks.stress import back_pressure, imports, memory, outage, scale, stalls, threads

COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "attacks": attacks.main,
    "audit": audit.main,
    "back-pressure": back_pressure.main,
    "broker": broker.main,
    "broker-costs": broker_costs.main,
    "connections": connections.main,
    "curves": curves_main,
    "encode": encode.main,
    "fleet": fleet.main,
    "imports": imports.main,
    "in-flight": in_flight.main,
    "lines": lines_main,
    "linger": linger.main,
    "memory": memory.main,
    "observability": observability.main,
    "outage": outage.main,
    "outbox": outbox.main,
    "pipeline": pipeline.main,
    "report": report_main,
    "scale": scale.main,
    "schemas": schemas.main,
    "services": services.main,
    "spark": spark.main,
    "stalls": stalls.main,
    "threads": threads.main,
    "units": units.main,
    "window": window.main,
}


def main() -> int:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in COMMANDS:
        return COMMANDS[arguments[0]](arguments[1:])
    return compare_main(arguments, COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
