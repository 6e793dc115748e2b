"""The source as Spark runs it, on the embedded broker."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aioproducer.spark import offsets_behind
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.spark.topics import fill, transactions

pytest.importorskip("pyspark")

from pyspark.sql.datasource import DataSourceStreamReader

pytestmark = pytest.mark.conformance

NUMBERS = itertools.count()
QUICK = {"kafka.default.api.timeout.ms": "10000", "kafka.retry.backoff.ms": "5"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(2, configs={"auto.create.topics.enable": "false"}) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: ThreadedCluster) -> str:
    """Three partitions, of the test's own."""
    name = f"t{next(NUMBERS)}"
    cluster.create_topic(name, 3)
    return name


def source(reader: Any, cluster: ThreadedCluster, topic: str, **more: str) -> Any:
    """``spark.read`` or ``spark.readStream`` with the format and the options."""
    options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, **QUICK, **more}
    return reader.format("aioproducer").options(**options)


def values(frame: Any) -> list[str]:
    return sorted(row.value.decode() for row in frame.select("value").collect())


def expected(*ranges: range) -> list[str]:
    return sorted(f"{partition}:{number}" for partition, each in enumerate(ranges) for number in each)


@pytest.mark.parametrize("reader", ["read", "readStream"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, 'exactly one of the options "subscribe", "subscribePattern" and "assign" says what is read; none of them'),
        ({"subscribe": "t", "startingOffset": "latest"}, 'did you mean "startingOffsets"?'),
    ],
    ids=["none", "wrong"],
)
def test_load_names_the_option(spark: Any, reader: str, options: dict[str, str], message: str) -> None:
    from pyspark.errors import AnalysisException

    source = getattr(spark, reader).format("aioproducer").option("kafka.bootstrap.servers", "127.0.0.1:1")
    with pytest.raises(AnalysisException, match=f"IllegalArgumentException: .*{re.escape(message)}"):
        source.options(**options).load()


class TestBatch:
    def test_it_has_the_columns_of_sparks_own_source(self, spark: Any, cluster: ThreadedCluster, topic: str) -> None:
        fill(cluster, topic, 3)
        frame = source(spark.read, cluster, topic, includeHeaders="true").load()
        assert frame.schema.simpleString() == (
            "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
            "timestampType:int,headers:array<struct<key:string,value:binary>>>"
        )
        rows = frame.selectExpr("*", "unix_millis(timestamp) AS ms").orderBy("offset").collect()
        assert [
            (row.key, row.value, row.topic, row.partition, row.offset, row.ms, row.timestampType) for row in rows
        ] == [(b"%d" % number, b"0:%d" % number, topic, 0, number, 1000 + number, 0) for number in range(3)]
        assert [row.headers for row in rows] == [None] * 3

    @pytest.mark.parametrize(
        ("split", "tasks"), [({}, 2), ({"minPartitions": "9"}, 9), ({"maxRecordsPerPartition": "10"}, 5)]
    )
    def test_every_record_is_read_once_however_it_is_split(
        self, spark: Any, cluster: ThreadedCluster, topic: str, split: dict[str, str], tasks: int
    ) -> None:
        fill(cluster, topic, 40, 0, 7)
        frame = source(spark.read, cluster, topic, **split).load()
        assert frame.rdd.getNumPartitions() >= tasks
        assert values(frame) == expected(range(40), range(0), range(7))

    def test_an_empty_topic(self, spark: Any, cluster: ThreadedCluster, topic: str) -> None:
        assert source(spark.read, cluster, topic).load().collect() == []

    def test_beginning_and_end(self, spark: Any, cluster: ThreadedCluster, topic: str) -> None:
        fill(cluster, topic, 10, 10, 10)
        by_offset = source(
            spark.read,
            cluster,
            topic,
            startingOffsets=f'{{"{topic}": {{"0": 3, "1": -2, "2": 9}}}}',
            endingOffsets=f'{{"{topic}": {{"0": 5, "1": 1, "2": -1}}}}',
        )
        assert values(by_offset.load()) == expected(range(3, 5), range(1), range(9, 10))
        by_time = source(spark.read, cluster, topic, startingTimestamp="1004", endingTimestamp="1006")
        assert values(by_time.load()) == expected(*[range(4, 6)] * 3)
        one = {"assign": f'{{"{topic}": [1]}}'}
        options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, **one}
        assert values(spark.read.format("aioproducer").options(**options).load()) == expected(range(0), range(10))

    def test_some_columns_are_read_alone(self, spark: Any, cluster: ThreadedCluster, topic: str) -> None:
        fill(cluster, topic, 5)
        frame = source(spark.read, cluster, topic).schema("offset bigint, topic string").load()
        assert frame.collect() == [(offset, topic) for offset in range(5)]

    def test_the_batch_column_describes_the_batch_of_each_record(
        self, spark: Any, cluster: ThreadedCluster, topic: str
    ) -> None:
        transactions(cluster, topic, "commit", "abort")
        frame = source(spark.read, cluster, topic, includeBatch="true").load()
        rows = frame.select("offset", "key", "batch.*").orderBy("offset").collect()
        assert [(row.offset, row.transactional, row.control) for row in rows] == [
            (offset, True, offset in (2, 5)) for offset in range(6)
        ]
        assert [row.sequence for row in rows][:3] == [0, 1, None]
        assert [row.key for row in rows if row.control] == [b"\0\0\0\1", b"\0\0\0\0"]
        assert len({row.producerId for row in rows}) == 1

    def test_committed_records_alone(self, spark: Any, cluster: ThreadedCluster, topic: str) -> None:
        transactions(cluster, topic, "commit", "abort", "commit")
        found = {}
        for level in ("read_uncommitted", "read_committed"):
            found[level] = values(source(spark.read, cluster, topic, **{"kafka.isolation.level": level}).load())
        assert found["read_committed"] == ["commit 0", "commit 0", "commit 2", "commit 2"]
        assert set(found["read_uncommitted"]) == {"commit 0", "abort 1", "commit 2"}

    def test_rows_that_were_read_can_be_written(self, spark: Any, cluster: ThreadedCluster, topic: str) -> None:
        fill(cluster, topic, 20, 20)
        cluster.create_topic("copy", 3)
        frame = source(spark.read, cluster, topic, includeHeaders="true").load()
        servers = cluster.bootstrap_servers
        writer = frame.write.format("aioproducer").option("kafka.bootstrap.servers", servers).option("topic", "copy")
        writer.mode("append").save()
        columns = ["partition", "offset", "key", "value", "timestamp"]
        copied = source(spark.read, cluster, "copy").load().select(columns)
        assert sorted(copied.collect()) == sorted(frame.select(columns).collect())

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("subscribe", "nosuch", "UnknownTopicOrPartitionException.*nosuch"),
            ("endingOffsets", '{"TOPIC": {"0": 9, "1": -1, "2": -1}}', "up to offset 9, and its log ends at 5"),
            ("kafka.bootstrap.servers", "127.0.0.1:1", "no broker can be reached"),
        ],
    )
    def test_a_wrong_option_is_an_error_before_any_task_runs(
        self, spark: Any, cluster: ThreadedCluster, topic: str, name: str, value: str, message: str
    ) -> None:
        fill(cluster, topic, 5)
        with pytest.raises(Exception, match=f"(?s){message}"):
            source(spark.read, cluster, topic, **{name: value.replace("TOPIC", topic)}).load().collect()

    def test_a_column_of_another_type_is_an_error(self, spark: Any, cluster: ThreadedCluster, topic: str) -> None:
        with pytest.raises(Exception, match='column "offset" is int, but bigint in the source'):
            source(spark.read, cluster, topic).schema("offset int").load().collect()

    def test_lost_records_are_an_error_or_left_out(self, spark: Any, cluster: ThreadedCluster, topic: str) -> None:
        fill(cluster, topic, 10)
        cluster.call(lambda embedded: embedded.log(topic).delete_records(4))
        start = f'{{"{topic}": {{"0": 0, "1": 0, "2": 0}}}}'
        with pytest.raises(Exception, match=r"offset 0 is not in the log of .*: it begins at 4 and ends at 10"):
            source(spark.read, cluster, topic, startingOffsets=start).load().collect()
        left = source(spark.read, cluster, topic, startingOffsets=start, failOnDataLoss="false").load()
        assert values(left) == expected(range(4, 10))


class TestStream:
    @pytest.fixture
    def run(self, spark: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path) -> Callable[..., Any]:
        """Reads on until there is no more, and returns what each batch had; the checkpoint stays."""

        def run(**more: str) -> list[list[str]]:
            batches: list[list[str]] = []
            frame = source(spark.readStream, cluster, topic, **{"startingOffsets": "earliest", **more}).load()
            query = (
                frame.writeStream.foreachBatch(lambda batch, _: batches.append(values(batch)))
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            try:
                assert query.awaitTermination(120)
            finally:
                query.stop()
            return batches

        return run

    def test_wrong_options_are_the_last_error_that_is_shown(self, run: Callable[..., Any]) -> None:
        """Those that load() cannot know, because a batch has them."""
        with pytest.raises(Exception, match="endingOffsets") as raised:
            run(endingOffsets="latest")
        assert 'IllegalArgumentException: option "endingOffsets" is for batches only' in str(raised.value)
        assert "During handling of the above exception" not in str(raised.value)

    def test_a_query_goes_on_where_it_was(self, cluster: ThreadedCluster, topic: str, run: Callable[..., Any]) -> None:
        fill(cluster, topic, 5, 3)
        assert [value for batch in run() for value in batch] == expected(range(5), range(3))
        assert run() == []
        fill(cluster, topic, 2, 0, 4, first=5)
        assert [value for batch in run() for value in batch] == expected(range(5, 7), range(0), range(5, 9))

    def test_a_limit_for_each_batch(self, cluster: ThreadedCluster, topic: str, run: Callable[..., Any]) -> None:
        fill(cluster, topic, 10, 3, 7)
        if not hasattr(DataSourceStreamReader, "getDefaultReadLimit"):
            with pytest.raises(Exception, match=r'"maxOffsetsPerTrigger" needs Spark 4\.2 or newer'):
                run(maxOffsetsPerTrigger="6")
            return
        batches = run(maxOffsetsPerTrigger="6")
        assert [len(batch) for batch in batches] == [6, 6, 6, 2]
        assert sorted(value for batch in batches for value in batch) == expected(range(10), range(3), range(7))

    def test_new_partitions_are_read_from_their_beginning(
        self, cluster: ThreadedCluster, topic: str, run: Callable[..., Any]
    ) -> None:
        fill(cluster, topic, 1)
        run()
        names: Any = pytest.importorskip("confluent_kafka.admin")
        client = names.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        client.create_partitions([names.NewPartitions(topic, 4)])[topic].result(30)
        fill(cluster, topic, 0, 0, 0, 2)
        assert run() == [["3:0", "3:1"]]

    @pytest.mark.parametrize("lenient", [False, True])
    def test_lost_records_are_an_error_or_left_out(
        self, cluster: ThreadedCluster, topic: str, run: Callable[..., Any], lenient: bool
    ) -> None:
        fill(cluster, topic, 3)
        run()
        fill(cluster, topic, 7, first=3)
        cluster.call(lambda embedded: embedded.log(topic).delete_records(8))
        if lenient:
            assert run(failOnDataLoss="false") == [["0:8", "0:9"]]
        else:
            with pytest.raises(Exception, match="-0 begins at offset 8: those from 3 on were deleted"):
                run()

    def test_a_topic_created_anew_is_an_error(
        self, cluster: ThreadedCluster, topic: str, run: Callable[..., Any]
    ) -> None:
        fill(cluster, topic, 3)
        run()
        cluster.delete_topic(topic)
        cluster.create_topic(topic, 3)
        fill(cluster, topic, 1)
        with pytest.raises(Exception, match="ends at offset 1, and it was read up to 3"):
            run()

    def test_a_running_query_sees_what_comes(
        self, spark: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path
    ) -> None:
        """From now on, in a trigger of its own for each; progress has the end that is known."""
        fill(cluster, topic, 5)
        frame = source(spark.readStream, cluster, topic).load().selectExpr("CAST(value AS STRING) AS value")
        query = (
            frame.writeStream.format("memory")
            .queryName("running")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            query.processAllAvailable()
            fill(cluster, topic, 2, first=5)
            query.processAllAvailable()
            found = sorted(row.value for row in spark.table("running").collect())
            progress = next(each for each in reversed(query.recentProgress) if each["numInputRows"])
        finally:
            query.stop()
        assert found == ["0:5", "0:6"]
        assert json.loads(progress["sources"][0]["endOffset"]) == {topic: {"0": 7, "1": 0, "2": 0}}
        assert offsets_behind(progress["sources"][0]) == {(topic, partition): 0 for partition in range(3)}
