"""Kafka's own command line tools, run from the same jars as the broker; tests check deliveries with them."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from aioproducer.testing.kafka.class_archive import archive_flags, kafka_archive
from aioproducer.testing.kafka.kafka_jvm import jvm_command, properties_text
from aioproducer.testing.kafka.kafka_libs import KafkaFailed, find_java
from aioproducer.testing.kafka.kafka_output import (
    ConsumedRecord,
    LoggedBatch,
    ProducerPerformanceResult,
    TopicDescription,
    formatter_properties,
    parse_consumed,
    parse_description,
    parse_features,
    parse_log,
    parse_offsets,
    parse_performance,
    parse_table,
)
from aioproducer.testing.kafka.kafka_tool_run import CLIENT_PROPERTIES, ToolOutput, run_tool, tail
from aioproducer.testing.process_guard import ProcessGuard

QUICK: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
# The flags of bin/kafka-producer-perf-test.sh.
PERFORMANCE: Final = ("-Xmx512m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:+ExplicitGCInvokesConcurrent")


def _transactions(transactional_id: str) -> tuple[str, ...]:
    return "--transactional-id", transactional_id, "--transaction-duration-ms", "100"


class KafkaTools:
    """The tools of the Kafka release in ``libs``, connected to ``bootstrap_servers``.

    ``configs`` are client configs for all tools, such as ``security.protocol``; the configs of a call are added to
    them. They reach the tool in a file, so that the list of processes shows no secrets.

    Each call runs one JVM for at most ``timeout`` seconds. If it takes longer or fails, the call raises ``KafkaFailed``
    with the end of the tool's output. Cancelling a call ends its process; so does the end of this process.
    """

    def __init__(self, libs: Path, bootstrap_servers: str, *, configs: Mapping[str, str] | None = None) -> None:
        version = _version(libs)
        self._libs = libs
        self._java = find_java(version)
        self._bootstrap = ("--bootstrap-server", bootstrap_servers)
        self._configs = dict(configs or {})
        major, minor, _ = map(int, version.split("."))
        # KIP-1147 gave the same options the same names in all tools.
        renamed = (major, minor) >= (4, 2)
        self._consumer_config = "--command-config" if renamed else "--consumer.config"
        self._producer_config = "--command-config" if renamed else "--producer.config"
        self._formatter_property = "--formatter-property" if renamed else "--property"
        self._reader_property = "--reader-property" if renamed else "--property"
        self._election_config = "--command-config" if renamed else "--admin.config"
        # Some tools were Scala classes until 4.0.
        self._package = "org.apache.kafka.tools" if major >= 4 else "kafka.tools"
        self._acl_package = "org.apache.kafka.tools" if major >= 4 else "kafka.admin"

    # -- topics

    async def create_topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replication_factor: int = 1,
        configs: Mapping[str, str] | None = None,
        timeout: float = 60.0,
    ) -> None:
        numbers = ("--partitions", str(partitions), "--replication-factor", str(replication_factor))
        await self._topics("--create", "--topic", topic, *numbers, *_options("--config", configs), timeout=timeout)

    async def describe_topic(self, topic: str, *, timeout: float = 60.0) -> TopicDescription:
        return parse_description((await self._topics("--describe", "--topic", topic, timeout=timeout)).stdout.decode())

    async def delete_topic(self, topic: str, *, timeout: float = 60.0) -> None:
        await self._topics("--delete", "--topic", topic, timeout=timeout)

    async def list_topics(self, *, timeout: float = 60.0) -> list[str]:
        return (await self._topics("--list", timeout=timeout)).stdout.decode().split()

    async def _topics(self, *arguments: str, timeout: float) -> ToolOutput:
        return await self.run(
            "org.apache.kafka.tools.TopicCommand",
            *self._bootstrap,
            *arguments,
            config_option="--command-config",
            timeout=timeout,
        )

    async def get_offsets(self, topic: str, *, time: str = "latest", timeout: float = 60.0) -> dict[int, int]:
        """The offset after the last record of each partition, or another one that ``time`` names (``earliest``, …).

        With ``earliest`` and without transactions, the difference is the number of records in the log.
        """
        arguments = ("--topic", re.escape(topic), "--time", time)
        output = await self.run(
            "org.apache.kafka.tools.GetOffsetShell",
            *self._bootstrap,
            *arguments,
            config_option="--command-config",
            timeout=timeout,
        )
        return parse_offsets(output.stdout.decode())

    # -- the cluster

    async def move_leaders(self, replicas: Mapping[str, Mapping[int, Sequence[int]]], *, timeout: float = 60.0) -> None:
        """Make the first of each partition's replicas its leader: ``{"orders": {0: [2, 3, 1]}}``.

        If the replicas are only reordered, no data moves, and the leader has moved when this returns. The node must not
        lead the partition already.
        """
        places = [(topic, partition, nodes) for topic, of in replicas.items() for partition, nodes in of.items()]
        plan = [{"topic": topic, "partition": number, "replicas": [*nodes]} for topic, number, nodes in places]
        await self.run(
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            *self._bootstrap,
            *("--execute", "--reassignment-json-file", "/dev/stdin"),
            config_option="--command-config",
            stdin=json.dumps({"version": 1, "partitions": plan}).encode(),
            timeout=timeout,
        )
        elections = [{"topic": topic, "partition": number} for topic, number, _ in places]
        await self.run(
            "org.apache.kafka.tools.LeaderElectionCommand",
            *self._bootstrap,
            *("--election-type", "preferred", "--path-to-json-file", "/dev/stdin"),
            config_option=self._election_config,
            stdin=json.dumps({"partitions": elections}).encode(),
            timeout=timeout,
        )

    async def features(self, *, timeout: float = 60.0) -> dict[str, int]:
        """The finalized level of each feature, such as ``transaction.version``."""
        output = await self.run(
            "org.apache.kafka.tools.FeatureCommand",
            *self._bootstrap,
            "describe",
            config_option="--command-config",
            timeout=timeout,
        )
        return parse_features(output.stdout.decode())

    async def set_quota(self, client_id: str, quotas: Mapping[str, float], *, timeout: float = 60.0) -> None:
        """Set quotas of a client id, such as ``{"producer_byte_rate": 20_000}``: bytes per second on each broker."""
        changes = ",".join(f"{name}={value:g}" for name, value in quotas.items())
        entity = "--entity-type", "clients", "--entity-name", client_id
        await self.configs("--alter", "--add-config", changes, *entity, timeout=timeout)

    async def configs(self, *arguments: str, timeout: float = 60.0) -> str:
        """The output of ``kafka-configs.sh``, with arguments such as ``"--describe", "--entity-type", "topics", …``."""
        output = await self.run(
            "kafka.admin.ConfigCommand",
            *self._bootstrap,
            *arguments,
            config_option="--command-config",
            timeout=timeout,
        )
        return output.stdout.decode()

    async def client_metrics(self, *arguments: str, timeout: float = 60.0) -> str:
        """The output of ``kafka-client-metrics.sh``, with arguments such as ``"--describe", "--name", "all"``."""
        output = await self.run(
            "org.apache.kafka.tools.ClientMetricsCommand",
            *self._bootstrap,
            *arguments,
            config_option="--command-config",
            timeout=timeout,
        )
        return output.stdout.decode()

    # -- transactions

    async def acls(self, *arguments: str, timeout: float = 60.0) -> str:
        """The output of ``kafka-acls``: ``--add``, ``--list`` or ``--remove``, and their arguments."""
        output = await self.run(
            f"{self._acl_package}.AclCommand",
            *self._bootstrap,
            *arguments,
            config_option="--command-config",
            timeout=timeout,
        )
        return output.stdout.decode()

    async def transactions(self, *command: str, timeout: float = 60.0) -> list[dict[str, str]]:
        """The rows of ``kafka-transactions``: ``list``, ``describe --transactional-id ID``, ``find-hanging`` and so on.

        Each row maps the names of columns, such as ``CoordinatorId`` and ``TransactionState``, to the values that are
        not empty.
        """
        output = await self.run(
            "org.apache.kafka.tools.TransactionsCommand",
            *self._bootstrap,
            *command,
            config_option="--command-config",
            timeout=timeout,
        )
        return parse_table(output.stdout.decode())

    async def consumer_groups(self, *arguments: str, timeout: float = 60.0) -> str:
        """The output of ``kafka-consumer-groups``, with arguments such as ``"--describe", "--group", "g"``."""
        output = await self.run(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            *self._bootstrap,
            *arguments,
            config_option="--command-config",
            timeout=timeout,
        )
        return output.stdout.decode()

    # -- records

    async def console_consumer(
        self,
        topic: str,
        *,
        max_messages: int | None = None,
        timeout_ms: int | None = None,
        from_beginning: bool = True,
        partition: int | None = None,
        isolation_level: str = "read_uncommitted",
        configs: Mapping[str, str] | None = None,
        timeout: float = 60.0,
    ) -> list[ConsumedRecord]:
        """The records, in the order the consumer got them.

        The consumer ends after ``max_messages``, or when nothing has come for ``timeout_ms``; one of them is required.
        A consumer that ends at ``max_messages`` does not see further records: compare with ``get_offsets``.
        """
        if max_messages is None and timeout_ms is None:
            raise ValueError("the console consumer would never end: give max_messages or timeout_ms")
        null = f"null-{uuid.uuid4()}"
        arguments = ["--topic", topic, "--isolation-level", isolation_level]
        if max_messages is not None:
            arguments += ["--max-messages", str(max_messages)]
        if timeout_ms is not None:
            arguments += ["--timeout-ms", str(timeout_ms)]
        if partition is not None:
            arguments += ["--partition", str(partition), "--offset", "earliest" if from_beginning else "latest"]
        elif from_beginning:
            arguments.append("--from-beginning")
        arguments += _options(self._formatter_property, formatter_properties(null))
        output = await self.run(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *self._bootstrap,
            *arguments,
            config_option=self._consumer_config,
            configs=configs,
            timeout=timeout,
        )
        records = parse_consumed(topic, output.stdout, null)
        processed = re.search(r"Processed a total of (\d+) messages", output.stderr)
        if processed is None or int(processed[1]) != len(records):
            raise KafkaFailed(f"the console consumer printed {len(records)} records, but reports: {output.stderr}")
        return records

    async def console_producer(
        self,
        topic: str,
        records: Iterable[tuple[str | None, str | None]],
        *,
        configs: Mapping[str, str] | None = None,
        timeout: float = 60.0,
    ) -> None:
        """Send ``(key, value)`` pairs and wait for their delivery. They cannot contain tabs or line ends."""
        null = f"null-{uuid.uuid4()}"
        lines = []
        for pair in records:
            line = "\t".join(null if field is None else field for field in pair)
            if line.count("\t") != 1 or "\n" in line or "\r" in line:
                raise ValueError(f"a record of the console producer cannot hold a tab or a line end: {pair!r}")
            lines.append(line + "\n")
        output = await self.run(
            f"{self._package}.ConsoleProducer",
            *self._bootstrap,
            *("--topic", topic),
            *_options(self._reader_property, {"parse.key": "true", "key.separator": "\t", "null.marker": null}),
            config_option=self._producer_config,
            configs={"linger.ms": "5", **(configs or {})},  # its own default is a second
            stdin="".join(lines).encode(),
            timeout=timeout,
        )
        # The tool only logs a record that it could not send; its exit status stays 0.
        if " ERROR " in output.stderr:
            raise KafkaFailed(f"the console producer did not deliver everything:\n{tail(output.stderr)}")

    async def producer_performance(
        self,
        topic: str,
        *,
        num_records: int,
        record_size: int,
        throughput: float = -1,
        transactional_id: str | None = None,
        configs: Mapping[str, str] | None = None,
        timeout: float = 300.0,
    ) -> ProducerPerformanceResult:
        """Kafka's own benchmark, with its own JVM settings; ``throughput`` is in records/s, -1 for no limit.

        With a transactional id it commits a transaction every 100 ms, and at the end.
        """
        output = await self.run(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", str(num_records), "--record-size", str(record_size)),
            *("--throughput", str(throughput)),
            *(() if transactional_id is None else _transactions(transactional_id)),
            config_option=self._producer_config,
            configs={"bootstrap.servers": self._bootstrap[1], **(configs or {})},
            timeout=timeout,
            jvm_flags=PERFORMANCE,
        )
        return parse_performance(output.stdout.decode())

    async def dump_log(self, directory: Path, *, timeout: float = 60.0) -> list[LoggedBatch]:
        """All batches of one partition's directory on disk (see ``ApacheKafka.data_directory``), oldest first."""
        output = await self.run(
            f"{self._package}.DumpLogSegments", "--files", ",".join(_segments(directory)), timeout=timeout
        )
        return parse_log(output.stdout.decode())

    # -- any of them

    async def run(
        self,
        main_class: str,
        *arguments: str,
        config_option: str | None = None,
        configs: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = 60.0,
        jvm_flags: Iterable[str] | None = None,
    ) -> ToolOutput:
        """Run any main class of the release; ``config_option`` is the option that names the file of client configs.

        Without ``jvm_flags`` the JVM starts as fast as it can, from an archive of classes if there is one.
        """
        if jvm_flags is None:
            jvm_flags = (*QUICK, *archive_flags(kafka_archive(self._libs, self._java, "tools")))
        config_file = () if config_option is None else (config_option, CLIENT_PROPERTIES)
        jvm = jvm_command(self._java, self._libs, [*jvm_flags], log_level="warn")
        # Tools with subcommands need this option before them.
        command = [*jvm, main_class, *config_file, *arguments]
        properties = properties_text({**self._configs, **(configs or {})})
        guard = ProcessGuard()
        running = asyncio.ensure_future(
            asyncio.to_thread(run_tool, guard, main_class, command, properties, stdin, timeout)
        )
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            # The thread waits for the process, so ending the process ends the thread.
            guard.close()
            await asyncio.wait([running])
            running.exception()  # retrieved, so that asyncio does not log it
            raise


def _options(name: str, properties: Mapping[str, str] | None) -> list[str]:
    return [part for key, value in (properties or {}).items() for part in (name, f"{key}={value}")]


def _segments(directory: Path) -> list[str]:
    segments = sorted(str(segment) for segment in directory.glob("*.log"))
    if not segments:
        raise ValueError(f"{directory} is no partition's directory: there is no log segment in it")
    return segments


def _version(libs: Path) -> str:
    """The release in a directory of jars."""
    for jar in libs.glob("kafka-tools-*.jar"):
        if found := re.fullmatch(r"kafka-tools-(\d+\.\d+\.\d+)\.jar", jar.name):
            return found[1]
    raise ValueError(f"no Kafka release in {libs}: there is no kafka-tools-*.jar")
