"""The audit as the judge of a campaign of transactions whose producers are killed; here on the embedded broker."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aioproducer import Severity
from aioproducer.spark.audit.finding import Kind
from aioproducer.testing.threaded_cluster import ThreadedCluster
from aioproducer.testing.transactions.audit import audited, deliveries
from aioproducer.testing.transactions.journal import Entry
from aioproducer.testing.transactions.plan import Plan, Step, Transaction
from aioproducer.testing.transactions.worker import Work

pytestmark = pytest.mark.conformance


def run_worker(work: Work, until: int, *, kill: bool) -> int:
    """Its exit status; it is killed within the commit of a transaction, or ordered to stop then."""
    pipe = subprocess.PIPE
    with subprocess.Popen(work.command(), stdin=pipe, stdout=pipe) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        for line in worker.stdout:
            step, transaction, _ = Entry.of(line)
            if step is Step.COMMIT and transaction.number >= until:
                worker.kill() if kill else worker.stdin.close()
                break
        worker.stdout.read()
    return worker.returncode


@pytest.mark.long
def test_nothing_is_found_but_what_is_not_there(spark: Any, tmp_path: Path) -> None:
    deliveries(tmp_path).mkdir()
    with ThreadedCluster(topics={"campaign": 3}) as cluster:
        servers = cluster.bootstrap_servers
        for run, kill in enumerate((True, False)):
            first = Transaction(run, 10 * run)
            plan = Plan(records=30, partitions=3)
            work = Work(servers, "campaign", "campaign", plan, first, str(deliveries(tmp_path)))
            status = run_worker(work, first.number + 7, kill=kill)
            assert (status != 0) == kill
        lost = {
            "schema": 1,
            "stream": "s",
            "counter": 1,
            "time_ms": 1,
            "topic": "campaign",
            "partition": 0,
            "offset": 9999,
        }
        lines = [json.dumps({**lost, "event": event}) + "\n" for event in ("sent", "acked")]
        (deliveries(tmp_path) / "lost.jsonl").write_text("".join(lines))
        summary = asyncio.run(audited(spark, servers, "campaign", tmp_path))
    wrong = {found.kind: found.records for found in summary.found if found.kind.severity is Severity.CRITICAL}
    assert wrong == {Kind.MISSING: 1}
    assert summary.totals["acknowledged"] >= 30
    assert summary.transactions.keys() == {"committed", "aborted"}
