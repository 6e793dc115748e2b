from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aioproducer.testing.kafka.kafka_libs import KafkaUnavailable, cache_directory, fetch_kafka, find_java

Install = Callable[[str, str], None]

# Only builtins of the shell: PATH contains nothing but the programs of a test.
TARGET = 'for argument; do case "$argument" in -DoutputDirectory=*) target="${argument#*=}";; esac; done\n'
MAVEN = TARGET + 'echo run >> "$AIOPRODUCER_CACHE/runs"; /bin/mkdir "$target"\n'
MAVEN += "for name in kafka_2.13 kafka-tools slf4j-simple reload4j; do : > $target/$name-0.0.1.jar; done"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIOPRODUCER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """An otherwise empty PATH, and a way to put programs on it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def install(name: str, script: str) -> None:
        program = programs / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    return install


def java(version: str) -> str:
    return f"""echo 'openjdk version "{version}" 2025-04-15' >&2"""


def test_cache_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIOPRODUCER_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache_directory() == Path("/home/somebody/.cache/aioproducer")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_directory() == Path("/xdg/aioproducer")
    monkeypatch.setenv("AIOPRODUCER_CACHE", "/chosen")
    assert cache_directory() == Path("/chosen")


@pytest.mark.parametrize("version", ["4.3", "latest", "../4.3.1", "4.3.1 "])
def test_a_version_is_three_numbers(version: str) -> None:
    with pytest.raises(ValueError, match="three numbers"):
        fetch_kafka(version)


@pytest.mark.usefixtures("install")
def test_missing_java_is_named(cache: Path) -> None:
    with pytest.raises(KafkaUnavailable, match=r"no 'java' on PATH. Install a Java runtime, 17 or newer"):
        fetch_kafka("4.3.1")
    assert not cache.exists()


def test_java_home_goes_before_path(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("java", java("17.0.15"))
    assert find_java("4.3.1") == str(tmp_path / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(KafkaUnavailable, match="JAVA_HOME"):
        find_java("4.3.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert find_java("4.3.1") == str(tmp_path / "bin" / "java")


@pytest.mark.parametrize(("said", "found"), [("11.0.2", 11), ("1.8.0_402", 8)])
def test_old_java_is_named(install: Install, said: str, found: int) -> None:
    install("java", java(said))
    with pytest.raises(KafkaUnavailable, match=rf"needs Java 17, but .*bin/java is Java {found}\. Install"):
        find_java("4.3.1")


def test_kafka_3_runs_on_java_11(install: Install, tmp_path: Path) -> None:
    install("java", java("11.0.2"))
    assert find_java("3.9.2") == str(tmp_path / "bin" / "java")


@pytest.mark.usefixtures("cache")
def test_missing_maven_is_named(install: Install) -> None:
    install("java", java("17.0.15"))
    with pytest.raises(KafkaUnavailable, match=r"no 'mvn' on PATH. Install Apache Maven"):
        fetch_kafka("4.3.1")


def test_jars_are_fetched_once_for_several_callers(install: Install, cache: Path) -> None:
    install("java", java("17.0.15"))
    install("mvn", MAVEN)
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(fetch_kafka, ["4.3.1"] * 4))
    assert len(found) == 1
    libs = found.pop()
    assert "kafka_2.13-0.0.1.jar" in [jar.name for jar in libs.iterdir()]
    assert fetch_kafka("4.3.1") == libs
    assert (cache / "runs").read_text() == "run\n"
    assert fetch_kafka("3.9.2") != libs


def test_a_cached_release_needs_no_programs(install: Install, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("java", java("17.0.15"))
    install("mvn", MAVEN)
    libs = fetch_kafka("4.3.1")
    monkeypatch.setenv("PATH", os.devnull)
    assert fetch_kafka("4.3.1") == libs


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'Could not resolve dependencies'; exit 1", r"exit status 1\):\nCould not resolve dependencies"),
        (TARGET + '/bin/mkdir "$target"', r"exit status 0\)"),
    ],
)
def test_a_failed_fetch_leaves_nothing(install: Install, cache: Path, script: str, message: str) -> None:
    install("java", java("17.0.15"))
    install("mvn", script)
    with pytest.raises(KafkaUnavailable, match=message):
        fetch_kafka("4.3.1")
    assert [left.name for left in cache.iterdir()] == ["fetch.lock"]


def test_a_fetch_that_hangs_is_ended(install: Install, cache: Path) -> None:
    install("java", java("17.0.15"))
    install("mvn", "/bin/sleep 1000")
    with pytest.raises(KafkaUnavailable, match="not done in time"):
        fetch_kafka("4.3.1", timeout=0.1)
    assert [left.name for left in cache.iterdir()] == ["fetch.lock"]
