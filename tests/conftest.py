"""What every test shares: which tests need a real Kafka, and how hard hypothesis tries."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

CONFORMANCE = Path(__file__).parent / "conformance"

# The benchmarks are no part of the package. At the end: the installed package comes before the checkout.
sys.path.append(str(Path(__file__).parents[1]))

# On a developer's machine the examples differ from run to run, so that many runs explore more than one would; in CI
# they are always the same, so that a failure is of the change at hand. No example is held to a time, since a busy
# machine says nothing about the code.
settings.register_profile(
    "aioproducer",
    max_examples=50,
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("aioproducer")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(CONFORMANCE):
            item.add_marker(pytest.mark.conformance)
