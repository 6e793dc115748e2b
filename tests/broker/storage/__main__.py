"""Damages, kills and crashes data directories, at length: ``python -m tests.broker.storage --write``.

Exit status 0 only if nothing that was acknowledged was lost without an error that names it. Takes a few minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from benchmarks.harness.command import quiet
from tests.broker.storage.corruptions import Corruptions, Progress, corruptions
from tests.broker.storage.crash_machine import CrashMachine
from tests.broker.storage.faulty_files import FaultyFiles
from tests.broker.storage.kills import Kills, kills

PAGE = Path(__file__).parents[3] / "docs" / "broker-disk.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"


def crashes(histories: int) -> int:
    """Runs random histories with crashes of a machine; returns the number of crashes. Raises the first violation."""
    count = 0
    right = FaultyFiles.crash

    def crash(files: FaultyFiles) -> None:
        nonlocal count
        count += 1
        right(files)

    FaultyFiles.crash = crash  # type: ignore[method-assign, assignment]
    try:
        with quiet("aioproducer.broker"):
            run_state_machine_as_test(
                CrashMachine,
                settings=settings(
                    max_examples=histories,
                    stateful_step_count=60,
                    deadline=None,
                    database=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
    finally:
        FaultyFiles.crash = right  # type: ignore[method-assign]
    return count


def of_corruptions(found: Corruptions) -> str:
    hit = ", ".join(f"{count} in {kind}" for kind, count in found.files.most_common())
    rows = [f"| {outcome} | {count} |" for outcome, count in found.outcomes.most_common()]
    return "\n".join(
        [
            f"**{found.count} times one byte of a data directory changes** ({hit}),",
            f"half of the times after a clean shutdown. The directory has {found.records:,} records that consumers of",
            "committed ones see, some compressed, some of transactions.",
            "",
            "| what the user notices | times |",
            "|---|---|",
            *rows,
            "",
            f"With `--recover` {found.lost:,} records in all could not be read. An error named each of them but",
            f"**{len(found.silent)}**. All others had their offsets.",
            "",
        ]
    )


def of_kills(found: Kills) -> str:
    return "\n".join(
        [
            f"**{found.count} times the process is killed** (`kill -9`) under `log.flush.policy=always`, while an",
            "idempotent and a transactional producer of confluent-kafka write.",
            "",
            "| | |",
            "|---|---|",
            f"| records sent, acknowledged, failed | {found.sent:,}, {found.acknowledged:,}, {found.failed} |",
            "| transactions committed, aborted, of unknown end |"
            f" {found.committed}, {found.aborted}, {found.unknown} |",
            f"| lost, twice, out of order, or torn | **{len(found.problems)}** |",
            "",
        ]
    )


def of_crashes(histories: int, count: int) -> str:
    return "\n".join(
        [
            f"**{count:,} crashes of a machine** in {histories:,} random histories, on files that lose, tear and",
            "reorder whatever was not synced, also during recovery: **0** acknowledged records or transactions lost.",
            "",
        ]
    )


def with_figures(page: str, text: str) -> str:
    """The page with new figures."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + text + END + rest.partition(END)[2]


def _progress(what: str, count: int) -> Progress:
    def show(done: int) -> None:
        sys.stderr.write(f"\r{what}: {done} of {count}" + ("\n" if done == count else ""))
        sys.stderr.flush()

    return show


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.broker.storage", description=__doc__)
    parser.add_argument("--corruptions", type=int, default=200, metavar="N")
    parser.add_argument("--kills", type=int, default=100, metavar="N")
    parser.add_argument("--histories", type=int, default=2000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help=f"put the figures into {PAGE.name}")
    options = parser.parse_args()
    import confluent_kafka

    parts = []

    def report(part: str) -> None:
        parts.append(part)
        sys.stdout.write(part + "\n")

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        progress = _progress("bytes changed", options.corruptions)
        corrupted = asyncio.run(
            corruptions(directory / "corruptions", options.corruptions, options.seed, progress=progress)
        )
        report(of_corruptions(corrupted))
        (directory / "kills").mkdir()
        progress = _progress("kills", options.kills)
        killed = kills(confluent_kafka, directory / "kills", options.kills, options.seed, progress=progress)
        report(of_kills(killed))
    report(of_crashes(options.histories, crashes(options.histories)))
    problems = [*corrupted.silent, *killed.problems]
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    if options.write:
        PAGE.write_text(with_figures(PAGE.read_text(), "\n".join(parts)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
