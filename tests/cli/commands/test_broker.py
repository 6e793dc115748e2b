from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster, FatalExitError
from aioproducer.broker.kafka_apis import APIS
from aioproducer.cli.commands import broker as command
from aioproducer.errors import KafkaError
from aioproducer.protocol.api_key import ApiKey
from tests.cli.conftest import Cluster, Run, environment

Start = Callable[..., "subprocess.Popen[bytes]"]


def first_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_until_a_signal_stops_it(start_process: Start, number: signal.Signals) -> None:
    process = start_process("broker", "--port", 0, "--brokers", 2, "-X", "num.partitions=3")
    servers = first_line(process)
    assert servers.count("127.0.0.1:") == 2

    async def use() -> Any:
        async with KafkaProducer(bootstrap_servers=servers) as producer:
            await producer.send("t", b"x")
        async with KafkaAdmin(bootstrap_servers=servers) as admin:
            return await admin.describe_topic("t")

    described = asyncio.run(use())
    assert len(described.partitions) == 3
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == 0
    assert out == b""
    assert err == b"Records are kept in memory only. Ctrl-C stops the broker.\n"


def test_listeners_have_their_ports(start_process: Start, run: Run) -> None:
    listeners = "PLAINTEXT://:0,INTERNAL://localhost:0"
    protocols = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT"
    process = start_process("broker", "--brokers", 2, "-X", f"listeners={listeners}", "-X", protocols)
    assert first_line(process).count("127.0.0.1:") == 2
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0

    refused = run("broker", "--port", 9092, "-X", f"listeners={listeners}", "-X", protocols)
    assert refused.status == 2
    assert "the config listeners names the ports" in refused.err
    refused = run("broker", "-X", f"listeners={listeners}")
    assert refused.status == 2
    assert "add INTERNAL:PLAINTEXT" in refused.err


def test_a_data_directory_keeps_records(start_process: Start, run: Run, tmp_path: Path) -> None:
    directory = tmp_path / "data"

    async def send(servers: str) -> int:
        async with KafkaProducer(bootstrap_servers=servers) as producer:
            return (await producer.send("t", b"x")).offset

    for offset in range(2):
        process = start_process("broker", "--port", 0, "--data-dir", directory)
        assert asyncio.run(send(first_line(process))) == offset
        if offset:
            second = run("broker", "--port", 0, "--data-dir", directory)
            assert (second.status, second.out) == (1, "")
            assert second.err.startswith(f"Error: the data directory {directory} is in use")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
        assert process.returncode == 0
        assert err.decode() == f"Records are kept in {directory}. Ctrl-C stops the broker.\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")
def test_it_ends_when_its_data_directory_fails_and_says_why(start_process: Start, tmp_path: Path) -> None:
    """Files that may not grow stand for a disk that is full."""
    process = start_process("broker", "--port", 0, "--data-dir", tmp_path, "--topic", "t")
    servers = first_line(process)

    async def send(*values: bytes) -> list[int]:
        async with KafkaProducer(
            bootstrap_servers=servers, linger_ms=0, delivery_timeout_ms=1000, request_timeout_ms=900
        ) as producer:
            return [(await producer.send("t", value)).offset for value in values]

    assert asyncio.run(send(b"a", b"b")) == [0, 1]
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100, 100))
    with pytest.raises(KafkaError):
        asyncio.run(send(b"c"))
    _, err = process.communicate()
    assert process.returncode == 1
    assert f"Error: the data directory {tmp_path} has failed: [Errno 27] File too large" in err.decode()
    assert "Traceback" not in err.decode()

    process = start_process("broker", "--port", 0, "--data-dir", tmp_path)
    servers = first_line(process)
    assert asyncio.run(send(b"d")) == [2]


class Doomed(EmbeddedCluster):
    """A cluster with a client, and a handler that fails fatally at the client's request."""

    async def start(self) -> None:
        await super().start()
        host, _, port = self.bootstrap_servers.partition(":")
        _, self._writer = await asyncio.open_connection(host, int(port))
        self._writer.write(bytes.fromhex("0000000e 0003 0000 00000001 ffff".replace(" ", "")) + bytes(4))

    async def close(self) -> None:
        self._writer.close()
        await super().close()


def test_it_ends_when_a_node_cannot_go_on_and_says_why(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fatal(*arguments: object) -> None:
        raise FatalExitError("no way on")

    monkeypatch.setitem(APIS, ApiKey.METADATA, APIS[ApiKey.METADATA]._replace(handle=fatal))
    monkeypatch.setattr(command, "EmbeddedCluster", Doomed)
    ended = run("broker", "--port", 0)
    assert ended.status == 1
    assert ended.err.endswith("Error: node 0 has stopped: no way on\n")


class FailsAtTheEnd(EmbeddedCluster):
    """A cluster whose data directory fails while it is being closed."""

    async def start(self) -> None:
        await super().start()
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)

    async def close(self) -> None:
        self._failure.happen("the data directory has failed")
        await super().close()


def test_a_data_directory_that_fails_at_the_end_is_no_success(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "EmbeddedCluster", FailsAtTheEnd)
    ended = run("broker", "--port", 0)
    assert ended.status == 1
    assert ended.err.endswith("Error: the data directory has failed\n")


def test_it_does_not_start_with_a_damaged_directory_but_to_recover_it(
    start_process: Start, run: Run, tmp_path: Path
) -> None:
    async def send(servers: str) -> int:
        async with KafkaProducer(bootstrap_servers=servers) as producer:
            return (await producer.send("t", b"x")).offset

    for _ in range(2):
        process = start_process("broker", "--port", 0, "--data-dir", tmp_path)
        asyncio.run(send(first_line(process)))
        process.kill()
        process.communicate()
    (segment,) = tmp_path.glob("t-0/*.log")
    content = bytearray(segment.read_bytes())
    content[30] ^= 1
    segment.write_bytes(content)
    refused = run("broker", "--port", 0, "--data-dir", tmp_path)
    assert (refused.status, refused.out) == (1, "")
    assert "t-0: records 0 to 0 cannot be read: " in refused.err
    assert "--recover" in refused.err
    process = start_process("broker", "--port", 0, "--data-dir", tmp_path, "--recover")
    assert asyncio.run(send(first_line(process))) == 2
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 0
    assert "t-0: records 0 to 0 cannot be read: " in err.decode()


def test_configs_of_a_file_and_secrets_of_the_environment(
    start_process: Start, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_PASSWORD", "pa$$w=rd")
    configs = tmp_path / "broker.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    configs.write_text(
        "listeners=SASL_PLAINTEXT://:0\n"
        "inter.broker.listener.name=SASL_PLAINTEXT\n"
        "num.partitions=3\n"
        "sasl.enabled.mechanisms=PLAIN\n"
        f'listener.name.sasl_plaintext.plain.sasl.jaas.config={module} required user_a="${{env:BROKER_PASSWORD}}";\n'
    )
    process = start_process("broker", "--config", configs, "-X", "num.partitions=4")
    servers = first_line(process)

    async def use() -> int:
        login: dict[str, Any] = {"sasl_plain_username": "a", "sasl_plain_password": "pa$$w=rd"}
        login |= {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
        async with KafkaProducer(bootstrap_servers=servers, **login) as producer:
            await producer.send("t", b"x")
            return len(await producer.partitions_for("t"))

    assert asyncio.run(use()) == 4
    assert b"pa$$w" not in Path(f"/proc/{process.pid}/cmdline").read_bytes() if sys.platform == "linux" else True
    monkeypatch.delenv("BROKER_PASSWORD")
    refused = run("broker", "--config", configs)
    assert refused.status == 2
    assert "there is nothing for ${env:BROKER_PASSWORD}" in " ".join(refused.err.replace("│", " ").split())
    refused = run("broker", "--config", tmp_path / "missing")
    assert refused.status == 2
    assert "missing: No such file or directory" in " ".join(refused.err.replace("│", " ").split())


def test_topics_to_begin_with(start_process: Start) -> None:
    process = start_process(
        "broker", "--port", 0, "--topic", "orders:6", "--topic", "other", "-X", "auto.create.topics.enable=false"
    )
    servers = first_line(process)

    async def look() -> dict[str, int]:
        async with KafkaAdmin(bootstrap_servers=servers) as admin:
            return {name: len(topic.partitions) for name, topic in (await admin.list_topics()).items()}

    assert asyncio.run(look()) == {"orders": 6, "other": 1}


@pytest.mark.parametrize("topic", ["t:", "t:0", "t:x", "t:-1"])
def test_topics_that_make_no_sense(run: Run, topic: str) -> None:
    result = run("broker", "--port", 0, "--topic", topic)
    assert result.status == 2
    assert f"{topic!r} is not NAME or NAME:PARTITIONS" in " ".join(result.err.split())


def test_a_name_that_no_topic_can_have(run: Run) -> None:
    result = run("broker", "--port", 0, "--topic", "a b")
    assert (result.status, result.out) == (1, "")
    assert "topic name 'a b' is not allowed" in result.err


def test_it_waits_for_nothing_that_it_does_not_need() -> None:
    """What takes long to import: everything but the broker and the command line's parser."""
    program = "import sys, aioproducer.cli.app as cli; cli.make_app('broker'); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=True
    )
    imported = set(done.stdout.split())
    assert "aioproducer.broker.cluster" in imported
    heavy = {"rich", "urllib.request", "http", "email", "pyarrow"}
    assert imported & heavy == set()
    ours = {name for name in imported if name.startswith("aioproducer.")}
    rooms = ("admin", "delivery_log", "metrics_topic", "net", "producer", "reader", "testing")
    assert [name for name in ours if name.split(".")[1] in rooms] == []
    assert len(ours) < 360, "each takes a part of the half second that it may take to start"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_it_takes_little_memory(start_process: Start) -> None:
    """Well under 100 MB when it can be connected to and has been, three nodes of it."""
    process = start_process("broker", "--port", 0, "--brokers", 3)
    servers = first_line(process)

    async def send() -> None:
        async with KafkaProducer(bootstrap_servers=servers) as producer:
            await producer.send("t", b"x")

    asyncio.run(send())
    status = Path(f"/proc/{process.pid}/status").read_text()
    (peak,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]
    assert peak < 80 * 1024


def test_a_port_that_is_in_use(run: Run, cluster: Cluster) -> None:
    host, _, port = cluster.servers.rpartition(":")
    result = run("broker", "--port", port)
    assert (result.status, result.out) == (1, "")
    assert result.err == (
        f"Error: cannot listen on {host}:{port}: the port is in use; choose another with --port (0: any free one)\n"
    )


def test_an_address_that_is_not_ours(run: Run) -> None:
    result = run("broker", "--host", "192.0.2.1", "--port", 0)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("Error: cannot listen on 192.0.2.1:0: ")
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("num.partition=1", "unknown broker config 'num.partition'; did you mean 'num.partitions'?"),
        ("num.partitions=x", "'x'"),
        ("MIGHAgEA=x", "unknown broker config, whose name is not shown"),
    ],
)
def test_wrong_configs(run: Run, config: str, message: str) -> None:
    result = run("broker", "--port", 0, "-X", config)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1


def test_it_runs_on_if_standard_error_is_not_read(start_process: Start) -> None:
    process = start_process("broker", "--port", 0)
    servers = first_line(process)
    host, _, port = servers.rpartition(":")
    for number in range(900):  # more lines than a pipe holds, each about something new
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall((0x80000000 + number).to_bytes(4, "big"))
            assert connection.recv(1) == b""

    async def use() -> None:
        async with KafkaProducer(bootstrap_servers=servers) as producer:
            await producer.send("t", b"x")

    asyncio.run(use())
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0


def test_it_may_have_as_many_connections_as_the_system_allows(start_process: Start) -> None:
    process = start_process("broker", "--port", 0)
    assert first_line(process)
    soft, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, 1024 * 1024)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
