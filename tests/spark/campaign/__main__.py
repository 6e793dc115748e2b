"""``python -m tests.spark.campaign``: kills and interruptions on a standalone cluster, with real Kafka.

Each seed is a life of the cluster; what has come of it is added to the report, so campaigns can be continued. The exit
status is 0 only if every row was read once and no write was stuck.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from aioproducer.testing.kafka.apache_kafka import ApacheKafka

from . import report
from .campaign import Campaign, environment_of
from .standalone import Standalone


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    until = time.monotonic() + options.minutes * 60
    problems: list[str] = []
    with ApacheKafka() as kafka:
        for seed in options.seed:
            if time.monotonic() > until:
                say(f"the time is over before seed {seed}")
                break
            with directory_of(options.keep, seed) as directory:
                environment = environment_of(directory)
                with Standalone(directory, environment) as cluster:
                    campaign = Campaign(
                        kafka.bootstrap_servers, cluster, directory, environment, seed, options.interruptions, say
                    )
                    run = campaign.write_all(until)
            say(f"seed {seed}: {len(run.interrupted)} interruptions, {run.problems() or 'all is well'}")
            problems += run.problems()
            if options.report is not None:
                report.add(options.report, run)
    return 1 if problems else 0


@contextmanager
def directory_of(kept: Path | None, seed: int) -> Iterator[Path]:
    """For all files of one life; removed at the end if it is not to be kept."""
    if kept is not None:
        (kept / str(seed)).mkdir(parents=True)
        yield kept / str(seed)
        return
    with tempfile.TemporaryDirectory(prefix="aioproducer-campaign-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def say(line: str) -> None:
    sys.stderr.write(f"{datetime.now():%H:%M:%S} {line}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.campaign", description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="of each life of the cluster")
    parser.add_argument("--interruptions", type=int, default=40, help="of each life (%(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="for all of them together (%(default)s)")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="add to this file, and write one for people")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="leave all files there, of each seed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
