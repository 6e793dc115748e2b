"""Fuzzing guided by coverage: ``python -m tests.broker.fuzz.guided --seconds 3600 --write``.

Needs atheris (``pip install --group fuzz``), which learns which bytes reach new code of the broker. ``corpus/`` has
short inputs that reached something new, and those that found something; ``--keep`` adds new ones. A test runs them
without atheris. Exit status 0 only if nothing was found: the findings are those of
``python -m tests.broker.fuzz``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .__main__ import MOST_MEMORY, PAGE
from .fuzzing import Fuzzed

CORPUS = Path(__file__).parent / "corpus"
BEGIN, END = "<!-- guided -->\n", "<!-- end of guided -->\n"

LONGEST_INPUT = 4096
"""Bytes; some 50 requests."""

_LONGEST_KEPT = 700
"""Bytes of an input in the corpus: the test of it is to be quick."""

_LONGEST_RUN = 600
"""Seconds that one input may take on the clock: this is for inputs that never end. On a loaded machine an input that
needs a second of CPU time takes a minute; the turns of the event loop are measured in CPU time."""


def of_guided(found: Fuzzed, inputs: int, seconds: float, peak_mib: int) -> str:
    """The paragraph of the page."""
    return "\n".join(
        [
            f"In {seconds:,.0f} seconds, {inputs:,} inputs made {found.requests:,} requests; the brokers answered"
            f" {found.answers:,}",
            f"and accepted {found.accepted:,} batches. Findings: **{len(found.findings)}**. The longest turn of the"
            " event loop took",
            f"{found.longest_turn * 1000:.0f} ms of CPU time; the process took at most {peak_mib} MiB.",
            "",
        ]
    )


def with_guided(page: str, text: str) -> str:
    """The page with another paragraph."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + text + END + rest.partition(END)[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.broker.fuzz.guided", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--keep", action="store_true", help="add the inputs that reach new code to the corpus")
    parser.add_argument("--write", action="store_true", help=f"put the figures into {PAGE.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        new, totals = Path(directory, "new"), Path(directory, "totals")
        new.mkdir()
        limits = (f"-max_len={LONGEST_INPUT}", f"-timeout={_LONGEST_RUN}", f"-rss_limit_mb={MOST_MEMORY >> 20}")
        told = (f"-max_total_time={options.seconds}", "-print_final_stats=1", f"-artifact_prefix={directory}/")
        command = [sys.executable, "-m", "tests.broker.fuzz.guided_target", str(totals)]
        ran = subprocess.run([*command, *told, *limits, str(new), str(CORPUS)], stderr=subprocess.PIPE, text=True)
        sys.stderr.write(ran.stderr)
        for file in Path(directory).iterdir():
            if file.name.startswith(("crash-", "timeout-", "oom-")):
                sys.stdout.write(f"kept {shutil.copy(file, CORPUS)}\n")
        for file in new.iterdir() if options.keep else ():
            if file.stat().st_size <= _LONGEST_KEPT:
                shutil.copy(file, CORPUS)
        if ran.returncode:
            return 1
        stats = dict(re.findall(r"stat::(\w+): +(\d+)", ran.stderr))
        text = of_guided(
            Fuzzed(*json.loads(totals.read_text())),
            int(stats["number_of_executed_units"]),
            options.seconds,
            int(stats["peak_rss_mb"]),
        )
    sys.stdout.write(text)
    if options.write:
        PAGE.write_text(with_guided(PAGE.read_text(), text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
