"""Everything that is measured: ``python -m benchmarks [COMMAND]``. The list of commands is in ``__main__.py``.

``docs/performance.md`` has the method and the figures. This package is part of the checkout, not of what is installed.

A command is wired in ``__main__.py`` and has a file of its name; where that file lies says what the command measures:

comparison/    producers of several clients: speed, CPU, memory, latency   (no command), curves, lines, report
record_costs/  what a part of the producer, or the broker, costs a record  encode, schemas, observability, broker-costs
pipelining/    linger.ms, pipeline=auto and requests in flight             linger, pipeline, window, in-flight
stress/        very much at once, little memory, brokers that are gone     scale, threads, stalls, memory, imports,
                                                                           back-pressure, outage
fleet/         one producer and a thousand brokers, in virtual time         fleet
services/      HTTP services that produce; units and transactions          services, units
outbox/        rows of a database on their way to Kafka                    outbox
spark/         the data source for Spark, and the delivery audit           spark, audit
broker/        the embedded broker                                         broker, connections
attacks/       the embedded broker under attack                            attacks

clients/       each client that is compared, in a file of its own
works/         what clients are given to do
harness/       what every command is made of: options, processes, statistics, the environment, reports

measured/      the figures of docs/performance.md, as --json has written them
franz_go/      the Go program that measures franz-go

The rooms with commands import nothing of each other: comparison → clients → works → harness, the others → harness.
import-linter keeps it so (``pyproject.toml``).
"""

import sys
from pathlib import Path

# ``python -m`` puts the checkout first, but an installed package must come before it: only that is compiled. (With -P
# the caller has put the checkout first on purpose: see ``python_process``.)
if not sys.flags.safe_path and sys.path[:1] == [str(Path(__file__).parents[1])]:
    sys.path.append(sys.path.pop(0))
