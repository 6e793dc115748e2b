from __future__ import annotations

import sys

from benchmarks.harness.environment import Environment, free_threaded, gil_enabled


def test_environment_is_this_machines() -> None:
    environment = Environment.now(loop="asyncio", broker="somewhere")
    assert environment.python.endswith(".".join(map(str, sys.version_info[:3])))
    assert ("Broker", "somewhere") in environment.lines()


def test_a_gil_is_off_only_where_it_can_be() -> None:
    environment = Environment.now(loop="asyncio", broker="somewhere")
    assert environment.python.startswith("free-threaded ") == free_threaded() == ("free-threading" in sys.version)
    assert free_threaded() or gil_enabled()
