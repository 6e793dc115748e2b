from __future__ import annotations

import sys

from benchmarks.harness.environment import Environment


def test_environment_is_this_machines() -> None:
    environment = Environment.now(loop="asyncio", broker="somewhere")
    assert environment.python.endswith(".".join(map(str, sys.version_info[:3])))
    assert ("Broker", "somewhere") in environment.lines()
