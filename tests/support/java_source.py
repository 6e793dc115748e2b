"""Runs Java source files that call Kafka's own classes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from aioproducer.testing.kafka.kafka_libs import KafkaUnavailable, fetch_kafka, find_java

VERSION = "4.3.1"
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Flags for a fast start: most programs end before optimized code would help."""


def java_command(source: Path, *arguments: str, heap: str = "256m") -> list[str]:
    """The command that runs the file with Kafka's jars; skips the test where there is no JDK, but not in CI."""
    java, libs = _jdk()
    return [java, *QUICK, f"-Xmx{heap}", "-cp", f"{libs}{os.sep}*", str(source), *arguments]


def compile_java(source: Path, classes: Path) -> None:
    """Compiles the file with Kafka's jars into this directory; skips the test where there is no JDK, but not in CI."""
    java, libs = _jdk()
    javac = [java, *QUICK, "-m", "jdk.compiler/com.sun.tools.javac.Main", "--release", "11"]
    jars = os.pathsep.join(map(str, libs.glob("*.jar")))
    subprocess.run([*javac, "-cp", jars, "-d", str(classes), str(source)], check=True)


def _jdk() -> tuple[str, Path]:
    """The command for Java, and the directory of Kafka's jars."""
    try:
        java, libs = find_java(VERSION), fetch_kafka(VERSION)
        modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
        if "jdk.compiler" not in modules:
            raise KafkaUnavailable(f"{java} cannot run a source file. Install a JDK (default-jdk-headless).")
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"NOT CHECKED against Kafka's own classes: {missing}")
    return str(java), libs
