"""Writes ``docs/campaigns/long-tests.md`` from the reports of the environments that take long.

scripts/test -e conformance-long,conformance-spark-long

python scripts/long_tests.py    after those environments; the status is 1 if a test failed
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).parents[1]
PAGE = CHECKOUT / "docs" / "campaigns" / "long-tests.md"
ENVIRONMENTS = ("conformance-long", "conformance-spark-long")

HEAD = """\
# The tests that take long

Each takes minutes, or starts the older release of Kafka once more, and a shorter test checks most of what it does. So
`scripts/test` leaves them out; they have the marker `long`. Made by

    scripts/test -e conformance-long,conformance-spark-long
    python scripts/long_tests.py
"""


class LongTest(NamedTuple):
    """``outcome`` is passed, skipped or failed."""

    file: str
    name: str
    outcome: str
    seconds: float


def of_report(report: str) -> list[LongTest]:
    """Those of a report in JUnit's format, as pytest writes it. Files that were skipped whole have no test."""
    return [
        LongTest(
            file=_file(case.attrib["classname"]),
            name=_name(case.attrib["classname"], case.attrib["name"]),
            outcome=_outcome(case),
            seconds=float(case.attrib["time"]),
        )
        for case in ET.fromstring(report).iter("testcase")
        if case.attrib["classname"]
    ]


def _file(classname: str) -> str:
    parts = [part for part in classname.split(".") if not part[:1].isupper()]
    return "/".join(parts) + ".py"


def _name(classname: str, name: str) -> str:
    owner = classname.rpartition(".")[2]
    return f"{owner}::{name}" if owner[:1].isupper() else name


def _outcome(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def page_of(tests: Sequence[LongTest], commit: str, when: str) -> str:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    facts = [
        ("commit", commit),
        ("date", when),
        ("machine", machine),
        ("tests", str(len(tests))),
        *((outcome, str(_count(tests, outcome))) for outcome in ("passed", "skipped", "failed")),
        ("minutes, together", f"{sum(test.seconds for test in tests) / 60:.0f}"),
    ]
    lines = [HEAD, "| what | |", "| --- | ---: |", *(f"| {what} | {value} |" for what, value in facts)]
    lines += ["", "| file | test | outcome | seconds |", "| --- | --- | --- | ---: |"]
    lines += [f"| {test.file} | `{test.name}` | {test.outcome} | {test.seconds:.1f} |" for test in sorted(tests)]
    return "\n".join(lines) + "\n"


def _count(tests: Sequence[LongTest], outcome: str) -> int:
    return sum(test.outcome == outcome for test in tests)


def main() -> int:
    reports = [CHECKOUT / ".cache" / f"{environment}.xml" for environment in ENVIRONMENTS]
    missing = [report.stem for report in reports if not report.exists()]
    if missing:
        print(f"no report of {', '.join(missing)}: scripts/test -e {','.join(missing)}", file=sys.stderr)
        return 2
    tests = [test for report in reports for test in of_report(report.read_text(encoding="utf-8"))]
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()
    PAGE.write_text(page_of(tests, commit, f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"), encoding="utf-8")
    return min(_count(tests, "failed"), 1)


if __name__ == "__main__":
    sys.exit(main())
