"""The command of a process that runs a part of the benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path

_CHECKOUT = str(Path(__file__).parents[2])


def python_command(statement: str, *arguments: str, checkout_first: bool = False) -> list[str]:
    """Runs a statement, with its arguments in ``sys.argv[1:]``.

    What is installed goes before the checkout, if it is not to be otherwise: only an installed aioproducer is compiled.
    """
    place = "insert(0, " if checkout_first else "append("
    return [sys.executable, "-P", "-c", f"import sys; sys.path.{place}{_CHECKOUT!r}); {statement}", *arguments]
