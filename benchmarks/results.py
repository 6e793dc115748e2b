"""The file that figures are kept in: JSON, each run in a line of its own, so that two of them can be compared.

It holds what was measured and nothing that follows from it: tables, ratios and verdicts are made anew by whoever reads
it (``python -m benchmarks report``).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

LINE = 600
"""What fits into so many characters is in one line."""
DIGITS = 6
"""Of a figure: no clock here tells more."""


def write(path: Path, results: dict[str, Any]) -> None:
    """Replaces the file in one step, so that whoever is interrupted leaves a whole one."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(_text(_rounded(results)) + "\n", encoding="utf-8")
    unfinished.replace(path)


def read(path: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def _text(value: Any, indent: str = "") -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= LINE or not isinstance(value, dict | list):
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_text(item, inner)}" for name, item in value.items()]
        return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _text(item, inner) for item in value) + f"\n{indent}]"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
