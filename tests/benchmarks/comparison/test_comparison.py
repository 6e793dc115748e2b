"""A whole comparison that ends early: nothing is lost, and nothing is left."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from pathlib import Path

import pytest

from aioproducer.broker import EmbeddedCluster
from benchmarks.__main__ import main
from benchmarks.comparison import comparison
from benchmarks.comparison.comparison import Kept, NoClients, Stage
from benchmarks.comparison.report import Report
from benchmarks.harness import results
from benchmarks.harness.environment import Environment
from benchmarks.harness.processes import python_command
from tests.benchmarks.comparison.reports import a_report, measured


def test_nothing_to_measure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def compared(options: object, works: object, progress: object, kept: Kept, stage: Stage) -> Report:
        raise NoClients("gone: not there")

    monkeypatch.setattr(comparison, "compare", compared)
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    assert main() == 1
    assert "gone: not there" in capsys.readouterr().err


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, asyncio.CancelledError])
def test_an_interrupted_run_is_not_lost(
    interruption: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "figures.json"

    async def compared(options: object, works: object, progress: object, kept: Kept, stage: Stage) -> Report:
        kept(
            dataclasses.replace(
                a_report(measured("ours", 1, 0.5)), environment=Environment.now(loop="asyncio", broker="")
            )
        )
        raise interruption

    monkeypatch.setattr(comparison, "compare", compared)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--json", str(file)])
    assert main() == 1
    printed = capsys.readouterr()
    assert printed.err == "Interrupted.\n"
    assert "| ours | 2,000 |" in printed.out
    monkeypatch.setattr(sys, "argv", ["benchmarks", "report", str(file)])
    assert main() == 1, "it is not whole"
    assert capsys.readouterr().out == printed.out


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM that could be caught")
async def test_terminated_it_leaves_no_process_and_keeps_what_there_is(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    endless = ["--works=stream-100", "--clients=aioproducer", "--rounds=10000", "--records=200", "--json", str(file)]
    command = python_command("from benchmarks.__main__ import main; sys.exit(main())")
    async with EmbeddedCluster() as cluster:
        process = await asyncio.create_subprocess_exec(
            *(*command, "--bootstrap-server", cluster.bootstrap_servers, *endless),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stderr is not None
        while b"round 2" not in (line := await process.stderr.readline()):
            assert line, "it ended by itself"
        process.terminate()
        said, complaints = await process.communicate()
    assert process.returncode == 1
    assert complaints.endswith(b"Interrupted.\n")
    assert b"- it was interrupted" in said
    assert len(results.read(file)["cases"][0]["runs"]) >= 2
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
