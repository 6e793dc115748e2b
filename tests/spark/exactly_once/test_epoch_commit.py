"""The driver's part of exactly-once, with the embedded broker and without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence

import pytest

from aioproducer import KafkaProducer
from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.faults.faults import ReceivedRequest, RequestFault
from aioproducer.errors import IllegalStateException, ProducerFencedException
from aioproducer.protocol.api_key import ApiKey
from aioproducer.spark.exactly_once import two_phases
from aioproducer.spark.exactly_once.decision import (
    Decision,
    EpochIncompleteException,
    EpochLostException,
    EpochNotCommittedException,
)
from aioproducer.spark.exactly_once.epoch_commit import abort_epoch
from aioproducer.spark.exactly_once.inspection import inspect_write
from aioproducer.spark.exactly_once.ledger import KafkaDriversLedger, open_drivers_ledger
from aioproducer.spark.exactly_once.marker import Marker, MarkerMismatchException, MissingMarkerException
from aioproducer.spark.exactly_once.prepared import Outcome, Prepared, prepared_of
from aioproducer.spark.exactly_once.write_state import Fate
from aioproducer.spark.sink.sink_options import SinkOptions
from aioproducer.testing.faults.fault_script import FaultScript
from aioproducer.types import OffsetAndMetadata, TopicPartition
from tests.spark.writes.epochs import attempt, attempts, commit, open_transactions, options, read, write_epoch

pytest.importorskip("pyarrow")

pytestmark = pytest.mark.once

PARTS = {0: ["a", "b"], 1: ["c"], 2: ["d"]}
OTHERWISE = {0: ["d", "a"], 1: ["b", "c"]}
ROWS = ["a", "b", "c", "d"]


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(2) as cluster:
        cluster.create_topic("t", 1)
        yield cluster


@pytest.fixture
def chosen(cluster: EmbeddedCluster) -> SinkOptions:
    return options(cluster)


async def decide_only(chosen: SinkOptions, epoch: int, outcomes: Sequence[Outcome]) -> None:
    """A driver that is killed when it has decided, and has ended nothing."""
    async with open_drivers_ledger(chosen, "query", "here") as ledger:
        await ledger.take_over()
        await ledger.propose(Decision.of(epoch, outcomes, "here"))
        await ledger.decide()


async def end(chosen: SinkOptions, one: Prepared, *, committed: bool) -> bool:
    async with open_drivers_ledger(chosen, "query", "here") as ledger:
        return await ledger.end(one, committed=committed)


async def test_an_epoch_is_committed_once_and_compared_when_it_is_run_again(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    await commit(chosen, 5, outcomes)
    assert cluster.committed_offsets("aioproducer-query-all") == {("t", 0): 5}
    await commit(chosen, 5, outcomes)
    await commit(chosen, 5, await attempts(chosen, 5, PARTS))
    with pytest.raises(MarkerMismatchException, match=r"epoch 5 of query: .* with 4 rows .* 3 partitions, and has 5"):
        await commit(chosen, 5, await attempts(chosen, 5, {**PARTS, 3: ["e"]}))
    assert sorted(await read(cluster)) == ROWS
    assert await open_transactions(cluster) == []


async def test_other_partitions_than_before_do_no_harm(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    """Other cores, AQE, dynamic allocation: before the decision, after it, and when all is over."""
    await attempts(chosen, 5, {0: ["a", "b"], 2: ["d"]})  # and the driver is killed
    outcomes = await attempts(chosen, 5, OTHERWISE)
    await decide_only(chosen, 5, outcomes)
    await commit(chosen, 5, await attempts(chosen, 5, PARTS))
    assert sorted(await read(cluster)) == ROWS
    await commit(chosen, 5, await attempts(chosen, 5, {0: ROWS}))
    assert sorted(await read(cluster)) == ROWS
    assert await open_transactions(cluster) == []
    await write_epoch(chosen, 6, ["e"])
    assert sorted(await read(cluster)) == [*ROWS, "e"]


@pytest.mark.parametrize("ended", [0, 1, 3])
async def test_a_driver_killed_between_decision_and_end(
    cluster: EmbeddedCluster, chosen: SinkOptions, ended: int
) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    await decide_only(chosen, 5, outcomes)
    for one in prepared_of(outcomes)[:ended]:
        assert await end(chosen, one, committed=True)
    again = await attempts(chosen, 5, PARTS)
    assert prepared_of(again) == [], "tasks finish what was decided, and write nothing"
    assert sorted(await read(cluster)) == ROWS
    await commit(chosen, 5, again)
    assert sorted(await read(cluster)) == ROWS
    assert cluster.log("t").log_end_offset == 7, "four rows, and the ends of three transactions"


@pytest.mark.parametrize("ended", [0, 1, 3])
async def test_the_next_epoch_finishes_one_that_was_decided(
    cluster: EmbeddedCluster, chosen: SinkOptions, ended: int
) -> None:
    """A batch whose driver was killed, and that is not run again: the next one has another ``writeEpoch``."""
    outcomes = await attempts(chosen, 5, PARTS)
    await decide_only(chosen, 5, outcomes)
    for one in prepared_of(outcomes)[:ended]:
        assert await end(chosen, one, committed=True)
    await attempt(chosen, 5, 1, ["undecided"], number=7)
    await write_epoch(chosen, 6, ["e"], ["f"])
    assert sorted(await read(cluster)) == [*ROWS, "e", "f"]
    assert await open_transactions(cluster) == []


class Counting(FaultScript):
    """Counts requests, and does nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[ApiKey] = Counter()

    def on_request(self, request: ReceivedRequest) -> RequestFault | None:
        self.seen[ApiKey(request.header.api_key)] += 1
        return super().on_request(request)


async def test_a_driver_sends_one_request_more_for_each_task() -> None:
    """Its EndTxn: the markers of the epoch before come all at once."""
    requests = Counting()
    async with EmbeddedCluster(1, faults=requests) as cluster:
        cluster.create_topic("t", 1)
        chosen = options(cluster)
        sent = []
        for epoch, tasks in enumerate((2, 2, 6, 6)):
            outcomes = await attempts(chosen, epoch, {partition: ["x"] for partition in range(tasks)})
            requests.seen.clear()
            await commit(chosen, epoch, outcomes)
            sent.append(requests.seen.copy())
    _, of_two, _, of_six = sent
    assert of_six[ApiKey.END_TXN] - of_two[ApiKey.END_TXN] == 4
    assert of_six[ApiKey.FIND_COORDINATOR] == of_two[ApiKey.FIND_COORDINATOR]
    assert of_six[ApiKey.OFFSET_FETCH] < 6


async def test_a_driver_killed_before_its_decision_was_in_force(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    async with open_drivers_ledger(chosen, "query", "here") as killed:
        await killed.take_over()
        await killed.propose(Decision.of(5, outcomes, "here"))
        await commit(chosen, 5, outcomes)
        with pytest.raises(ProducerFencedException):
            await killed.decide()
        assert await killed.left_open() == []
    assert sorted(await read(cluster)) == ROWS


async def test_a_transaction_that_is_gone_before_the_decision(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    assert await end(chosen, prepared_of(outcomes)[1], committed=False)
    with pytest.raises(
        EpochNotCommittedException,
        match=r"^epoch 5 of query: .* partition 1 is no longer open.*transaction\.timeout\.ms",
    ):
        await commit(chosen, 5, outcomes)
    await abort_epoch(chosen, "query", 5, prepared_of(outcomes))
    assert await open_transactions(cluster) == []
    assert await read(cluster) == []
    assert cluster.committed_offsets("aioproducer-query-all") == {}
    await write_epoch(chosen, 5, ROWS)
    assert await read(cluster) == ROWS


async def test_one_write_id_for_two_topics_at_the_same_time(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("other", 1)
    first, second = (options(cluster, writeId="query", topic=topic) for topic in ("t", "other"))
    mine, others = await attempts(first, 0, PARTS), await attempts(second, 0, {0: ["x"]})
    await commit(second, 0, others)
    with pytest.raises(EpochNotCommittedException, match="or another attempt, driver or write of this name has ended"):
        await commit(first, 0, mine)
    assert await read(cluster) == []
    for chosen, parts in ((first, PARTS), (second, {0: ["x"]})):
        await commit(chosen, 0, await attempts(chosen, 0, parts))
    assert sorted(await read(cluster)) == ROWS
    assert await read(cluster, "other") == ["x"]


async def test_one_write_id_for_two_topics_one_after_the_other(cluster: EmbeddedCluster) -> None:
    """As in a foreachBatch whose driver is killed when it has decided about the second one."""
    cluster.create_topic("other", 1)
    first, second = (options(cluster, writeId="query", topic=topic) for topic in ("t", "other"))
    await commit(first, 3, await attempts(first, 3, PARTS))
    await decide_only(second, 3, await attempts(second, 3, {0: ["x"], 1: ["y"]}))
    await commit(first, 3, await attempts(first, 3, OTHERWISE))
    again = await attempts(second, 3, {0: ["y", "x"]})
    assert prepared_of(again) == [], "what was decided there has not been aborted here"
    await commit(second, 3, again)
    for chosen in (first, second):
        await commit(chosen, 4, await attempts(chosen, 4, {0: ["next"]}))
    assert sorted(await read(cluster)) == [*ROWS, "next"]
    assert sorted(await read(cluster, "other")) == ["next", "x", "y"]
    assert await open_transactions(cluster) == []


async def test_a_transaction_with_too_little_time_left(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    with pytest.raises(EpochNotCommittedException, match=r"partition 0 has [0-9]+ ms left, of .* = 100000000"):
        async with open_drivers_ledger(chosen, "query", "here") as ledger:
            await two_phases.commit(ledger, 5, outcomes, 100_000_000, "epoch 5")
    assert cluster.committed_offsets("aioproducer-query-all") == {}


async def test_the_next_epoch_is_refused_while_the_one_before_is_incomplete(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    await decide_only(chosen, 5, outcomes)
    assert await end(chosen, prepared_of(outcomes)[1], committed=False)
    with pytest.raises(EpochIncompleteException, match=r"^epoch 6 .*, and epoch 5 before it: .* partitions \(1\)"):
        await write_epoch(chosen, 6, ["e"])
    assert sorted(await read(cluster)) == ["a", "b", "d"]
    await write_epoch(chosen, 5, *PARTS.values())
    await write_epoch(chosen, 6, ["e"])
    assert sorted(await read(cluster)) == [*ROWS, "e"]
    assert await open_transactions(cluster) == []


async def test_a_transaction_that_is_lost_after_the_decision_is_written_again(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    await decide_only(chosen, 5, outcomes)
    assert await end(chosen, prepared_of(outcomes)[1], committed=False)
    with pytest.raises(
        EpochIncompleteException,
        match=r"the rows of 1 of 3 partitions \(1\) were aborted .* with the same 3 partitions",
    ):
        await commit(chosen, 5, await attempts(chosen, 5, OTHERWISE))
    assert sorted(await read(cluster)) == ["a", "b", "d"]
    with pytest.raises(MarkerMismatchException, match="other rows"):
        await commit(chosen, 5, await attempts(chosen, 5, {**PARTS, 1: ["another"]}))
    again = await attempts(chosen, 5, PARTS)
    assert [one.partition for one in prepared_of(again)] == [1]
    await commit(chosen, 5, again)
    assert sorted(await read(cluster)) == ROWS
    assert await open_transactions(cluster) == []


async def test_a_transaction_that_brokers_have_forgotten_is_not_taken_for_lost(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    """Its rows may be in the topic: it may have been committed, and its marker may have expired."""
    outcomes = await attempts(chosen, 5, {0: ["a"], 1: ["b"]})
    expired = Prepared(1, 3, 12345, 0, True)
    await end(chosen, prepared_of(outcomes)[1], committed=False)
    await decide_only(chosen, 5, [outcomes[0], outcomes[1]._replace(prepared=expired)])
    for epoch in (5, 6):
        with pytest.raises(MissingMarkerException, match=rf"epoch {epoch} .* partitions 1 were decided"):
            await commit(chosen, epoch, await attempts(chosen, epoch, {0: ["a"], 1: ["b"]}))
    state = await inspect_write(chosen, "query")
    assert [one.partition for one in state.decided(Fate.FORGOTTEN)] == [1]
    assert await read(cluster) == ["a"]


def recreate(cluster: EmbeddedCluster) -> None:
    cluster.delete_topic("t")
    cluster.create_topic("t", 1)


IS_GONE = r"epoch 5 are committed, and the markers of 3 partitions \(0, 1, 2\).* topic 't', are gone.*created anew"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_phases, "PAUSES", (0.0,) * len(two_phases.PAUSES))


async def test_a_marker_that_is_shown_late(
    cluster: EmbeddedCluster, chosen: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Group coordinators before Kafka 4.0 complete a transaction's offsets after its end was answered."""
    markers, looks = KafkaDriversLedger.markers, 0

    async def late(ledger: KafkaDriversLedger, partitions: Sequence[int]) -> dict[int, Marker | None]:
        nonlocal looks
        looks += 1
        found = await markers(ledger, partitions)
        return dict.fromkeys(found) if looks < 5 else found

    outcomes = await attempts(chosen, 5, PARTS)
    monkeypatch.setattr(KafkaDriversLedger, "markers", late)
    await commit(chosen, 5, outcomes)
    assert looks == 5
    assert sorted(await read(cluster)) == ROWS


@pytest.mark.parametrize("is_first", [True, False])
async def test_a_topic_that_is_created_anew_before_the_commit(
    cluster: EmbeddedCluster, chosen: SinkOptions, is_first: bool
) -> None:
    """The commit of its transactions succeeds, and no row can be read."""
    if not is_first:
        await write_epoch(chosen, 4, ["before"])
    outcomes = await attempts(chosen, 5, PARTS)
    recreate(cluster)
    with pytest.raises(EpochLostException, match=f"^epoch 5 of query: .*{IS_GONE}.* aioproducer spark show query"):
        await commit(chosen, 5, outcomes)
    await abort_epoch(chosen, "query", 5, prepared_of(outcomes))
    with pytest.raises(EpochLostException, match=IS_GONE):
        await commit(chosen, 5, await attempts(chosen, 5, OTHERWISE))
    async with open_drivers_ledger(chosen, "query", "here") as ledger:
        await two_phases.set_by_hand(ledger, 4)
    await write_epoch(chosen, 5, *PARTS.values())
    assert sorted(await read(cluster)) == ROWS
    assert await open_transactions(cluster) == []


async def test_a_topic_that_is_created_anew_between_decision_and_commit(
    cluster: EmbeddedCluster, chosen: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision is gone as well."""
    decide = KafkaDriversLedger.decide
    outcomes = await attempts(chosen, 5, PARTS)

    async def and_delete(ledger: KafkaDriversLedger) -> None:
        await decide(ledger)
        recreate(cluster)

    with monkeypatch.context() as patch:
        patch.setattr(KafkaDriversLedger, "decide", and_delete)
        with pytest.raises(EpochLostException, match=IS_GONE):
            await commit(chosen, 5, outcomes)
    assert (await inspect_write(chosen, "query")).decision is None
    await write_epoch(chosen, 5, *PARTS.values())
    assert sorted(await read(cluster)) == ROWS


async def test_the_next_epoch_names_the_topic_that_was_created_anew(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    """A batch whose driver was killed after its commit, and before it had looked at the markers."""
    outcomes = await attempts(chosen, 5, PARTS)
    recreate(cluster)
    await decide_only(chosen, 5, outcomes)
    for one in prepared_of(outcomes)[:2]:
        assert await end(chosen, one, committed=True)
    state = await inspect_write(chosen, "query")
    assert [one.partition for one in state.decided(Fate.GONE)] == [0, 1]
    for rows in ["e"], ["f"]:
        with pytest.raises(EpochLostException, match=r"^epoch 6 of query, and epoch 5 before it: .* \(2\).*'t'"):
            await write_epoch(chosen, 6, rows, rows)
    assert await end(chosen, prepared_of(outcomes)[2], committed=True)
    await attempt(chosen, 6, 2, ["takes over the transactional id"])
    with pytest.raises(EpochIncompleteException, match=r"\(0, 1, 2\).* or topic 't' was deleted and created anew"):
        await write_epoch(chosen, 6, ["e"], ["f"])


async def test_a_transaction_that_is_lost_while_the_driver_decides(
    cluster: EmbeddedCluster, chosen: SinkOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = KafkaDriversLedger.decide
    outcomes = await attempts(chosen, 5, PARTS)

    async def and_lose(ledger: KafkaDriversLedger) -> None:
        await decide(ledger)
        assert await ledger.end(prepared_of(outcomes)[2], committed=False)

    with monkeypatch.context() as patch:
        patch.setattr(KafkaDriversLedger, "decide", and_lose)
        with pytest.raises(EpochIncompleteException, match=r"\(2\) were .*transaction\.timeout\.ms = 900000"):
            await commit(chosen, 5, outcomes)
    await abort_epoch(chosen, "query", 5, prepared_of(outcomes))
    assert sorted(await read(cluster)) == ["a", "b", "c"]
    await commit(chosen, 5, await attempts(chosen, 5, PARTS))
    assert sorted(await read(cluster)) == ROWS


async def test_a_transaction_that_was_committed_is_not_lost_when_its_id_has_another_owner(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    """Its coordinator does not know any more how it has ended; its marker does."""
    outcomes = await attempts(chosen, 5, PARTS)
    await decide_only(chosen, 5, outcomes)
    assert await end(chosen, prepared_of(outcomes)[1], committed=True)
    name = "aioproducer-query-1.0"
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=name) as late:
        await late.init_transactions()
        assert not await end(chosen, prepared_of(outcomes)[1], committed=True)
        await commit(chosen, 5, await attempts(chosen, 5, OTHERWISE))
    assert sorted(await read(cluster)) == ROWS


async def test_an_epoch_that_fails_leaves_nothing_open_that_the_driver_knows_of(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    await attempt(chosen, 5, 1, ["c"], number=7)  # one that Spark did not count, or of another driver
    await abort_epoch(chosen, "query", 5, prepared_of(outcomes))
    assert await open_transactions(cluster) == ["aioproducer-query-1.7"]
    assert await read(cluster) == []
    await write_epoch(chosen, 5, ["a"])
    assert await open_transactions(cluster) == []
    assert await read(cluster) == ["a"]


async def test_a_decided_epoch_is_not_aborted(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    """Spark aborts an epoch when its commit has failed."""
    outcomes = await attempts(chosen, 5, PARTS)
    await decide_only(chosen, 5, outcomes)
    await abort_epoch(chosen, "query", 5, prepared_of(outcomes))
    assert sorted(await read(cluster)) == ROWS


async def test_an_epoch_after_which_others_were_committed_is_refused(chosen: SinkOptions) -> None:
    await write_epoch(chosen, 5, ["a"])
    with pytest.raises(MarkerMismatchException, match="epoch 5 was written already"):
        await commit(chosen, 4, [Outcome(0, 0, "0", None)])


async def test_partitions_that_are_missing_are_no_epoch(chosen: SinkOptions) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    with pytest.raises(IllegalStateException, match=r"partitions \[0, 2\]: some are missing"):
        await commit(chosen, 5, [outcomes[0], outcomes[2]])


async def test_writes_with_similar_names_are_none_of_its_business(
    cluster: EmbeddedCluster, chosen: SinkOptions
) -> None:
    names = ["aioproducer-query-5-0.0", "aioproducer-que-0.0", "aioproducer-query-x", "aioproducer-query-3"]
    producers = [KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=name) for name in names]
    for producer in producers:
        await producer.start()
        await producer.init_transactions()
        await producer.begin_transaction()
        await (await producer.enqueue("t", b"another", partition=0))
    await write_epoch(chosen, 5, ["a"])
    assert await open_transactions(cluster) == sorted(names)
    for producer in producers:
        await producer.close()


@pytest.mark.parametrize("partition", [0, 1])
async def test_an_epoch_that_an_older_version_has_begun_is_refused(
    cluster: EmbeddedCluster, chosen: SinkOptions, partition: int
) -> None:
    """Its tasks ended their own transactions."""
    group = f"aioproducer-query-{partition}"
    await commit_offset(cluster, group, 5, '{"version":2,"epoch":5,"rows":1,"digest":"00"}')
    with pytest.raises(MarkerMismatchException, match=rf"partition {partition} was committed .* an older version of"):
        await write_epoch(chosen, 5, ["a"])
    assert await read(cluster) == []


@pytest.mark.parametrize("version", [2, 3])
async def test_an_epoch_after_one_of_an_older_version(
    cluster: EmbeddedCluster, chosen: SinkOptions, version: int
) -> None:
    """The older one's is not written again: its digest cannot be compared."""
    of_older = f'{{"version":{version},"epoch":5,"rows":1,"digest":"00"'
    await commit_offset(cluster, "aioproducer-query-all", 5, f'{of_older},"partitions":1,"run":"r"}}')
    await commit_offset(cluster, "aioproducer-query-0", 5, f"{of_older}}}")
    again = await attempts(chosen, 5, {0: ["older"]})
    assert prepared_of(again) == []
    with pytest.raises(MarkerMismatchException, match="finish this epoch with the version that began it"):
        await commit(chosen, 5, again)
    await write_epoch(chosen, 6, ["newer"])
    assert await read(cluster) == ["newer"]


async def commit_offset(cluster: EmbeddedCluster, group: str, offset: int, metadata: str) -> None:
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="older") as producer:
        await producer.init_transactions()
        async with producer.transaction():
            place = {TopicPartition("t", 0): OffsetAndMetadata(offset, metadata)}
            await producer.send_offsets_to_transaction(place, group)


async def test_thousands_of_partitions_have_a_decision_in_pieces(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    many = tuple(Prepared(number, 0, 10**6 + 7 * number, number % 9, True) for number in range(3000))
    decision = Decision(5, 1, "00", len(many), many)
    async with open_drivers_ledger(chosen, "query", "here") as ledger:
        await ledger.take_over()
        await ledger.propose(decision)
        await ledger.decide()
        assert await ledger.decision() == decision
    assert len(decision.as_offsets()) > 2
    assert all(len(piece.metadata) <= 4096 for piece in decision.as_offsets())


async def test_ends_that_nobody_heard_of_are_repeated(cluster: EmbeddedCluster, chosen: SinkOptions) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    for one in prepared_of(outcomes):
        assert [await end(chosen, one, committed=True) for _ in range(2)] == [True, True]
        assert not await end(chosen, one, committed=False)
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        assert await admin.describe_transactions(["nobody"]) == {"nobody": None}
