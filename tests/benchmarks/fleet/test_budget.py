"""What ten thousand services need: the arithmetic."""

from __future__ import annotations

import pytest

from benchmarks.fleet.budget import Broker, Budget, Client, lingering
from benchmarks.fleet.fleet import Report
from tests.benchmarks.environments import ENVIRONMENT
from tests.benchmarks.fleet.points import point

ANSWER = {"METADATA": 1}


def a_budget() -> Budget:
    """Each partition takes 4 KiB of memory and 40 bytes of an answer, each broker 25 KiB and 30 bytes."""
    points = []
    for brokers, partitions in ((1_000, 1_000), (1_000, 10_000), (10, 10_000)):
        start = {"metadata_mb": (40 * partitions + 30 * brokers) / 1e6, "requests": ANSWER}
        steady = {"rss": (4 * partitions + 25 * brokers) / 1024}
        points.append(point(brokers, partitions, start=start, steady=steady))
    broker, client = Broker(request=60, batch=20, record=0.1), Client(single=70, full=0.5, most=2e6, mib=40)
    return Budget(broker, client, Report(ENVIRONMENT, points))


def test_costs_of_a_partition_and_of_a_broker() -> None:
    budget = a_budget()
    assert budget.kib_a_partition == pytest.approx(4)
    assert budget.kib_a_connection == pytest.approx(25)
    assert budget.bytes_a_partition == pytest.approx(40)
    assert budget.bytes_a_broker == pytest.approx(30)


def test_each_partition_has_a_linger_of_its_own() -> None:
    assert lingering(10) == pytest.approx(5)  # 0.1 s of linger, and 0.1 s until the next record
    assert lingering(1e6) == pytest.approx(10, rel=1e-4)
    assert lingering(0.01) == pytest.approx(0.01, rel=1e-2)


def test_cores_of_each_way_to_send() -> None:
    budget = a_budget()
    at_once, keyed, unkeyed, gateways = budget.ways()
    assert budget.cores(at_once) == pytest.approx(10 * (60 + 20 + 0.1))
    assert keyed.requests == pytest.approx(10_000 * 500)
    assert budget.cores(unkeyed) == pytest.approx(0.1 * (60 + 20) + 1)
    assert gateways.batches == pytest.approx(1e7 / 130)
    assert gateways.requests == pytest.approx(1e7 / 130 / 6)


def test_tables() -> None:
    budget = a_budget()
    requests = "\n".join(budget.requests())
    assert "CPU = 60 µs × requests + 20 µs × batches + 0.10 µs × records" in requests
    assert "; every record leaves at once | 10,000,000 | 10,000,000 | 801 |" in requests
    assert "| without keys, `linger_ms=100` | 100,000 | 100,000 | 9 |" in requests
    connections = "\n".join(budget.connections())
    assert "| memory of a service for them, at most 25 KiB each (simulated) | 2 MiB | 24 MiB |" in connections
    assert "| connections of the cluster | 1,000,000 | 10,000,000 |" in connections
    metadata = "\n".join(budget.metadata())
    assert "An answer has 40 bytes for each partition in use and 30 for each broker" in metadata
    assert "| 100 | 34 kB | 33, 1 | 340 MB |" in metadata
    assert "| 100,000 | 4 MB | 33, 134 | 40 GB |" in metadata
    services = "\n".join(budget.services())
    assert "| every record leaves at once | 1,000 × 70.0 µs = 7.0 % | 700 cores |" in services
    assert "| 10 batches of 100 records | 10 × 70.0 µs + 1,000 × 0.50 µs = 0.12 % | 12 cores |" in services
    assert "so the default of 32 MiB holds 13,000 of them" in services
    limits = "\n".join(budget.limits())
    assert "2.0 M records/s of 100 B in full batches (measured), 14,286 requests/s (1 s ÷ 70.0 µs, computed)" in limits
    assert "0.0 s at once with 10,000 partitions (simulated" in limits
