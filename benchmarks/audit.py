"""``python -m benchmarks audit``: how long a delivery audit takes, and how much memory, as topics grow.

Spark makes topics of about so many records, with a fault of each kind planted, as Parquet files with the columns of the
source; reading topics is measured elsewhere. Another process audits them: each fault has to be found and nothing else.
Its memory is that of all its processes together, as often as it is looked at.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.arguments import positive
from benchmarks.environment import Environment
from benchmarks.python_process import python_command

_LOOK_EVERY = 0.5


def make(records: int, place: str, memory: str) -> None:
    """The topics, their producers' logs, and what a reader of committed records was given, as files."""
    from aioproducer.spark.audit.session import audit_session
    from benchmarks.audited_topics import Shape, as_lines
    from benchmarks.planted_faults import faulty_topics

    shape = Shape.of(records)
    spark = audit_session("local[*]", memory, f"{place}/scratch")
    made = faulty_topics(spark, shape)
    made.source.drop("value").write.parquet(f"{place}/source")
    made.committed.drop("value").write.parquet(f"{place}/committed")
    made.bounds().write.parquet(f"{place}/bounds")
    as_lines(made.events).write.text(f"{place}/log")
    spark.stop()


def judge(records: int, place: str, memory: str) -> None:
    """Audits them; prints what came of it as JSON."""
    from aioproducer.spark.audit.events import events_of_files
    from aioproducer.spark.audit.finding import Kind
    from aioproducer.spark.audit.job import audit
    from aioproducer.spark.audit.options import AuditOptions
    from aioproducer.spark.audit.report import html
    from aioproducer.spark.audit.session import audit_session
    from benchmarks.audited_topics import Shape
    from benchmarks.planted_faults import PLANTED

    shape = Shape.of(records)
    spark = audit_session("local[*]", memory, f"{place}/scratch")
    began = time.perf_counter()
    summary = audit(
        spark.read.parquet(f"{place}/source"),
        spark.read.parquet(f"{place}/bounds"),
        f"{place}/audit",
        AuditOptions(now_ms=shape.now_ms, keyed=True),
        events=events_of_files(spark, [f"{place}/log"]),
        committed=spark.read.parquet(f"{place}/committed"),
    )
    Path(f"{place}/report.html").write_text(html(summary), encoding="utf-8")
    seconds = time.perf_counter() - began
    found = {found.kind: found.records for found in summary.found}
    of_size = {kind: found.pop(kind, 0) for kind in (Kind.LATE, Kind.SKEW)}
    planted = {kind: count for kind, count in PLANTED.items() if kind is not Kind.EQUAL}
    right = found == planted and all(of_size.values())
    sys.stdout.write(json.dumps({"records": summary.totals["records"], "seconds": seconds, "right": right}) + "\n")
    if not right:
        sys.stderr.write(f"found {found} and {of_size}, planted {planted}\n")
    spark.stop()


def processes_of(pid: int) -> list[int]:
    """The process and all that it has started, and they in turn."""
    found, left = [], [pid]
    while left:
        one = left.pop()
        found.append(one)
        try:
            tasks = list(Path(f"/proc/{one}/task").iterdir())
            left += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue  # it has ended meanwhile
    return found


def resident(pid: int) -> int:
    """Bytes of memory that it and what it has started have resident."""
    total = 0
    for one in processes_of(pid):
        try:
            lines = Path(f"/proc/{one}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))
    return total


def run(step: str, records: int, place: str, memory: str) -> tuple[str, int]:
    """What a step prints, and the most memory it had."""
    command = python_command(
        f"from benchmarks import audit; audit.{step}(int(sys.argv[1]), *sys.argv[2:])", str(records), place, memory
    )
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    most = 0
    while True:
        try:
            printed, _ = process.communicate(timeout=_LOOK_EVERY)
            break
        except subprocess.TimeoutExpired:
            most = max(most, resident(process.pid))
    if process.returncode != 0:
        raise SystemExit(f"{step} of {records:,} records ended with status {process.returncode}")
    return printed, most


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks audit", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument("--records", type=positive, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--memory", default="2g", help="what Spark's driver may take")
    options = parser.parse_args(arguments)
    for name, value in Environment.now(loop="asyncio", broker="none: files with the columns of the source").lines():
        print(f"- {name}: {value}")
    print(
        "\n| records | seconds | records/s | peak memory, MiB | each fault found, nothing else |\n|---|---|---|---|---|"
    )
    status = 0
    for records in options.records:
        with tempfile.TemporaryDirectory(prefix="benchmarks-audit-") as place:
            run("make", records, place, options.memory)
            printed, most = run("judge", records, place, options.memory)
        found: dict[str, Any] = json.loads(printed)
        rate = found["records"] / found["seconds"]
        right = "yes" if found["right"] else "NO"
        print(
            f"| {found['records']:,} | {found['seconds']:.0f} | {rate:,.0f} | {most / 2**20:,.0f} | {right} |",
            flush=True,
        )
        status |= not found["right"]
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
