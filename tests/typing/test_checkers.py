"""mypy and pyright, both strict, find nothing in right.py, and in wrong.py what is marked there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RIGHT, WRONG = HERE / "right.py", HERE / "wrong.py"

Found = dict[tuple[str, int], str]
"""By file and line, everything that was said there."""

pytestmark = pytest.mark.timeout(600)  # they read every module that is imported, from the standard library on
if "CI" not in os.environ:
    pytest.importorskip("mypy")
    pytest.importorskip("pyright")


def run(*command: str) -> str:
    """What the checker writes; it exits with 1 because it has found something."""
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}  # else it looks for newer versions of itself
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 1, f"{command[0]} ended with {done.returncode}: {done.stdout}"
    return done.stdout


def mypy() -> Found:
    # Not with the configuration of this project: as a user of the package.
    options = ["--strict", "--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
    output = run(
        "mypy",
        *options,
        "--explicit-package-bases",
        "--no-pretty",
        "--cache-dir=.mypy_cache/of_users",
        str(RIGHT),
        str(WRONG),
    )
    found: Found = defaultdict(str)
    for file, line, text in re.findall(r"^(.+?):(\d+): (?:error|note): (.*)$", output, re.MULTILINE):
        found[Path(file).name, int(line)] += f"{text}\n"
    return found


def pyright() -> Found:
    output = json.loads(run("pyright", "--pythonpath", sys.executable, "--outputjson"))
    found: Found = defaultdict(str)
    for each in output["generalDiagnostics"]:
        found[Path(each["file"]).name, each["range"]["start"]["line"] + 1] += f"{each['message']}\n"
    assert output["summary"]["filesAnalyzed"] >= 2
    return found


def marks() -> Iterator[tuple[int, str]]:
    for number, line in enumerate(WRONG.read_text().splitlines(), 1):
        if mark := re.search(r"# wrong: (\S+)", line):
            yield number, mark[1]


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_checker_finds_the_marked_lines_only(checker: Callable[[], Found]) -> None:
    marked = {(WRONG.name, number): pattern for number, pattern in marks()}
    assert marked
    found = checker()
    assert {place: text for place, text in found.items() if place not in marked} == {}, "false alarms"
    assert [place for place in marked if place not in found] == [], "not found"
    assert {place: text for place, text in found.items() if not re.search(marked[place], text)} == {}
