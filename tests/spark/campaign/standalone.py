"""A standalone cluster of Spark, from the jars that PySpark brings: one master, two workers. Gone when you are done.

Spark runs a speculative copy of a task on another host only, so each worker has an address of its own.
"""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from aioproducer.testing.process_guard import ProcessGuard
from tests.support.polling import until

HOSTS = ("127.0.0.1", "127.0.0.2")
CORES = 2
"""Of each worker."""

_QUICK = os.environ.get("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
_SETTINGS = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": f"{_QUICK} -Dspark.deploy.maxExecutorRetries=-1",
}
"""With the default, an application is removed whose executors are lost too often."""


class Standalone:
    """``environment`` is that of all processes, and so of executors and Python workers."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._directory = directory
        self._environment = {**environment, **_SETTINGS}
        self._guard = ProcessGuard()
        self._started: list[subprocess.Popen[bytes]] = []
        self.master = ""

    @property
    def workers(self) -> list[int]:
        """Their process ids."""
        return [process.pid for process in self._started[1:]]

    def __enter__(self) -> Self:
        port = _free_port()
        self.master = f"spark://{HOSTS[0]}:{port}"
        try:
            self._start("master", "master.Master", "--host", HOSTS[0], "--port", str(port), "--webui-port", "0")
            self._wait_for("master", "I have been elected leader")
            for number, host in enumerate(HOSTS):
                name = f"worker-{number}"
                place = str(self._directory / name)
                options = ["--host", host, "--cores", str(CORES), "--memory", "1500m", "--work-dir", place]
                self._start(name, "worker.Worker", *options, "--webui-port", "0", self.master)
                self._wait_for(name, "Successfully registered with master")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._guard.close()
        for process in self._started:
            process.wait()

    def _start(self, name: str, main: str, *options: str) -> None:
        environment = [f"{key}={value}" for key, value in self._environment.items()]
        spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
        command = ["/usr/bin/env", *environment, spark_class, f"org.apache.spark.deploy.{main}", *options]
        with self._log(name).open("ab") as log:
            self._started.append(self._guard.spawn(command, cwd=self._directory, stdout=log, stderr=subprocess.STDOUT))

    def _wait_for(self, name: str, text: str) -> None:
        def says_so() -> bool:
            return text in self._log(name).read_text(errors="replace")

        process = self._started[-1]
        with suppress(TimeoutError):
            until(lambda: says_so() or process.poll() is not None, f"Spark's {name} did not start", timeout=120)
        if not says_so():
            raise RuntimeError(f"Spark's {name} did not start:\n{self._log(name).read_text(errors='replace')}")

    def _log(self, name: str) -> Path:
        path = self._directory / f"{name}.log"
        path.touch()
        return path


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOSTS[0], 0))
        port: int = taken.getsockname()[1]
        return port


def descendants(pid: int) -> list[int]:
    """The processes below a process, those nearest to it first."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                stat = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue  # it has ended meanwhile
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(name))
    found = [*children.get(pid, ())]
    for one in found:
        found += children.get(one, ())
    return found


def command_of(pid: int) -> str:
    """Empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
