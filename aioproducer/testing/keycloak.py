"""A real Keycloak on 127.0.0.1 for tests: an identity provider with one realm, as Maven Central has it.

    with Keycloak(realm) as keycloak:
        keycloak.token_url, keycloak.jwks_url

Needs Java 17 and, the first time, Maven. The first time it is also built, which takes half a minute. It starts in half
a minute or more, as its database is in memory and empty. When this process ends in any way, it ends too.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from aioproducer.testing.kafka.kafka_libs import KafkaFailed, KafkaUnavailable, cache_directory, find_java
from aioproducer.testing.process_guard import ProcessGuard

VERSION: Final = "26.4.0"

_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_BUILD: Final = ("build", "--db=dev-mem", "--health-enabled=false")


def fetch_keycloak(version: str = VERSION, *, timeout: float = 600.0) -> Path:
    """The directory of a built Keycloak (170 MB); raises ``KafkaUnavailable`` when Maven or Java is missing."""
    home = cache_directory() / f"keycloak-{version}"
    if home.is_dir():
        return home
    find_java()
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable(f"Keycloak {version} cannot be fetched: there is no 'mvn' on PATH")
    home.parent.mkdir(parents=True, exist_ok=True)
    artifact = f"org.keycloak:keycloak-quarkus-dist:{version}:zip"
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=home.parent) as scratch:
        fetch = [maven, "--batch-mode", "--quiet", _COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={scratch}"]
        _run(fetch, Path(scratch), timeout)
        with zipfile.ZipFile(Path(scratch, f"keycloak-quarkus-dist-{version}.zip")) as packed:
            packed.extractall(scratch)
        unpacked = Path(scratch, f"keycloak-{version}")
        script = unpacked / "bin" / "kc.sh"
        script.chmod(0o755)
        _run([str(script), *_BUILD], unpacked, timeout)
        try:
            os.rename(unpacked, home)
        except OSError:
            if not home.is_dir():  # otherwise another process was faster
                raise
    return home


def _run(command: list[str], directory: Path, timeout: float) -> None:
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


class Keycloak:
    """Runs with the realm ``realm``, which is a representation as Keycloak exports it."""

    def __init__(self, realm: Mapping[str, Any], *, start_timeout: float = 240.0) -> None:
        self._realm = realm
        self._start_timeout = start_timeout
        self._directory: Path | None = None
        self._guard: ProcessGuard | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self._port}/realms/{self._realm['realm']}"

    @property
    def token_url(self) -> str:
        return f"{self.issuer}/protocol/openid-connect/token"

    @property
    def jwks_url(self) -> str:
        return f"{self.issuer}/protocol/openid-connect/certs"

    def start(self) -> None:
        """Returns when it answers. Raises ``KafkaUnavailable``, or ``KafkaFailed`` with the end of its log."""
        home = fetch_keycloak()
        directory = self._directory = Path(tempfile.mkdtemp(prefix="aioproducer-keycloak-"))
        try:
            guard = self._guard = ProcessGuard(directory)
            for part in ("bin", "conf", "lib", "providers", "themes"):
                (directory / part).symlink_to(home / part)
            realms = directory / "data" / "import"
            realms.mkdir(parents=True)
            (realms / "realm.json").write_text(json.dumps(self._realm))
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self._port = free.getsockname()[1]
            with (directory / "log").open("wb") as log:
                self._process = guard.spawn(self._command(directory), cwd=directory, stdout=log, stderr=log)
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _command(self, directory: Path) -> list[str]:
        """That of ``kc.sh start``, which would start a process of its own."""
        return [
            find_java(),
            *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Dkc.home.dir={directory}",
            f"-Djboss.server.config.dir={directory}/conf",
            "-Djava.util.logging.manager=org.jboss.logmanager.LogManager",
            "-Djava.util.concurrent.ForkJoinPool.common.threadFactory="
            "io.quarkus.bootstrap.forkjoin.QuarkusForkJoinWorkerThreadFactory",
            *("-cp", f"{directory}/lib/quarkus-run.jar", "io.quarkus.bootstrap.runner.QuarkusEntryPoint"),
            *("start", "--optimized", "--import-realm", "--cache=local", "--http-enabled=true"),
            *("--http-host=127.0.0.1", f"--http-port={self._port}", f"--hostname=http://127.0.0.1:{self._port}"),
        ]

    def _wait(self) -> None:
        assert self._process is not None
        assert self._directory is not None
        deadline = time.monotonic() + self._start_timeout
        while True:
            try:
                with urllib.request.urlopen(self.jwks_url, timeout=5):
                    return
            except (urllib.error.URLError, OSError) as error:
                said = (self._directory / "log").read_text(errors="replace").splitlines()[-20:]
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise KafkaFailed(f"Keycloak does not answer ({error}):\n" + "\n".join(said)) from None
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
