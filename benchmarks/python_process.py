"""The command of a process that runs a part of the benchmarks."""

from __future__ import annotations

import sys
from pathlib import Path

_CHECKOUT = str(Path(__file__).parents[1])


def python_command(statement: str, *arguments: str) -> list[str]:
    """Runs a statement, with its arguments in ``sys.argv[1:]``.

    What is installed goes before the checkout: only an installed aioproducer is compiled.
    """
    return [sys.executable, "-P", "-c", f"import sys; sys.path.append({_CHECKOUT!r}); {statement}", *arguments]
