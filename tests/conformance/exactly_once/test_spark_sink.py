"""The protocol of the Spark sink on real Kafka: attempts, decisions, and a foreign reader. Needs no Spark."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from aioproducer.admin import KafkaAdmin
from aioproducer.errors import KafkaError
from aioproducer.spark.exactly_once.decision import (
    Decision,
    EpochIncompleteException,
    EpochLostException,
    EpochNotCommittedException,
)
from aioproducer.spark.exactly_once.epoch_commit import abort_epoch
from aioproducer.spark.exactly_once.inspection import inspect_write
from aioproducer.spark.exactly_once.ledger import open_drivers_ledger
from aioproducer.spark.exactly_once.marker import MarkerMismatchException
from aioproducer.spark.exactly_once.prepared import names_of, prepared_of
from aioproducer.spark.exactly_once.two_phases import abort_undecided, finish, set_by_hand
from aioproducer.spark.exactly_once.write_state import Fate
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from tests.conformance.topics import create_topic
from tests.spark.foreign import values
from tests.spark.writes.epochs import attempt, attempts, batches, commit, options_of, write_epoch

pytestmark = pytest.mark.conformance

pytest.importorskip("pyarrow")

ROWS = [f"row {number}" for number in range(3000)]
PARTS = {0: ROWS[:1000], 1: ROWS[1000:1500], 2: ROWS[1500:]}
OTHERWISE = {0: ROWS[2000:], 1: ROWS[:2000]}


async def read(kafka: ApacheKafka, topic: str) -> list[str]:
    return sorted(await asyncio.to_thread(values, kafka.bootstrap_servers, topic, 2))


async def open_transactions(kafka: ApacheKafka, prefix: str) -> list[str]:
    async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        return [name for name in await admin.list_transactions(states=["Ongoing"]) if name.startswith(prefix)]


async def begun(kafka: ApacheKafka, prefix: str) -> None:
    """Returns when a transaction is open."""
    while not await open_transactions(kafka, prefix):
        pass


async def test_each_row_is_read_once_whatever_becomes_of_its_task(kafka: ApacheKafka) -> None:
    topic = "spark-tasks"
    await create_topic(kafka, topic, partitions=2)
    options = options_of(kafka.bootstrap_servers, topic=topic, transactionalIdPrefix=topic)

    def broken() -> Iterator[Any]:
        yield from batches(ROWS[:2000], 1000)
        raise LookupError("the task fails")

    half, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Any]:
        yield from batches(ROWS[:2000], 1000)
        half.set()
        assert go_on.wait(60)
        yield from batches(ROWS[2000:], 1000)

    with pytest.raises(LookupError):
        await attempt(options, 7, 0, broken())
    assert await open_transactions(kafka, topic) == []
    copy = asyncio.ensure_future(attempt(options, 7, 0, slow()))  # of a stage that was begun anew: the same number
    assert await asyncio.to_thread(half.wait, 60)
    await begun(kafka, topic)
    outcomes = [await attempt(options, 7, 0, ROWS), await attempt(options, 7, 1, ["the other task's"])]
    assert await open_transactions(kafka, topic) == [names_of(topic, "query") + slot for slot in ("0.0", "0.1", "1.0")]
    assert await read(kafka, topic) == []
    await commit(options, 7, outcomes)
    go_on.set()
    with pytest.raises(KafkaError, match=r"(?i)fenced|newer producer|epoch"):
        await copy
    expected = sorted([*ROWS, "the other task's"])
    assert await read(kafka, topic) == expected
    again = [await attempt(options, 7, 0, ROWS[::-1]), await attempt(options, 7, 1, ["the other task's"])]
    assert prepared_of(again) == []
    await commit(options, 7, again)
    with pytest.raises(MarkerMismatchException, match=r"3001 rows .* in 2 partitions"):
        await commit(options, 7, again[:1])
    await write_epoch(options, 8, ["next"])
    assert await read(kafka, topic) == sorted([*expected, "next"])
    assert await open_transactions(kafka, topic) == []


async def test_a_driver_killed_between_decision_and_end(kafka: ApacheKafka) -> None:
    topic = "spark-driver"
    await create_topic(kafka, topic, partitions=2)
    options = options_of(kafka.bootstrap_servers, topic=topic, transactionalIdPrefix=topic)
    for epoch, repeated in enumerate([PARTS, OTHERWISE, {0: ROWS}]):
        outcomes = await attempts(options, epoch, PARTS)
        async with open_drivers_ledger(options, "query", "here") as killed:
            await killed.take_over()
            await killed.propose(Decision.of(epoch, outcomes, "here"))
            assert all(800_000 < (left or 0) <= 900_000 for left in await killed.time_left(prepared_of(outcomes)))
            await killed.decide()
            if epoch == 1:
                for _ in range(2):
                    assert await killed.end(prepared_of(outcomes)[1], committed=True)
                assert not await killed.end(prepared_of(outcomes)[1], committed=False)
        again = await attempts(options, epoch, repeated)
        assert prepared_of(again) == []
        await commit(options, epoch, again)
        assert await read(kafka, topic) == sorted(ROWS * (epoch + 1))
    assert await open_transactions(kafka, topic) == []


async def test_a_batch_that_is_decided_and_not_run_again_is_committed_by_the_next_one(kafka: ApacheKafka) -> None:
    """Also if the next one goes to another topic first, under the same name."""
    topic, other = "spark-skipped", "spark-skipped-other"
    options, others = (
        options_of(kafka.bootstrap_servers, topic=name, transactionalIdPrefix=topic, writeId="query")
        for name in (topic, other)
    )
    for name in (topic, other):
        await create_topic(kafka, name, partitions=2)
    outcomes = await attempts(options, 0, PARTS)
    async with open_drivers_ledger(options, "query", "here") as killed:
        await killed.take_over()
        await killed.propose(Decision.of(0, outcomes, "here"))
        await killed.decide()
        assert await killed.end(prepared_of(outcomes)[0], committed=True)
    for chosen in (others, options):
        await commit(chosen, 1, await attempts(chosen, 1, {0: ["next"]}))
    assert await open_transactions(kafka, topic) == []
    assert await read(kafka, topic) == sorted([*ROWS, "next"])
    assert await read(kafka, other) == ["next"]


async def test_a_driver_waits_in_its_take_over_until_it_knows_what_was_decided(kafka: ApacheKafka) -> None:
    """Another driver is deciding meanwhile. What is read after the take-over does not change any more."""
    topic = "spark-take-over"
    await create_topic(kafka, topic, partitions=2)
    options = options_of(kafka.bootstrap_servers, topic=topic, transactionalIdPrefix=topic)
    ahead_ms = 0.0
    for epoch in range(24):
        outcomes = await attempts(options, epoch, {0: [f"epoch {epoch}"]})
        async with (
            open_drivers_ledger(options, "query", "old") as old,
            open_drivers_ledger(options, "query", "new") as new,
        ):
            await old.take_over()
            await old.propose(Decision.of(epoch, outcomes, "old"))
            taking_over = asyncio.ensure_future(new.take_over())
            await asyncio.sleep(ahead_ms / 1000)
            deciding = asyncio.ensure_future(old.decide())
            await taking_over
            seen = await new.decision()
            (error,) = await asyncio.gather(deciding, return_exceptions=True)
            assert await new.decision() == seen
        assert error is None or isinstance(error, KafkaError)
        if seen is not None and seen.epoch == epoch:
            ahead_ms += 0.2
        else:
            assert error is not None, "a decision that was acknowledged is in force"
            ahead_ms = max(ahead_ms - 0.2, 0)
            outcomes = await attempts(options, epoch, {0: [f"epoch {epoch}"]})
        await commit(options, epoch, outcomes)
    assert await read(kafka, topic) == sorted(f"epoch {epoch}" for epoch in range(24))
    assert await open_transactions(kafka, topic) == []


async def test_other_partitions_after_a_driver_that_is_killed_when_tasks_have_ended(kafka: ApacheKafka) -> None:
    topic = "spark-partitions"
    await create_topic(kafka, topic, partitions=2)
    options = options_of(kafka.bootstrap_servers, topic=topic, transactionalIdPrefix=topic)
    await attempts(options, 0, PARTS)
    assert len(await open_transactions(kafka, topic)) == 3
    await commit(options, 0, await attempts(options, 0, OTHERWISE))
    assert await open_transactions(kafka, topic) == []
    assert await read(kafka, topic) == sorted(ROWS)


async def test_transactions_that_are_lost_before_and_after_the_decision(kafka: ApacheKafka) -> None:
    topic = "spark-lost"
    await create_topic(kafka, topic, partitions=2)
    options = options_of(kafka.bootstrap_servers, topic=topic, transactionalIdPrefix=topic)
    outcomes = await attempts(options, 0, PARTS)
    async with open_drivers_ledger(options, "query", "here") as ledger:
        assert await ledger.end(prepared_of(outcomes)[1], committed=False)
    with pytest.raises(EpochNotCommittedException, match="partition 1 is no longer open"):
        await commit(options, 0, outcomes)
    await abort_epoch(options, "query", 0, prepared_of(outcomes))
    assert await open_transactions(kafka, topic) == []
    assert await read(kafka, topic) == []
    outcomes = await attempts(options, 0, PARTS)
    async with open_drivers_ledger(options, "query", "here") as ledger:
        await ledger.take_over()
        await ledger.propose(Decision.of(0, outcomes, "here"))
        await ledger.decide()
        assert await ledger.end(prepared_of(outcomes)[2], committed=False)
    with pytest.raises(EpochIncompleteException, match=r"1 of 3 partitions \(2\)"):
        await commit(options, 0, await attempts(options, 0, OTHERWISE))
    again = await attempts(options, 0, PARTS)
    assert [one.partition for one in prepared_of(again)] == [2]
    await commit(options, 0, again)
    assert await read(kafka, topic) == sorted(ROWS)
    assert await open_transactions(kafka, topic) == []


async def test_a_topic_that_is_created_anew_before_the_commit(kafka: ApacheKafka) -> None:
    topic = "spark-anew"
    await create_topic(kafka, topic, partitions=2)
    options = options_of(kafka.bootstrap_servers, topic=topic, transactionalIdPrefix=topic)
    await commit(options, 0, await attempts(options, 0, PARTS))
    outcomes = await attempts(options, 1, PARTS)
    async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        await admin.delete_topic(topic)
        while topic in await admin.list_topics():  # noqa: ASYNC110 - brokers delete it when they see fit
            await asyncio.sleep(0.05)
    await create_topic(kafka, topic, partitions=2)
    with pytest.raises(EpochLostException, match=rf"epoch 1 .* partitions \(0, 1, 2\).* of topic '{topic}', are gone"):
        await commit(options, 1, outcomes)
    async with open_drivers_ledger(options, "query", "here") as ledger:
        await set_by_hand(ledger, 0)
    await commit(options, 1, await attempts(options, 1, OTHERWISE))
    assert await read(kafka, topic) == sorted(ROWS)
    assert await open_transactions(kafka, topic) == []


async def test_a_write_is_shown_and_repaired(kafka: ApacheKafka) -> None:
    topic = "spark-repaired"
    await create_topic(kafka, topic, partitions=2)
    options = options_of(kafka.bootstrap_servers, topic=topic, transactionalIdPrefix=topic)
    outcomes = await attempts(options, 0, PARTS)
    async with open_drivers_ledger(options, "query", "here") as ledger:
        await ledger.take_over()
        await ledger.propose(Decision.of(0, outcomes, "here"))
        state = await inspect_write(options, "query")
        assert state.decision is None, "what is being decided is not waited for"
        assert list(state.open) == ["0.0", "1.0", "2.0", "all"]
        await ledger.decide()
        assert await ledger.end(prepared_of(outcomes)[0], committed=True)
        assert await ledger.end(prepared_of(outcomes)[1], committed=False)
    await attempt(options, 1, 0, ["undecided"])
    state = await inspect_write(options, "query")
    fates = {fate: [one.partition for one in state.decided(fate)] for fate in Fate}
    assert fates == {
        Fate.COMMITTED: [0],
        Fate.OPEN: [2],
        Fate.ENDING: [],
        Fate.LOST: [1],
        Fate.GONE: [],
        Fate.FORGOTTEN: [],
    }
    assert len(state.undecided) == 1
    for repair in (abort_undecided, finish, lambda ledger: set_by_hand(ledger, -1)):
        async with open_drivers_ledger(options, "query", "here") as ledger:
            await repair(ledger)
    assert await open_transactions(kafka, topic) == []
    assert await read(kafka, topic) == sorted([*PARTS[0], *PARTS[2]])
    state = await inspect_write(options, "query")
    assert [marker.epoch for marker in state.markers.values() if marker is not None] == [-1, -1]
    await commit(options, 0, await attempts(options, 0, OTHERWISE))
    assert await read(kafka, topic) == sorted([*PARTS[0], *PARTS[2], *ROWS])
