"""Kafka's own producer and this one send the same record to the same broker; then their metrics are compared."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path

import pytest

from aioproducer import KafkaProducer, MetricName
from aioproducer.broker import EmbeddedCluster
from tests.support.java_source import java_command

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
DOCUMENTED = runpy.run_path(str(HERE.parents[1] / "scripts" / "metrics.py"))


ALIKE = {
    *("batch-size-avg", "batch-size-max", "batch-split-total", "buffer-total-bytes"),
    *("buffer-exhausted-total", "compression-rate-avg", "flush-time-ns-total"),
    *("produce-throttle-time-max", "record-error-total", "record-retry-total", "record-send-total", "record-size-avg"),
    *("record-size-max", "records-per-request-avg", "waiting-threads"),
    *("byte-total", "compression-rate"),
}
"""Figures of the producer and of the topic that depend on the record alone, and not on how far all else has come."""


def parsed(line: str) -> tuple[MetricName, str]:
    _, value, group, name, *tags = line.split(" ")
    pairs = sorted(tag.split("=", 1) for tag in tags)
    return MetricName(name, group, tuple((key, value) for key, value in pairs)), value


async def test_names_groups_tags_and_figures_are_kafkas() -> None:
    async with EmbeddedCluster(configs={"log.producer.state.batches.to.retain": 20}) as cluster:
        command = java_command(HERE / "ProducerMetrics.java", cluster.bootstrap_servers)
        pipe = asyncio.subprocess.PIPE
        java = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
        out, err = await java.communicate()
        assert java.returncode == 0, err.decode()
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, client_id="me") as producer:
            _ = await producer.send("t", b"value")
            ours = producer.metrics()
    kafkas = dict(parsed(line) for line in out.decode().splitlines() if line.startswith("metric "))
    absent = {name for names, _ in DOCUMENTED["ABSENT"] for name in names}
    assert {(name.group, name.name) for name in kafkas.keys() - ours.keys()} == absent
    own = {(name.group, name.name) for name, metric in DOCUMENTED["every_metric"]() if metric.own}
    assert {(name.group, name.name) for name in ours.keys() - kafkas.keys()} == own
    alike = {name for name in kafkas if name.name in ALIKE and name.tag("node-id") is None}
    assert {name.name for name in alike} == ALIKE
    assert {name: ours[name] for name in alike} == {name: float(kafkas[name]) for name in alike}
