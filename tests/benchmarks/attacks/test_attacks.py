"""``python -m benchmarks attacks``: that attacks are those they say, and what is called a problem."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import CorruptRecordException
from aioproducer.records.compression import CompressionType, decompress
from aioproducer.records.record_batch import RecordBatch
from benchmarks.__main__ import main
from benchmarks.attacks import attacks, hostile_batches, steps
from benchmarks.attacks.attack_list import ATTACKS, Attack
from benchmarks.attacks.attacked_broker import attacked_broker
from benchmarks.attacks.attacks import P99_MS, PEAK_MIB, Attacked, Report, attacked
from benchmarks.attacks.honest_client import HONEST, HonestClient
from benchmarks.attacks.hostile_client import HOSTILE, HostileClient
from tests.benchmarks.environments import ENVIRONMENT


def found(p99: float, peak_mib: float) -> Attacked:
    quiet = {"p50": 0.5, "p99": 1.0, "p99.9": 1.0, "max": 1.25}
    return Attacked("storm", "a storm", quiet, {**quiet, "p99": p99, "max": 99.5}, 400, peak_mib)


@pytest.mark.parametrize(
    ("p99", "peak_mib", "problems"),
    [
        (P99_MS - 1, PEAK_MIB - 1, []),
        (P99_MS, PEAK_MIB - 1, ["storm: p99 < 50 ms: it is 50.0 ms"]),
        (P99_MS - 1, PEAK_MIB, [f"storm: memory < {PEAK_MIB:g} MiB: it is {PEAK_MIB:.0f} MiB"]),
    ],
)
def test_the_claims(p99: float, peak_mib: float, problems: list[str]) -> None:
    made = Report(ENVIRONMENT, 4, [found(p99, peak_mib)])
    assert made.problems() == problems
    assert f"| a storm | 1.0 | 0.5 | {p99:.1f} | 100 | {peak_mib:.0f} |" in made.markdown()


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def attacked(attack: Attack, seconds: float) -> Attacked:
        assert (attack.name, seconds) == ("connection-storm", 2)
        return found(51.0, 100)

    monkeypatch.setattr(attacks, "attacked", attacked)
    file = tmp_path / "figures.json"
    arguments = ["--seconds", "2", "--only", "connection-storm", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "attacks", *arguments])
    assert main() == 1
    assert "p99 < 50 ms: it is 51.0 ms" in capsys.readouterr().out
    assert '"peak_mib": 100' in file.read_text()


async def test_an_attack_beside_an_honest_client() -> None:
    figures = await attacked(ATTACKS["garbage-in-a-batch"], 0.05)
    assert figures.records > 0
    assert 0 < figures.beside["p50"] <= figures.beside["p99"] <= figures.beside["max"]


async def test_a_broker_that_does_not_start() -> None:
    with pytest.raises(RuntimeError, match=r"no\.such\.config"):
        async with attacked_broker(["-X", "no.such.config=1"]):
            pass


async def test_an_honest_client_finds_its_records() -> None:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic(HONEST)
        port = int(cluster.bootstrap_servers.rpartition(":")[2])
        left = iter(range(3))
        async with HonestClient(port) as client:
            assert len(await client.latencies(lambda: next(left, None) is not None)) == 3
        assert cluster.log(HONEST).log_end_offset == 3


async def test_a_client_whose_record_is_refused_says_so() -> None:
    async with EmbeddedCluster(configs={"message.max.bytes": 50}) as cluster:
        cluster.create_topic(HONEST)
        async with HonestClient(int(cluster.bootstrap_servers.rpartition(":")[2])) as client:
            with pytest.raises(RuntimeError, match="MESSAGE_TOO_LARGE"):
                await client.latencies(lambda: True)


QUICK = (
    "waiting-fetch-duplicates",
    "fetch-duplicates",
    "too-many-duplicates",
    "gzip-members",
    "garbage-in-a-batch",
    "partitions-beyond-all-limits",
    "connection-storm",
    "wide-transactions",
    "wide-offsets-of-transactions",
    "wide-produces",
    "all-committed-offsets",
    "wide-record-deletions",
    "wide-topic-deletions",
)


@pytest.mark.parametrize("name", QUICK)
async def test_attacks_do_what_they_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its answers, or it raises."""
    monkeypatch.setattr(steps, "WIDE_PARTITIONS", range(20))
    async with EmbeddedCluster() as cluster:
        cluster.create_topic(HONEST)
        cluster.create_topic(HOSTILE)
        port = int(cluster.bootstrap_servers.rpartition(":")[2])

        def attack() -> list[None]:
            with HostileClient(port, 0) as client:
                return list(ATTACKS[name].run(client))

        assert await asyncio.to_thread(attack) == [None]


def test_a_bomb_is_as_large_as_it_says() -> None:
    batch = RecordBatch(hostile_batches.bomb(CompressionType.GZIP, 1))
    assert batch.size_in_bytes < 2_000
    body = bytes(batch.data)[61:]
    assert decompress(CompressionType.GZIP, body, 1 << 20) == bytes(1 << 20)
    with pytest.raises(CorruptRecordException, match="more than the"):
        decompress(CompressionType.GZIP, body, (1 << 20) - 1)
