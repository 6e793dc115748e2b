"""``python -m benchmarks audit``: how long a delivery audit takes, and how much memory, as topics grow.

Spark makes topics of about so many records, with a fault of each kind planted, as Parquet files with the columns of the
source; reading topics is measured elsewhere. Another process audits them: each fault has to be found and nothing else.
Its memory is that of all its processes together, as often as it is looked at.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.processes import python_command
from benchmarks.harness.usage import cpu_seconds_of, processes_of

_LOOK_EVERY = 0.5


def make(records: int, place: str, memory: str) -> None:
    """The topics, their producers' logs, and what a reader of committed records was given, as files."""
    from aioproducer.spark.audit.session import audit_session
    from benchmarks.spark.audited_topics import Shape, as_lines
    from benchmarks.spark.planted_faults import faulty_topics

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
    from aioproducer.spark.audit.finding import Kind
    from aioproducer.spark.audit.frames.events import events_of_files
    from aioproducer.spark.audit.job import audit
    from aioproducer.spark.audit.options import AuditOptions
    from aioproducer.spark.audit.report.page import html
    from aioproducer.spark.audit.session import audit_session
    from benchmarks.spark.audited_topics import Shape
    from benchmarks.spark.planted_faults import PLANTED

    shape = Shape.of(records)
    spark = audit_session("local[*]", memory, f"{place}/scratch")
    began, machine, cpu = time.perf_counter(), MachineCpu(), cpu_of_all()
    summary = audit(
        spark.read.parquet(f"{place}/source"),
        spark.read.parquet(f"{place}/bounds"),
        f"{place}/audit",
        AuditOptions(now_ms=shape.now_ms, keyed=True),
        events=events_of_files(spark, [f"{place}/log"]),
        committed=spark.read.parquet(f"{place}/committed"),
    )
    Path(f"{place}/report.html").write_text(html(summary), encoding="utf-8")
    seconds, cpu_seconds, others = time.perf_counter() - began, cpu_of_all() - cpu, machine.others()
    found = {found.kind: found.records for found in summary.found}
    of_size = {kind: found.pop(kind, 0) for kind in (Kind.LATE, Kind.SKEW)}
    planted = {kind: count for kind, count in PLANTED.items() if kind is not Kind.EQUAL}
    right = found == planted and all(of_size.values())
    report = {"seconds": seconds, "cpu_seconds": cpu_seconds, "right": right, "others": others}
    sys.stdout.write(json.dumps({"records": summary.totals["records"], **report}) + "\n")
    if not right:
        sys.stderr.write(f"found {found} and {of_size}, planted {planted}\n")
    spark.stop()


def cpu_of_all() -> float:
    """The CPU time of this process and those that it has started, Spark among them."""
    return sum(cpu_seconds_of(one, ended_children=True) or 0.0 for one in processes_of(os.getpid()))


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
    statement = f"from benchmarks.spark import audit; audit.{step}(int(sys.argv[1]), *sys.argv[2:])"
    process = subprocess.Popen(
        python_command(statement, str(records), place, memory), stdout=subprocess.PIPE, text=True
    )
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


@dataclass(frozen=True)
class Audited:
    """One audit: of how many records, and whether each planted fault was found, and nothing else."""

    records: int
    seconds: float
    cpu_seconds: float
    """Of all threads, which says more than ``seconds`` where the machine has other things to do."""
    peak_bytes: int
    right: bool


@dataclass(frozen=True)
class Report:
    """All sizes."""

    environment: Environment
    memory: str
    audited: Sequence[Audited]

    def problems(self) -> list[str]:
        return [f"{one.records:,} records: not what was planted was found" for one in self.audited if not one.right]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            f"With `--memory {self.memory}`, on all cores:",
            "",
            "| records | seconds | records/s | CPU seconds | peak memory, MiB | each fault found, nothing else |",
            "|---:|---:|---:|---:|---:|---|",
        ]
        for one in self.audited:
            rate, peak, right = one.records / one.seconds, one.peak_bytes / 2**20, "yes" if one.right else "NO"
            times = f"{one.seconds:.0f} | {rate:,.0f} | {one.cpu_seconds:,.0f}"
            lines.append(f"| {one.records:,} | {times} | {peak:,.0f} | {right} |")
        return lines

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())


def measured(records: int, memory: str) -> tuple[Audited, float | None]:
    """The audit of topics of about so many records, and how busy the machine was with other things."""
    with tempfile.TemporaryDirectory(prefix="benchmarks-audit-") as place:
        run("make", records, place, memory)
        printed, most = run("judge", records, place, memory)
    found: dict[str, Any] = json.loads(printed)
    others: float | None = found.pop("others")
    return Audited(**found, peak_bytes=most), others


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks audit",
        description=(__doc__ or "").partition("\n\n")[0],
        epilog="Exit status 0: each fault was found, and nothing else; 1: not so.",
    )
    parser.add_argument("--records", type=positive, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--memory", default="2g", help="what Spark's driver may take")
    command.add_json(parser)
    options = parser.parse_args(arguments)
    environment = Environment.now(loop="asyncio", broker="none: files with the columns of the source")
    audited: list[Audited] = []
    shares: list[float] = []
    for records in options.records:
        one, others = measured(records, options.memory)
        audited.append(one)
        shares += [] if others is None else [others]
        command.say(f"{one.records:,} records: {one.seconds:.0f} s")
    environment = dataclasses.replace(environment, others=max(shares, default=None))
    return command.end(Report(environment, options.memory, audited), options)
