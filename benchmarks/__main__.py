"""``python -m benchmarks``."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys

from aioproducer.testing.apache_kafka import KafkaFailed, KafkaUnavailable
from benchmarks.arguments import parse_arguments
from benchmarks.comparison import NoClients, compare


def main() -> int:
    options = parse_arguments()
    try:
        report = asyncio.run(compare(options, lambda line: print(line, file=sys.stderr)))
    except (KafkaFailed, KafkaUnavailable) as error:
        print(f"{error}\nWith --bootstrap-server an existing cluster will do.", file=sys.stderr)
        return 1
    except NoClients as error:
        print(f"There is nothing to measure: {error}", file=sys.stderr)
        return 1
    if options.json is not None:
        options.json.write_text(json.dumps(report.json(), indent=2) + "\n", encoding="utf-8")
    if sys.stdout.isatty() and not options.plain and importlib.util.find_spec("rich") is not None:
        report.print_to_terminal()
    else:
        print(report.markdown(), end="")
    return 1 if report.problems() else 0


if __name__ == "__main__":
    sys.exit(main())
