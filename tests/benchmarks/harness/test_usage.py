from __future__ import annotations

import os

from benchmarks.harness.usage import cpu_seconds_of


def test_what_a_process_has_used() -> None:
    used = cpu_seconds_of(os.getpid())
    assert used is None or used > 0
    assert cpu_seconds_of(2**22 + 1) is None
