"""An environment for reports whose figures are made up."""

from __future__ import annotations

from benchmarks.harness.environment import Environment

ENVIRONMENT = Environment("a day", "c0ffee", "a machine", "a system", 0.5, "Python", "uvloop", "a broker", 0.01, 1.0)
