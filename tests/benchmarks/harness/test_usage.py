from __future__ import annotations

import os

from benchmarks.harness.usage import cpu_seconds_of


def test_the_cpu_seconds_of_a_process() -> None:
    used = cpu_seconds_of(os.getpid())
    assert used is None or used > 0
    assert cpu_seconds_of(2**22 + 1) is None
