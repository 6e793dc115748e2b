from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Cluster, Run


def test_create_list_describe_delete(run: Run, start_cluster: Callable[..., Cluster]) -> None:
    cluster = start_cluster(nodes=2)
    server = ("--bootstrap-server", cluster.servers)
    created = run("topics", "create", "b", "a", "--partitions", 2, "--replication-factor", 2, *server)
    assert (created.status, created.out, created.err) == (0, "created b\ncreated a\n", "")
    listed = run("topics", "list", *server)
    assert (listed.status, listed.out) == (0, "a\t2\t2\nb\t2\t2\n")
    described = run("topics", "describe", "a", *server)
    assert described.status == 0
    rows = [line.split("\t") for line in described.out.splitlines()]
    assert [row[:2] for row in rows] == [["a", "0"], ["a", "1"]]
    assert all(row[3] in ("0,1", "1,0") and row[2] == row[3][0] and row[4] == row[3] for row in rows)
    deleted = run("topics", "delete", "a", "b", *server)
    assert (deleted.status, deleted.out) == (0, "deleted a\ndeleted b\n")
    assert cluster.topics() == []


def test_the_broker_decides_what_is_not_said(run: Run, start_cluster: Callable[..., Cluster]) -> None:
    cluster = start_cluster(configs={"num.partitions": 3})
    assert run("topics", "create", "a", "--bootstrap-server", cluster.servers).status == 0
    assert run("topics", "list", "--bootstrap-server", cluster.servers).out == "a\t3\t1\n"


def test_configs_of_the_topic_and_a_file_of_client_configs(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={cluster.servers}\ncompression.type=lz4\n")
    result = run(
        "topics", "create", "a", "--config", "max.message.bytes=10", "--config", file, "--config", "retention.ms=1"
    )
    assert result.status == 0
    assert cluster.topic("a").config.max_message_bytes == 10
    assert run("topics", "list", "--config", file).out == "a\t1\t1\nt\t1\t1\n"


def test_a_failed_topic_hides_no_result_of_another(run: Run, cluster: Cluster) -> None:
    server = ("--bootstrap-server", cluster.servers)
    created = run("topics", "create", "t", "a", "no/name", *server)
    assert (created.status, created.out) == (1, "created a\n")
    exists, invalid = created.err.splitlines()
    assert exists == "Error: TopicExistsException: topic 't' exists already (error 36, TOPIC_ALREADY_EXISTS)"
    assert invalid.startswith("Error: InvalidTopicException: topic name 'no/name' is not allowed")
    described = run("topics", "describe", "nosuch", "t", *server)
    assert (described.status, described.out) == (1, "t\t0\t0\t0\t0\n")
    assert "Error: UnknownTopicOrPartitionException: topic 'nosuch'" in described.err
    deleted = run("topics", "delete", "nosuch", "t", *server)
    assert (deleted.status, deleted.out) == (1, "deleted t\n")
    assert "nosuch" in deleted.err


def test_tables_on_a_terminal(run_on_terminal: Run, cluster: Cluster) -> None:
    listed = run_on_terminal("topics", "list", "--bootstrap-server", cluster.servers)
    assert listed.status == 0
    assert "TOPIC" in listed.out
    assert "PARTITIONS" in listed.out
    assert "\t" not in listed.out


def test_no_broker(run_process: Run, closed_port: str) -> None:
    result = run_process("topics", "list", "--bootstrap-server", closed_port, "-X", "default.api.timeout.ms=100")
    assert (result.status, result.out) == (1, "")
    assert (
        "Error: TimeoutException: listing topics: not done within default.api.timeout.ms=100: no broker can be reached"
        in (result.err)
    )
    assert f"cannot connect to {closed_port}" in result.err


def test_unknown_configs(run: Run) -> None:
    result = run("topics", "list", "-X", "default.api.timeout=1")
    assert (result.status, result.out) == (2, "")
    assert result.err == "Error: unknown admin config 'default.api.timeout'; did you mean 'default.api.timeout.ms'?\n"


def test_configs_are_altered_and_described(run: Run, cluster: Cluster) -> None:
    server = ("--bootstrap-server", cluster.servers)
    window = "producer.state.batches.to.retain"
    altered = run("topics", "alter", "t", "--config", f"{window}=20", "--config", "max.message.bytes=9", *server)
    assert (altered.status, altered.out, altered.err) == (0, "altered t\n", "")
    described = run("topics", "describe", "t", "--configs", *server)
    assert described.status == 0
    assert f"t\t{window}\t20\tDYNAMIC_TOPIC_CONFIG" in described.out.splitlines()
    assert "t\tpreallocate\tfalse\tDEFAULT_CONFIG" in described.out.splitlines()
    assert run("topics", "alter", "t", "--config", f"{window}=", *server).status == 0
    assert cluster.topic("t").configs == {"max.message.bytes": "9"}
    refused = run("topics", "alter", "t", "nosuch", "--config", f"{window}=4", *server)
    assert (refused.status, refused.out) == (1, "")
    assert "InvalidConfigurationException: topic 't'" in refused.err
    assert "nosuch" in refused.err
