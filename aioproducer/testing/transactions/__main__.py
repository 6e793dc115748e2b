"""``python -m aioproducer.testing.transactions``: runs a campaign on real Kafka, and prints its report.

The exit status is 0 only if exactly the committed transactions were read, and the audit, if requested, found no
problem.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from aioproducer.testing.kafka.apache_kafka import QUICK_FAILOVER, ApacheKafka, KafkaFailed, KafkaUnavailable
from aioproducer.testing.kafka.kafka_libs import DEFAULT_VERSION
from aioproducer.testing.transactions import campaign
from aioproducer.testing.transactions.plan import Plan
from aioproducer.testing.transactions.report import Report
from aioproducer.testing.transactions.workers import CampaignFailed

_HELP = {
    "seed": "decides the interruptions and their times",
    "transactions": "the least number; more follow until all interruptions have happened",
    "records": "in each transaction",
    "partitions": "of the topic",
    "kills": "how often the producer's process is killed",
    "stops": "how often it is stopped, replaced, and woken",
    "bounces": "how often a broker is bounced, every other time the coordinator",
}


def main(arguments: Sequence[str] | None = None, out: TextIO = sys.stdout, err: TextIO = sys.stderr) -> int:
    def show(line: str) -> None:
        print(f"{datetime.now():%H:%M:%S} {line}", file=err, flush=True)

    options = vars(_parser().parse_args(arguments))
    version, nodes, written, audit = (options.pop(name) for name in ("kafka", "nodes", "report", "audit"))
    if audit is not None and find_spec("pyspark") is None:
        show("--audit is a Spark job, and pyspark is not installed: pip install 'aioproducer[spark]'")
        return 1
    try:
        report = asyncio.run(_campaign(version, nodes, Plan(**options), show, audit))
    except (CampaignFailed, KafkaFailed, KafkaUnavailable, OSError, ValueError) as error:
        show(str(error))
        return 1
    if written is not None:
        written.write_text(report.markdown(), encoding="utf-8")
    print(report.markdown(), end="", file=out)
    return 1 if report.problems() else 0


async def _campaign(version: str, nodes: int, plan: Plan, show: Callable[[str], object], audit: Path | None) -> Report:
    async with ApacheKafka(version, nodes=nodes, configs=QUICK_FAILOVER) as kafka:
        return await campaign.run(kafka, plan, show, audit=audit)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m aioproducer.testing.transactions", description=__doc__)
    parser.add_argument("--kafka", default=DEFAULT_VERSION, metavar="VERSION", help="%(default)s")
    parser.add_argument("--nodes", type=int, default=3, help="nodes of the cluster (%(default)s)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="also write the report to this file")
    parser.add_argument(
        "--audit",
        type=Path,
        metavar="DIRECTORY",
        help="also run the delivery audit, a Spark job, on the delivery logs of the producers; this new directory gets "
        "the logs, and the tables and the report of the audit",
    )
    for field in fields(Plan):
        help_text = f"{_HELP[field.name]} (%(default)s)"
        parser.add_argument(f"--{field.name}", type=int, default=field.default, help=help_text)
    return parser


if __name__ == "__main__":
    sys.exit(main())
