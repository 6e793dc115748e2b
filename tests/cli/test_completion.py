"""Completion of command lines in shells, as typer's scripts ask for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, environment


def answer(**variables: str) -> list[str]:
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=environment(**variables), check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


def in_bash(words: str) -> list[str]:
    position = str(len(words.split(" ")) - 1)
    return answer(_AIOPRODUCER_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=position)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("aioproducer re", ["read"]),
        ("aioproducer topics d", ["describe", "delete"]),
        ("aioproducer read t --fo", ["--follow"]),
        ("aioproducer send --format ", ["lines", "ndjson", "csv"]),
    ],
)
def test_commands_options_and_values(words: str, expected: list[str]) -> None:
    assert in_bash(words) == expected


def test_only_the_command_that_is_completed_is_imported() -> None:
    """A shell waits for it."""
    program = (
        "import sys; from aioproducer.cli import main\ntry: main()\nexcept SystemExit: pass\n"
        "print(*[name for name in sys.modules if name.startswith('aioproducer.')])"
    )
    words = {"COMP_WORDS": "aioproducer topics cr", "COMP_CWORD": "2", "_AIOPRODUCER_COMPLETE": "complete_bash"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment(**words))
    completed, imported = done.stdout.splitlines()
    assert completed == "create"
    assert "aioproducer.cli.commands.topics" in imported.split()
    assert not {"aioproducer.cli.commands.send", "aioproducer.broker.cluster", "aioproducer.cli.commands.perf"} & set(
        imported.split()
    )


def test_in_zsh() -> None:
    (said,) = answer(_AIOPRODUCER_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="aioproducer read t --fo")
    assert said.startswith('_arguments \'*: :(("--follow":"At the end, wait for more records')


def test_in_fish_each_has_one_line() -> None:
    ask = {"_AIOPRODUCER_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    said = answer(**ask, _TYPER_COMPLETE_ARGS="aioproducer send --")
    assert {"--format", "--key-field", "--failed"} <= {line.partition("\t")[0] for line in said}
    assert all(line.startswith("--") for line in said)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_a_real_bash_completes(tmp_path: Path) -> None:
    command = tmp_path / "aioproducer"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m aioproducer "$@"\n')
    command.chmod(0o755)
    script = (
        f'PATH={tmp_path}:$PATH; eval "$(_AIOPRODUCER_COMPLETE=source_bash aioproducer)"; complete -p aioproducer;'
        " COMP_WORDS=(aioproducer topics cr); COMP_CWORD=2; _aioproducer_completion aioproducer;"
        ' echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment(), check=False)
    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        ["complete -o default -F _aioproducer_completion aioproducer", "create"],
    )
