"""Archives the classes of Kafka or of Spark, so that the hundreds of JVMs of the tests start in half the time.

    python scripts/archive_classes.py kafka    once for a release, in the cache beside its jars
    python scripts/archive_classes.py spark    once for an environment with PySpark, in the environment

Where Java or Maven is missing, or Java is too old, it does nothing: the tests say what is missing, or run as they are.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from aioproducer.testing.kafka.apache_kafka import ApacheKafka, KafkaUnavailable, fetch_kafka
from aioproducer.testing.kafka.class_archive import archiving, kafka_archive
from aioproducer.testing.kafka.kafka_libs import find_java
from aioproducer.testing.kafka.kafka_tools import QUICK

RELEASES = ("4.3.1", "3.9.2")
FIRST_JAVA = 13
"""The first that archives what a JVM has loaded."""

SPARK_ARCHIVE = Path(sys.prefix, "spark-classes.jsa")
"""tox.ini gives it to all JVMs of Spark."""

RESETTER = "org.apache.kafka.tools.StreamsResetter"
"""A tool that has a consumer and an admin client, as the others have one or the other."""


def archive_kafka(version: str) -> None:
    java, libs = find_java(version), fetch_kafka(version)
    brokers, tools = (kafka_archive(libs, java, use) for use in ("broker", "tools"))
    if brokers.exists() and tools.exists():
        return
    with archiving(brokers) as flags, ApacheKafka(version, jvm_flags=flags) as kafka:
        asyncio.run(kafka.tools.create_topic("t"))
        with archiving(tools) as tool_flags:
            reset = kafka.tools.run(
                *(RESETTER, "--bootstrap-server", kafka.bootstrap_servers, "--application-id", "a"),
                *("--input-topics", "t", "--force"),
                jvm_flags=(*QUICK, *tool_flags),
            )
            asyncio.run(reset)
        kafka.stop_node(1, timeout=300)  # it writes when it ends by itself; stop() kills it


def archive_spark() -> None:
    if SPARK_ARCHIVE.exists():
        return
    with archiving(SPARK_ARCHIVE) as flags, tempfile.TemporaryDirectory(prefix="aioproducer-spark-") as scratch:
        program = str(Path(__file__).with_name("typical_queries.py"))
        options = " ".join(("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *flags))
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": options}
        subprocess.run([sys.executable, program], cwd=scratch, env=environment, check=True)


def java_major() -> int:
    said = subprocess.run([find_java(), "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    match = re.search(r'version "(\d+)', said)
    return int(match[1]) if match else 0


def main(what: str) -> None:
    try:
        if java_major() < FIRST_JAVA:
            return
        if what == "spark":
            archive_spark()
        else:
            for version in RELEASES:
                archive_kafka(version)
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            raise
        sys.stderr.write(f"No archives of classes: {missing}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
