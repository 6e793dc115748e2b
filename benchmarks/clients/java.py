"""Java's producer, by the tool that Kafka has for measuring it (kafka-producer-perf-test.sh), with its JVM settings.

The tool's own steady-state line counts what follows the warm-up; the CPU time is the JVM's from its start to its end.
"""

from __future__ import annotations

import re
from resource import RUSAGE_CHILDREN

from aioproducer.testing.kafka.kafka_libs import DEFAULT_VERSION, KafkaUnavailable, fetch_kafka, find_java
from aioproducer.testing.kafka.kafka_tools import PERFORMANCE, KafkaTools
from benchmarks.clients.client import Client, Missing
from benchmarks.harness.usage import cpu_seconds, peak_rss_of_children
from benchmarks.works.run import Measurement, Run
from benchmarks.works.works import Work

_STEADY_STATE = re.compile(
    r"^(?P<records>\d+) steady state records sent, (?P<rate>[\d.]+) records/sec .*max latency, "
    r"(?P<p50>\d+) ms 50th, \d+ ms 95th, (?P<p99>\d+) ms 99th, (?P<p999>\d+) ms 99\.9th",
    re.MULTILINE,
)


class Java(Client):
    share = 2

    @classmethod
    def can(cls, work: Work) -> bool:
        """The tool knows no keys, and one topic."""
        return super().can(work) and not work.keyed and work.topics == 1

    @classmethod
    def about(cls) -> str:
        try:
            fetch_kafka(DEFAULT_VERSION)
            find_java(DEFAULT_VERSION)
        except KafkaUnavailable as error:
            raise Missing(str(error)) from error
        return f"{DEFAULT_VERSION}, ProducerPerformance; CPU with the JVM's start"

    @classmethod
    async def measure(cls, run: Run) -> Measurement:
        configs = {"acks": "all", "linger.ms": str(run.linger_ms), "compression.type": run.compression}
        if run.batch_size:
            configs["batch.size"] = str(run.batch_size)
        tools = KafkaTools(fetch_kafka(DEFAULT_VERSION), run.bootstrap_servers)
        records = run.records + run.warm_up
        output = await tools.run(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--bootstrap-server", run.bootstrap_servers, "--topic", run.topic, "--throughput", "-1"),
            *("--num-records", str(records), "--warmup-records", str(run.warm_up)),
            *("--payload-file", run.payload),
            config_option="--command-config",
            configs=configs,
            timeout=600,
            jvm_flags=PERFORMANCE,
        )
        said = output.stdout.decode()
        found = _STEADY_STATE.search(said)
        if found is None:
            raise RuntimeError(f"no line of the steady state in what the tool said:\n{said}")
        measured = int(found["records"])
        lost = run.records - measured
        return Measurement(
            measured,
            measured / float(found["rate"]),
            cpu_seconds(RUSAGE_CHILDREN) * measured / records,
            peak_rss_of_children(),
            {"no acknowledgement": lost} if lost else {},
        )
