"""The command's options and errors; tests/conformance/exactly_once/test_outbox.py has it relay."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from aioproducer.cli.commands.outbox import DATABASE
from aioproducer.outbox import Outbox
from tests.cli.conftest import Run


def test_the_schema(run: Run) -> None:
    result = run("outbox", "--print-schema")
    assert (result.status, result.err) == (0, "")
    assert result.out == Outbox().schema()
    assert run("outbox", "--print-schema", "--no-notify", "--table", "a.b").out == Outbox("a.b").schema(notify=False)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, f"no database is named: use --database or the environment variable {DATABASE}"),
        (["--print-schema", "--table", "a.b.c"], 2, "'a.b.c' is no name of a table"),
        (["--database", "postgresql://127.0.0.1/x", "--table", ""], 2, "'' is no name of a table"),
        (["--database", "postgresql://127.0.0.1/x", "--name", ""], 2, "name is empty"),
        (["--database", "postgresql://127.0.0.1/x", "--begin", "never"], 2, "'never' is not one of"),
        (["--database", "postgresql://127.0.0.1/x", "-X", "transactional.id=x"], 2, "it is the name of the relay"),
        (["--database", "postgresql://127.0.0.1/x", "-X", "no.such=x"], 2, "no.such"),
        (["--database", "mysql://127.0.0.1/x"], 2, "the address of the database is wrong"),
    ],
)
def test_what_is_wrong(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int, message: str
) -> None:
    monkeypatch.delenv(DATABASE, raising=False)
    result = run("outbox", *arguments)
    assert result.status == status
    assert message in " ".join(result.err.replace("│", " ").split())


def test_the_driver_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Any = None
    monkeypatch.setitem(sys.modules, "asyncpg", nothing)
    monkeypatch.setenv(DATABASE, "postgresql://127.0.0.1/x")
    result = run("outbox")
    assert result.status == 2
    assert "the relay needs asyncpg: install aioproducer[outbox]" in result.err
