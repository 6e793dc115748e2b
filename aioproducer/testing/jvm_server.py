"""A server of another project in a JVM on 127.0.0.1, from a zip of Maven Central."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aioproducer.testing.kafka.kafka_libs import KafkaFailed, KafkaUnavailable, cache_directory, find_java
from aioproducer.testing.process_guard import ProcessGuard
from aioproducer.testing.server_process import free_port, last_lines

_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def fetch_zip(
    name: str, artifact: str, *, timeout: float, finish: Callable[[Path], Path] = lambda unpacked: unpacked
) -> Path:
    """The directory ``name`` in the cache, with the contents of a zip, fetched on the first call.

    ``finish`` gets the unpacked files, may work on them, and returns the directory to keep. Raises ``KafkaUnavailable``
    when Maven or Java is missing, or when the fetch fails.
    """
    home = cache_directory() / name
    if home.is_dir():
        return home
    find_java()
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable(f"{name} cannot be fetched: there is no 'mvn' on PATH")
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=home.parent) as directory:
        scratch, unpacked = Path(directory), Path(directory, "unpacked")
        fetch = [maven, "--batch-mode", "--quiet", _COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={scratch}"]
        run_to_end(fetch, scratch, timeout)
        (packed,) = scratch.glob("*.zip")
        with zipfile.ZipFile(packed) as contents:
            contents.extractall(unpacked)
        kept = finish(unpacked)
        try:
            os.rename(kept, home)
        except OSError:
            if not home.is_dir():  # otherwise another process was faster
                raise
    return home


def run_to_end(command: Sequence[str], directory: Path, timeout: float) -> None:
    """Raises ``KafkaUnavailable`` if the command fails, or takes more than ``timeout`` seconds."""
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise KafkaUnavailable(f"{command[0]} was not done within {timeout:.0f} s") from None
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise KafkaUnavailable(f"{command[0]} ended with exit status {done.returncode}:\n{said}")


class JvmServer(ABC):
    """Runs on a free port, with a directory of its own. When this process ends in any way, it ends, too."""

    name: str

    def __init__(self, *, start_timeout: float) -> None:
        self._start_timeout = start_timeout
        self._directory: Path | None = None
        self._guard: ProcessGuard | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    @property
    @abstractmethod
    def ready_url(self) -> str:
        """Answers when the server does."""

    @abstractmethod
    def _prepare(self, directory: Path) -> Sequence[str]:
        """Fills the directory that the server runs in, and returns the command that starts it, on ``self._port``."""

    def start(self) -> None:
        """Returns when it answers. Raises ``KafkaUnavailable``, or ``KafkaFailed`` with the end of its log."""
        directory = self._directory = Path(tempfile.mkdtemp(prefix=f"aioproducer-{self.name.lower()}-"))
        try:
            guard = self._guard = ProcessGuard(directory)
            self._port = free_port()
            command = self._prepare(directory)
            with (directory / "log").open("wb") as log:
                self._process = guard.spawn(command, cwd=directory, stdout=log, stderr=log)
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _wait(self) -> None:
        assert self._process is not None
        assert self._directory is not None
        deadline = time.monotonic() + self._start_timeout
        while True:
            try:
                with urllib.request.urlopen(self.ready_url, timeout=5):
                    return
            except (urllib.error.URLError, OSError) as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    said = last_lines(self._directory / "log")
                    raise KafkaFailed(f"{self.name} does not answer ({error}):\n{said}") from None
            time.sleep(0.2)

    def stop(self) -> None:
        """Ends it and removes its data; harmless when nothing runs."""
        if self._guard is not None:
            self._guard.close()
        if self._process is not None:
            self._process.wait()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._guard = self._process = self._directory = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
