"""Sends random requests to a broker for a long time: ``python -m tests.broker.fuzz --seconds 3600 --write``.

Exit status 0 only if nothing was found: no request fails with a traceback, every answer can be read, every batch that
is accepted can be read, no turn of the event loop takes more than 100 ms of CPU time, an honest client is answered, and
memory stays below 1 GiB.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.harness.usage import peak_rss

from .fuzzing import LONGEST_TURN, Fuzzed, fuzz

PAGE = Path(__file__).parents[3] / "docs" / "broker-attacks.md"
BEGIN, END = "<!-- fuzzed -->\n", "<!-- end of fuzzed -->\n"

MOST_MEMORY = 1 << 30


def of_fuzzed(found: Fuzzed, seconds: float, peak: int) -> str:
    """The paragraph of the page."""
    return "\n".join(
        [
            f"In {seconds:,.0f} seconds, {found.requests:,} random requests were sent; the brokers answered"
            f" {found.answers:,}",
            f"and accepted {found.accepted:,} batches. Findings: **{len(found.findings)}**. The longest turn of the"
            " event loop took",
            f"{found.longest_turn * 1000:.0f} ms of CPU time; the process, broker and client together, took at most"
            f" {peak / 2**20:.0f} MiB.",
            "",
        ]
    )


def with_fuzzed(page: str, text: str) -> str:
    """The page with another paragraph."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + text + END + rest.partition(END)[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.broker.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help=f"put the figures into {PAGE.name}")
    options = parser.parse_args()
    found, shown = Fuzzed(), 0

    def progress(found: Fuzzed) -> None:
        nonlocal shown
        for finding in found.findings[shown:]:
            sys.stdout.write(f"{finding}\n")
        shown = len(found.findings)
        sys.stdout.flush()
        turn = f"longest turn {found.longest_turn * 1000:.0f} ms of {LONGEST_TURN * 1000:.0f}"
        sys.stderr.write(f"{found.requests:,} requests, {shown} findings, {turn}, {peak_rss() >> 20} MiB\n")

    fuzz(options.seconds, options.seed, found, progress)
    peak = peak_rss()
    text = of_fuzzed(found, options.seconds, peak)
    sys.stdout.write(text)
    if options.write:
        PAGE.write_text(with_fuzzed(PAGE.read_text(), text))
    return 1 if found.findings or peak > MOST_MEMORY else 0


if __name__ == "__main__":
    sys.exit(main())
