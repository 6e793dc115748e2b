"""``aioproducer spark`` on writes that have stopped in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from aioproducer.admin import KafkaAdmin
from aioproducer.errors import KafkaError
from aioproducer.spark.exactly_once.decision import Decision, EpochIncompleteException
from aioproducer.spark.exactly_once.ledger import open_drivers_ledger
from aioproducer.spark.exactly_once.marker import MarkerMismatchException, MissingMarkerException
from aioproducer.spark.exactly_once.prepared import Outcome
from aioproducer.spark.sink.sink_options import SinkOptions
from tests.cli.conftest import Cluster, Run
from tests.spark.foreign import values
from tests.spark.writes.checkpoints import write_checkpoint
from tests.spark.writes.epochs import attempts, commit, options_of, write_epoch

pytest.importorskip("pyarrow")

PARTS = {0: ["a", "b"], 1: ["c"], 2: ["d"]}
OTHERWISE = {0: ["d", "a"], 1: ["b", "c"]}


class Query:
    """A stream under the name ``query``, and the command with its names."""

    def __init__(self, cluster: Cluster, run: Run, directory: Path) -> None:
        self.options = options_of(cluster.servers, allowMissingMarker="false")
        self.directory = directory
        self._servers = cluster.servers
        self._run = run

    def __call__(self, action: str, *more: object, status: int = 0, of: str = "query") -> str:
        found = self._run("spark", action, of, "--topic", "t", "--bootstrap-server", self._servers, *more)
        assert found.status == status, found
        return str(found.out + found.err)

    def write(self, epoch: int, *parts: list[str]) -> None:
        asyncio.run(write_epoch(self.options, epoch, *parts))

    def attempts(self, epoch: int, parts: dict[int, list[str]]) -> list[Outcome]:
        return asyncio.run(attempts(self.options, epoch, parts))

    def decide(self, epoch: int, *, lost: int | None = None) -> None:
        """By a driver that is killed then; one transaction is aborted after that."""

        async def decide() -> None:
            outcomes = await attempts(self.options, epoch, PARTS)
            async with open_drivers_ledger(self.options, "query", "here") as ledger:
                await ledger.take_over()
                await ledger.propose(Decision.of(epoch, outcomes, "here"))
                await ledger.decide()
                if lost is not None:
                    prepared = outcomes[lost].prepared
                    assert prepared is not None
                    assert await ledger.end(prepared, committed=False)

        asyncio.run(decide())

    def run_again(self, epoch: int, parts: dict[int, list[str]]) -> None:
        async def both() -> None:
            await commit(self.options, epoch, await attempts(self.options, epoch, parts))

        asyncio.run(both())

    def read(self) -> list[str]:
        return sorted(values(self._servers, "t"))

    def open(self) -> list[str]:
        async def listed() -> list[str]:
            async with KafkaAdmin(bootstrap_servers=self._servers) as admin:
                return await admin.list_transactions(states=["Ongoing"])

        return asyncio.run(listed())

    def failure_of(self, work: Coroutine[Any, Any, Any], kind: type[KafkaError]) -> str:
        with pytest.raises(kind) as raised:
            asyncio.run(work)
        return str(raised.value)


@pytest.fixture
def query(cluster: Cluster, run: Run, tmp_path: Path) -> Query:
    return Query(cluster, run, tmp_path)


def test_a_write_of_which_nothing_is_known(query: Query) -> None:
    shown = query("show")
    assert "group aioproducer-query-all, at t-0" in shown
    assert "last decision none" in shown
    assert "Brokers know nothing of this write" in shown
    assert "A run of epoch 0 writes all rows\n" in shown
    assert "MissingMarkerException: epoch 3: " in query("show", "--epoch", 3, status=1)


def test_a_write_that_is_in_order(query: Query) -> None:
    query.write(0, ["a"], ["b", "c"])
    shown = query("show")
    assert "last decision epoch 0, 3 rows (digest " in shown
    assert "Brokers know nothing" not in shown
    assert "transactions  2 committed" in shown
    assert "A run of epoch 0 writes nothing, and compares its rows" in shown
    assert "A run of epoch 1 writes all rows\n" in shown
    for action, which in (("finish", "decided"), ("abort", "undecided")):
        assert f"No {which} transaction is open" in query(action, "--yes")


def test_the_checkpoint_names_the_query_and_its_next_epoch(query: Query) -> None:
    query.write(0, ["a"])
    write_checkpoint(query.directory, "query", [0, 1], [0])
    shown = query("show", of=str(query.directory))
    assert shown.count("A run of") == 1
    assert "A run of epoch 1 writes all rows" in shown


def test_a_decision_is_finished_if_that_is_wanted(query: Query) -> None:
    query.decide(0)
    shown = query("show")
    assert "transactions  3 open" in shown
    assert "\taioproducer-query-1.0" not in shown
    line = next(line for line in shown.splitlines() if line.startswith("aioproducer-query-1.0\t"))
    assert line.split("\t")[1] == "Ongoing"
    assert line.endswith(" of 900 s\tdecided")
    assert "; commits 3 transactions of epoch 0" in shown
    planned = query("finish")
    assert "Commits 3 transactions of epoch 0:\n    aioproducer-query-0.0\n" in planned
    assert "Nothing was changed; do it with --yes" in planned
    assert query.read() == []
    assert "transactions  3 committed" in query("finish", "--yes")
    assert query.read() == ["a", "b", "c", "d"]
    query.run_again(0, OTHERWISE)
    assert query.open() == []


def test_transactions_without_a_decision_are_aborted_on_request(query: Query) -> None:
    query.decide(0)
    query.attempts(1, OTHERWISE)
    assert "aborts 2 transactions without a decision" in query("show")
    query("abort")
    assert len(query.open()) == 5
    query("abort", "--yes")
    assert len(query.open()) == 3, "what was decided stays open"
    query("finish", "--yes")
    assert query.read() == ["a", "b", "c", "d"]
    assert query.open() == []


def test_a_driver_that_was_killed_while_it_decided(
    query: Query, cluster: Cluster, run_process: Run, tmp_path: Path
) -> None:
    query.write(0, ["a"])
    beside = Query(cluster, run_process, tmp_path)

    async def propose() -> None:
        outcomes = await attempts(query.options, 1, PARTS)
        async with open_drivers_ledger(query.options, "query", "here") as ledger:
            await ledger.take_over()
            await ledger.propose(Decision.of(1, outcomes, "here"))
            shown = await asyncio.to_thread(beside, "show")
            assert "last decision epoch 0" in shown, "without waiting"
            assert "aioproducer-query-all\tOngoing\t" in shown
            assert "a driver that is deciding, or was killed" in shown
            await asyncio.to_thread(beside, "abort", "--yes")

    asyncio.run(propose())
    assert query.open() == []
    assert query.read() == ["a"]


@pytest.mark.parametrize(
    ("marked", "read"), [(0, ["a", "b", "d"]), (-1, ["a", "a", "b", "b", "c", "d", "d"])], ids=["accepted", "anew"]
)
def test_an_epoch_that_is_incomplete_in_partitions_that_cannot_be_made_again(
    query: Query, marked: int, read: list[str]
) -> None:
    query.decide(0, lost=1)
    query("mark", "--epoch", marked, "--yes", status=1)  # what is decided and open would be lost
    assert "transactions  2 committed, 1 lost" in query("finish", "--yes", status=1)
    again = query.attempts(0, OTHERWISE)
    message = query.failure_of(commit(query.options, 0, again), EpochIncompleteException)
    assert "aioproducer spark show query --topic t --bootstrap-server 127.0.0.1:" in message
    assert "Sets the marker to epoch" in query("mark", "--epoch", marked)
    assert "1 lost" in query("show", status=1), "nothing was changed"
    query("mark", "--epoch", marked, "--yes")
    query.run_again(0, OTHERWISE)
    query.run_again(0, OTHERWISE)
    query.write(1, ["next"])
    assert query.read() == [*read, "next"]


def test_markers_of_an_epoch_that_is_written_anew_prove_nothing(query: Query) -> None:
    query.write(0, ["a"], ["b"])
    query("mark", "--epoch", -1, "--yes")
    query.decide(0, lost=1)
    assert "1 lost" in query("show", status=1)
    query.run_again(0, PARTS)
    assert query.read() == ["a", "a", "b", "b", "c", "d"]


def test_a_missing_marker_is_set(query: Query) -> None:
    attempt = attempts(query.options, 4, PARTS)
    message = query.failure_of(attempt, MissingMarkerException)
    assert "aioproducer spark show query --topic t" in message
    query("mark", "--epoch", 3, "--yes")
    query.run_again(4, PARTS)
    query.run_again(4, OTHERWISE)
    assert query.read() == ["a", "b", "c", "d"]


def test_rows_that_differ_are_accepted(query: Query) -> None:
    query.write(0, ["a"])
    other = query.attempts(0, {0: ["other"]})
    message = query.failure_of(commit(query.options, 0, other), MarkerMismatchException)
    assert "aioproducer spark show query" in message
    query("mark", "--epoch", 0, "--yes")
    query.run_again(0, {0: ["other"]})
    assert "whatever rows it has, because its marker was set by hand" in query("show")
    query.write(1, ["next"])
    assert query.read() == ["a", "next"]


def test_an_offset_that_is_no_marker_is_shown_and_replaced(query: Query) -> None:
    async def foreign() -> None:
        async with open_drivers_ledger(query.options, "query", "here") as ledger:
            await ledger.take_over()
            await ledger._producer.begin_transaction()
            offset = Decision.set_by_hand(7).as_offsets()[0]
            place = {query.options.marker_place: type(offset)(7, "others")}
            await ledger._producer.send_offsets_to_transaction(place, ledger.whole)
            await ledger.decide()

    asyncio.run(foreign())
    assert "has committed 'others', which is not a marker of this sink" in query("show", status=1)
    query("finish")
    query("mark", "--epoch", 7, "--yes")
    query.write(8, ["next"])
    assert query.read() == ["next"]


def test_batches_have_a_write_id(cluster: Cluster, run: Run) -> None:
    options = SinkOptions.of(
        {
            "kafka.bootstrap.servers": cluster.servers,
            "topic": "t",
            "deliveryGuarantee": "exactly-once",
            "writeId": "the orders",
            "transactionalIdPrefix": "p",
        },
        streaming=False,
    )
    from aioproducer.spark.exactly_once.way_out import command

    text = command(options, "the orders")
    assert text == (
        f"aioproducer spark show --write-id 'the orders' --topic t --prefix p --bootstrap-server {cluster.servers}"
    )
    shown = run("spark", "show", "--write-id", "the orders", "--topic", "t", "--prefix", "p",
                "--bootstrap-server", cluster.servers)  # fmt: skip
    assert shown.status == 0
    assert "the orders, batches" in shown.out
    assert "group p-the orders-all" in shown.out


@pytest.mark.parametrize("names", [[], ["query", "--write-id", "w"]])
def test_one_write_is_named(run: Run, names: list[str]) -> None:
    found = run("spark", "show", *names, "--topic", "t")
    assert found.status == 2
    assert "name a query, or the --write-id of batches" in found.err


def test_a_directory_that_is_no_checkpoint(run: Run, tmp_path: Path) -> None:
    found = run("spark", "show", tmp_path, "--topic", "t")
    assert found.status == 1
    assert "is not the checkpoint of a streaming query" in found.err


@pytest.mark.parametrize("name", ["{}/gone", "gone/", "hdfs:/checkpoints/orders", "./gone"])
@pytest.mark.parametrize("action", [["show"], ["mark", "--epoch", "3", "--yes"]], ids=["show", "mark"])
def test_a_directory_that_is_not_there_is_no_id(run: Run, tmp_path: Path, name: str, action: list[str]) -> None:
    found = run("spark", *action, name.format(tmp_path), "--topic", "t")
    assert found.status == 2
    assert "is neither a directory of this machine nor the id of a query" in found.err
