"""The benchmarks' own CPU time, apart from that of other processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.harness.machine_cpu import MachineCpu, own_seconds

BURN = "import time\nwhile time.process_time() < 0.2: pass"
RUNS = f"{BURN}\nprint(flush=True); input()"
STARTS = "import subprocess, sys; subprocess.run(sys.argv[1:4]); subprocess.run(sys.argv[4:])"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked")
def test_own_is_what_a_child_has_started_whether_it_runs_or_has_ended() -> None:
    before = own_seconds()
    python = [sys.executable, "-c"]
    command = [*python, STARTS, *python, BURN, *python, RUNS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        used = own_seconds() - before
        child.communicate(b"\n")
    # The kernel counts in ticks of 10 ms, for each process by itself.
    assert used >= 0.4 - 3 * 0.01


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked")
def test_cpu_time_of_others_is_a_share() -> None:
    others = MachineCpu().others()
    assert others is not None
    assert others >= 0
