from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from aioproducer.testing.kafka.class_archive import archive_flags, archiving, kafka_archive
from aioproducer.testing.kafka.kafka_libs import fetch_kafka, find_java
from aioproducer.testing.pytest_kafka import require_kafka

MAIN = "org.apache.kafka.tools.TopicCommand"


def test_there_are_no_flags_without_an_archive(tmp_path: Path) -> None:
    assert archive_flags(tmp_path / "nosuch.jsa") == ()


def test_a_jvm_that_writes_no_archive_leaves_none(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    with archiving(archive):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.conformance
def test_a_jvm_takes_its_classes_from_the_archive_that_another_has_written(tmp_path: Path) -> None:
    require_kafka()
    java, libs = find_java(), fetch_kafka()

    def run(*flags: str) -> str:
        command = [java, "-XX:+UseSerialGC", *flags, "-Xlog:class+load:stdout", "-cp", f"{libs}/*", MAIN, "--version"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    archive = tmp_path / kafka_archive(libs, java, "tools").name
    with archiving(archive) as flags:
        assert not archive.exists()
        run(*flags)
    assert list(tmp_path.iterdir()) == [archive]
    (loaded,) = [line for line in run(*archive_flags(archive)).splitlines() if f"{MAIN} source:" in line]
    assert "shared objects file (top)" in loaded
