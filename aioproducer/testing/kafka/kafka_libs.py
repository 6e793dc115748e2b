"""The jars of Apache Kafka, which Maven fetches once into a cache, and the Java that runs them.

A Kafka release is two artifacts and their dependencies: ``org.apache.kafka:kafka_2.13`` (the broker) and
``org.apache.kafka:kafka-tools`` (the command line tools). Maven resolves them with the user's settings (mirrors,
proxies, credentials), so this module names no registry.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

DEFAULT_VERSION: Final = "4.3.1"

_MAVEN_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

# Kafka logs through slf4j 1.7. The 4.x artifacts contain no binding for it, and 3.9 has one for log4j 1. With
# slf4j-simple in both, the same system properties configure logging, and all output goes to stderr, never to a file.
# The 3.9 broker still registers an MBean of log4j 1, so that library stays, without its binding.
_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>aioproducer.testing</groupId>
  <artifactId>kafka-runtime</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY: Final = """\
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>
      <exclusions>
        <exclusion>
          <groupId>{excluded_group}</groupId>
          <artifactId>{excluded_artifact}</artifactId>
        </exclusion>
      </exclusions>
    </dependency>"""


class Artifact(NamedTuple):
    """The coordinates of a library in Maven; ``alone`` leaves out its dependencies."""

    group: str
    name: str
    version: str
    alone: bool = False


SPARK_CONNECTOR: Final = [
    Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0", alone=True),
    Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", alone=True),
    Artifact("org.apache.kafka", "kafka-clients", "3.9.1", alone=True),
    Artifact("org.apache.commons", "commons-pool2", "2.12.0", alone=True),
]
"""Spark's own Kafka source and sink, for PySpark 4.2, and those dependencies that Spark does not contain."""

SPARK_AVRO: Final = [Artifact("org.apache.spark", "spark-avro_2.13", "4.1.1", alone=True)]
"""Spark's own functions for Avro, for PySpark 4.1; 4.2 takes them as well."""


class KafkaUnavailable(RuntimeError):
    """This machine cannot run Kafka; the message says what is missing and what to install."""


class KafkaFailed(RuntimeError):
    """A Kafka process ended too early or did not answer in time; the message ends with its last output."""


def cache_directory() -> Path:
    """``$AIOPRODUCER_CACHE``, else ``$XDG_CACHE_HOME/aioproducer``, else ``~/.cache/aioproducer``."""
    if chosen := os.environ.get("AIOPRODUCER_CACHE"):
        return Path(chosen).expanduser()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "aioproducer"
    return Path.home() / ".cache" / "aioproducer"


def fetch_kafka(version: str = DEFAULT_VERSION, *, timeout: float = 600.0) -> Path:
    """The directory with all jars of this Kafka version (about 60 MB), fetched on the first call.

    The directory appears complete or not at all. If several processes call this at once, one of them fetches.
    ``timeout`` is in seconds and includes waiting for another process that is fetching. Raises ``KafkaUnavailable``
    when Maven or Java is missing, or when the fetch fails.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"a Kafka version is three numbers, such as {DEFAULT_VERSION}: got {version!r}")
    artifacts = [
        Artifact("org.apache.kafka", "kafka_2.13", version),
        Artifact("org.apache.kafka", "kafka-tools", version),
        Artifact("org.slf4j", "slf4j-simple", "1.7.36"),
    ]
    if version.startswith("3."):
        artifacts.append(Artifact("ch.qos.reload4j", "reload4j", "1.2.25"))
    return fetch_jars(f"kafka-{version}", artifacts, java=version, timeout=timeout)


def fetch_jars(
    name: str, artifacts: Sequence[Artifact], *, java: str = DEFAULT_VERSION, timeout: float = 600.0
) -> Path:
    """The directory with the jars of these artifacts and their dependencies; see :func:`fetch_kafka`.

    ``name`` is that of the directory, and appears in messages. Java must be new enough for the Kafka version ``java``.
    """
    pom = _POM.format(dependencies="\n".join(map(_dependency, artifacts)))
    # The name contains a hash of the pom, so a changed pom never uses the jars of the old one.
    libs = cache_directory() / f"{name}-{hashlib.sha256(pom.encode()).hexdigest()[:8]}"
    if libs.is_dir():
        return libs
    find_java(java)
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable(
            f"{name} is not in the cache ({libs.parent}) and cannot be fetched: there is no 'mvn' on PATH. "
            "Install Apache Maven (Debian, Ubuntu: apt install maven; macOS: brew install maven)."
        )
    deadline = time.monotonic() + timeout
    libs.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive(libs.parent / "fetch.lock", deadline):
        if not libs.is_dir():
            _fetch(maven, pom, libs, [artifact.name for artifact in artifacts], deadline)
    return libs


def fetch_spark_connector() -> Path:
    """The directory with the jars of Spark's Kafka connector, for ``spark.jars``; see :func:`fetch_kafka`."""
    return fetch_jars("spark-kafka-4.2.0", SPARK_CONNECTOR)


def fetch_spark_avro() -> Path:
    """The directory with the jar of Spark's functions for Avro; see :func:`fetch_kafka`."""
    return fetch_jars("spark-avro-4.1.1", SPARK_AVRO)


def find_java(version: str = DEFAULT_VERSION) -> str:
    """The ``java`` for this Kafka version: that of ``$JAVA_HOME``, else the one on ``PATH``.

    Raises ``KafkaUnavailable`` when there is none or it is too old.
    """
    needed = 17 if int(version.partition(".")[0]) >= 4 else 11
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    install = f"Install a Java runtime, {needed} or newer (Debian, Ubuntu: apt install default-jre-headless)."
    if java is None:
        where = f"in $JAVA_HOME/bin ({home})" if home else "on PATH"
        raise KafkaUnavailable(f"Apache Kafka {version} needs Java, and there is no 'java' {where}. {install}")
    found = _java_major(java)
    if found < needed:
        raise KafkaUnavailable(f"Apache Kafka {version} needs Java {needed}, but {java} is Java {found}. {install}")
    return java


@functools.cache
def _java_major(java: str) -> int:
    """17 for ``openjdk version "17.0.15"``, 8 for ``"1.8.0_402"``; 0 if the output names no version."""
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(match[1]) if match else 0


def _dependency(artifact: Artifact) -> str:
    excluded = ("*", "*") if artifact.alone else ("org.slf4j", "slf4j-reload4j")
    return _DEPENDENCY.format(
        group=artifact.group,
        artifact=artifact.name,
        version=artifact.version,
        excluded_group=excluded[0],
        excluded_artifact=excluded[1],
    )


def _fetch(maven: str, pom: str, libs: Path, names: Sequence[str], deadline: float) -> None:
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=libs.parent) as scratch:
        pom_file, target = Path(scratch, "pom.xml"), Path(scratch, "libs")
        pom_file.write_text(pom, encoding="utf-8")
        command = [maven, "--batch-mode", "--quiet", "--file", str(pom_file), _MAVEN_GOAL]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={target}"]
        with subprocess.Popen(
            command,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
            except BaseException as error:
                # mvn is a shell script or a launcher that starts a JVM: kill the whole group.
                os.killpg(process.pid, 9)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise KafkaUnavailable(f"Maven was not done in time fetching {libs.name}") from None
                raise
        if process.returncode != 0 or not all(any(target.glob(f"{name}-*.jar")) for name in names):
            tail = "\n".join(said.strip().splitlines()[-20:])
            raise KafkaUnavailable(f"Maven could not fetch {libs.name} (exit status {process.returncode}):\n{tail}")
        os.rename(target, libs)


@contextmanager
def _exclusive(path: Path, deadline: float) -> Iterator[None]:
    """Hold a file lock, which the system releases when this process ends in any way."""
    import fcntl  # exists on POSIX only; the module can be imported everywhere

    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise KafkaUnavailable(f"another process held {path} for too long while fetching Kafka") from None
                time.sleep(0.2)
        yield
