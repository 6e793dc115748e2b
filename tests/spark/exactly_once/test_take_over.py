"""A driver that takes over waits until it is known what the one before has decided; with the embedded broker."""

from __future__ import annotations

import asyncio

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import TimeoutException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.spark.exactly_once.decision import Decision
from aioproducer.spark.exactly_once.ledger import open_drivers_ledger
from aioproducer.spark.exactly_once.prepared import prepared_of
from aioproducer.spark.sink.sink_options import SinkOptions
from aioproducer.testing.faults.fault_script import FaultScript
from tests.spark.writes.epochs import attempts, commit, open_transactions, options, read
from tests.spark.writes.two_nodes import chosen as chosen
from tests.spark.writes.two_nodes import cluster as cluster
from tests.spark.writes.two_nodes import faults as faults

pytest.importorskip("pyarrow")

PARTS = {0: ["a", "b"], 1: ["c"]}
OTHERWISE = {0: ["c"], 1: ["b"], 2: ["a"]}
ROWS = ["a", "b", "c"]


async def test_a_decision_whose_end_cannot_be_read_yet_is_waited_for(
    cluster: EmbeddedCluster, chosen: SinkOptions, faults: FaultScript
) -> None:
    """The coordinator has committed it, and has not written that everywhere."""
    outcomes = await attempts(chosen, 5, PARTS)
    async with open_drivers_ledger(chosen, "query", "killed") as killed:
        await killed.take_over()
        await killed.propose(Decision.of(5, outcomes, "killed"))
        await killed.decide()
    again = await attempts(chosen, 5, OTHERWISE)
    assert prepared_of(again) == []
    concurrent = faults.on(ApiKey.INIT_PRODUCER_ID, times=3).answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    unstable = faults.on(ApiKey.OFFSET_FETCH, times=2).answer(ErrorCode.UNSTABLE_OFFSET_COMMIT)
    await commit(chosen, 5, again)
    assert (len(concurrent.hits), len(unstable.hits)) == (3, 2)
    assert sorted(await read(cluster)) == ROWS


async def test_a_driver_that_cannot_take_over_decides_nothing(
    cluster: EmbeddedCluster, chosen: SinkOptions, faults: FaultScript
) -> None:
    impatient = options(cluster, **{"kafka.max.block.ms": "200"})
    outcomes = await attempts(chosen, 5, PARTS)
    endless = faults.on(ApiKey.INIT_PRODUCER_ID, times=None).answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    with pytest.raises(TimeoutException, match=r"init_transactions.*max\.block\.ms"):
        await commit(impatient, 5, outcomes)
    assert endless.hits
    assert await read(cluster) == []
    assert len(await open_transactions(cluster)) == 2, "which the next start may decide about, or abort"


async def test_tasks_wait_until_a_driver_has_taken_over_from_one_that_was_killed_in_its_decision(
    cluster: EmbeddedCluster, chosen: SinkOptions, faults: FaultScript
) -> None:
    outcomes = await attempts(chosen, 5, PARTS)
    requested = asyncio.Event()
    async with open_drivers_ledger(chosen, "query", "killed") as killed:
        await killed.take_over()
        await killed.propose(Decision.of(5, outcomes, "killed"))
        faults.on(ApiKey.OFFSET_FETCH, nth=3).call(requested.set)
        waiting = asyncio.ensure_future(attempts(chosen, 5, OTHERWISE))
        async with open_drivers_ledger(chosen, "query", "new") as new:
            await requested.wait()
            assert not waiting.done()
            await new.take_over()
            again = await waiting
    assert len(prepared_of(again)) == 3, "the decision was withdrawn"
    await commit(chosen, 5, again)
    assert sorted(await read(cluster)) == ROWS
    assert await open_transactions(cluster) == []
