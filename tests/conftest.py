"""Settings of all tests: the marker ``once``, and the effort of Hypothesis."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, is_hypothesis_test, settings
from hypothesis import strategies as st

HERE = Path(__file__).parent
MARKED_FOLDERS = {
    "conformance": "conformance",
    "spark": "spark",
    "typing": "types",
    **dict.fromkeys(("benchmarks", "cli", "docs", "examples", "packaging", "scripts"), "once"),
}
"""Folders of which every test has a marker (pyproject.toml says what it means)."""

# The benchmarks are no part of the package. At the end: the installed package comes before the checkout.
sys.path.append(str(HERE.parent))

# On a developer's machine the examples differ from run to run, so that many runs explore more than one would; in CI
# they are always the same, so that a failure is of the change at hand. No example is held to a time, since a busy
# machine says nothing about the code.
settings.register_profile(
    "aioproducer",
    max_examples=50,
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    phases=[phase for phase in Phase if phase is not Phase.explain],  # it traces each line, which takes minutes
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("aioproducer")


# It is logged once per process, and would be in the log of whichever test starts the first producer. The tests of types
# run without the package.
if importlib.util.find_spec("aioproducer") is not None:
    importlib.import_module("aioproducer.build_info").say_if_interpreted()


# Every full run of the garbage collector, which many tests ask for, visits all objects that are not frozen: those of
# 19,000 tests, and of the reports about them.


@given(st.none())
def _an_example(nothing: None) -> None:
    """Hypothesis makes its random generator now: it would find no referrers among frozen objects."""


def pytest_collection_finish() -> None:
    _an_example()
    gc.collect()
    gc.freeze()


_ended = itertools.count(1)


def pytest_runtest_logfinish() -> None:
    if next(_ended) % 50 == 0:
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if marker := MARKED_FOLDERS.get(item.path.relative_to(HERE).parts[0]):
            item.add_marker(marker)
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("property")
