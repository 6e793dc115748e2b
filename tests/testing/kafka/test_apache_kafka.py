from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aioproducer.testing.kafka.apache_kafka import (
    QUICK_FAILOVER,
    ApacheKafka,
    KafkaFailed,
    KafkaTools,
    KafkaUnavailable,
)
from aioproducer.testing.kafka.kafka_node import known_brokers
from aioproducer.testing.process_guard import ProcessGuard
from aioproducer.testing.pytest_kafka import require_kafka, running_kafka
from tests.support.kafka_releases import RELEASES

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]


def port(kafka: ApacheKafka, node_id: int = 1) -> int:
    return int(kafka.bootstrap_servers.split(",")[node_id - 1].rpartition(":")[2])


def refuses(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


def entries(directory: Path) -> list[Path]:
    return list(directory.iterdir())


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of temporary directories."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("version", RELEASES)
def test_nothing_is_left_after_stop(version: str, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    working = temporary / "working"
    working.mkdir()
    monkeypatch.chdir(working)
    with running_kafka(version) as kafka:
        pid, used = kafka.pid(1), port(kafka)
        assert kafka.known_brokers(1) == {1}
        assert kafka.is_running(1)
        assert kafka.data_directory(1).is_dir()
        assert "Kafka Server started" in kafka.log_tail(1)
    assert not is_alive(pid)
    assert refuses(used)
    assert entries(working) == []
    assert entries(temporary) == [working]
    kafka.stop()


async def test_async_context_manager_and_configs() -> None:
    require_kafka()
    async with ApacheKafka(configs={"num.partitions": 7, "auto.create.topics.enable": False}) as kafka:
        pid = kafka.pid(1)
        with pytest.raises(RuntimeError, match="started already"):
            kafka.start()
        with pytest.raises(KafkaFailed, match="does not exist"):
            await kafka.tools.describe_topic("t")
        await kafka.tools.run(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", kafka.bootstrap_servers, "--create", "--topic", "t"),
        )
        assert len((await kafka.tools.describe_topic("t")).partitions) == 7
    assert not is_alive(pid)


@pytest.mark.parametrize("version", RELEASES)
async def test_further_listeners(version: str) -> None:
    plain = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_me="secret";'
    configs = {
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": plain,
    }
    with running_kafka(version, configs=configs, listeners={"SECURE": "SASL_PLAINTEXT"}) as kafka:
        secure = kafka.bootstrap_servers_of("SECURE")
        assert secure != kafka.bootstrap_servers
        login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{}";'
        configs = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        known = KafkaTools(kafka.libs, secure, configs={**configs, "sasl.jaas.config": login.format("secret")})
        unknown = KafkaTools(kafka.libs, secure, configs={**configs, "sasl.jaas.config": login.format("guess")})
        await known.create_topic("t")
        await known.console_producer("t", [("key", "value")])
        assert len(await known.console_consumer("t", max_messages=1)) == 1
        await known.producer_performance("t", num_records=1, record_size=1)
        assert await known.get_offsets("t") == {0: 2}
        with pytest.raises(KafkaFailed, match="SaslAuthenticationException"):
            await unknown.console_producer("t", [("key", "value")])


def test_three_nodes() -> None:
    with running_kafka(nodes=3, configs=QUICK_FAILOVER) as kafka:
        everyone = {1, 2, 3}
        pids = [kafka.pid(node_id) for node_id in everyone]
        assert [kafka.known_brokers(node_id) for node_id in everyone] == [everyone] * 3

        kafka.kill_node(2)
        assert not kafka.is_running(2)
        # The port stays reserved, so that the node can use it again.
        assert refuses(port(kafka, 2))
        kafka.start_node(2)

        kafka.stop_node(3)
        assert "Transition from SHUTTING_DOWN to SHUTDOWN" in kafka.log_tail(3, lines=200)
        assert kafka.known_brokers(1) >= {1, 2}
        kafka.start_node(3)
        assert 3 in kafka.known_brokers(3)

        kafka.pause_node(1)
        with pytest.raises(TimeoutError):
            known_brokers(port(kafka, 1), timeout=0.1)
        kafka.resume_node(1)
        assert 1 in known_brokers(port(kafka, 1), timeout=30)

        pids += [kafka.pid(node_id) for node_id in everyone]
        kafka.pause_node(2)
    assert not any(map(is_alive, pids))


def test_a_broken_config_shows_the_log(temporary: Path) -> None:
    require_kafka()
    kafka = ApacheKafka(configs={"num.partitions": "many"})
    with pytest.raises(KafkaFailed, match=r"(?s)formatting node 1 ended with exit status 1:.*num\.partitions"):
        kafka.start()
    broken = ApacheKafka(configs={"authorizer.class.name": "no.such.Authorizer"})
    with pytest.raises(KafkaFailed, match=r"(?s)node 1 ended with exit status 1:.*no\.such\.Authorizer"):
        broken.start()
    assert entries(temporary) == []


def test_too_late_is_an_error(temporary: Path) -> None:
    require_kafka()
    with pytest.raises(KafkaFailed, match=r"took too long|did not serve within 0.1 s"):
        ApacheKafka(start_timeout=0.1).start()
    assert entries(temporary) == []


async def test_a_cancelled_start_leaves_nothing(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_kafka()
    loop, spawned, spawn = asyncio.get_running_loop(), asyncio.Event(), ProcessGuard.spawn

    def spawn_and_record(guard: ProcessGuard, *arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        loop.call_soon_threadsafe(spawned.set)
        return spawn(guard, *arguments, **options)

    monkeypatch.setattr(ProcessGuard, "spawn", spawn_and_record)
    kafka = ApacheKafka()
    entering = asyncio.create_task(kafka.__aenter__())
    await spawned.wait()
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert entries(temporary) == []


def test_brokers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    require_kafka()
    script = """
import os, signal
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
kafka = ApacheKafka(nodes=1)
kafka.start()
print(kafka.pid(1), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    # The guard's watcher keeps the pipe for errors open until its work is done.
    killed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, timeout=120, env=environment
    )
    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, b"")
    assert int(killed.stdout) > 0
    assert entries(tmp_path) == []


def test_missing_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(KafkaUnavailable, match="needs Java"):
        ApacheKafka().start()


def test_without_kafka_tests_are_skipped_but_fail_in_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"no real Kafka to test against: .*needs Java"), running_kafka():
        raise AssertionError("it cannot be running")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"CI must run .*needs Java"), running_kafka():
        raise AssertionError("it cannot be running")


def test_questions_to_a_cluster_that_is_not_there() -> None:
    kafka = ApacheKafka()
    with pytest.raises(ValueError, match="no node 1 in this cluster; running nodes: none"):
        kafka.pid(1)
    with pytest.raises(RuntimeError, match="not started"):
        _ = kafka.libs
    with pytest.raises(RuntimeError, match="not started"):
        _ = kafka.bootstrap_servers
    with pytest.raises(ValueError, match="at least one node"):
        ApacheKafka(nodes=0)
