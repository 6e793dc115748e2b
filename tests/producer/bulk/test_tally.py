"""The account of a bulk send, against one that has an entry for every record."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aioproducer.errors import KafkaError, Outcome
from aioproducer.producer.bulk.tally import BulkTally
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import ABORTED, FAILED, SUCCEEDED, ProduceResult
from tests.producer.simulations.standing_loop import Loop, failure, new_result

PARTITIONS = 3


class Batch:
    """A result, and how many records it has, those of others included."""

    def __init__(self, loop: Loop, partition: int) -> None:
        self.result = new_result(loop, "t", partition)
        self.count = 0

    def append(self) -> int:
        self.count += 1
        return self.count - 1


def test_neighbours_are_one_entry_whatever_their_number() -> None:
    tally, batch = BulkTally(Loop()), Batch(Loop(), 0)
    for index in range(1000):
        tally.took(batch.result, batch.append(), index)
    assert batch.result.number_waiting() == 1
    batch.append()  # somebody else's
    tally.took(batch.result, batch.append(), 1000)
    assert batch.result.number_waiting() == 2


def test_a_bulk_send_receives_failures_until_it_returns() -> None:
    tally, batch = BulkTally(Loop()), Batch(Loop(), 0)
    tally.took(batch.result, batch.append(), 0)
    batch.append()  # somebody else's
    tally.took(batch.result, batch.append(), 1)
    tally.took(batch.result, batch.append(), 2)
    assert batch.result.unobserved(4) == 1
    tally.abandoned = True
    assert batch.result.unobserved(4) == 4
    batch.result.fail(failure())  # and is not told any more
    assert tally.result(1).errors == []


def test_a_waiter_may_be_cancelled_as_the_end_comes() -> None:
    loop = Loop()
    tally, batch = BulkTally(loop), Batch(loop, 0)
    tally.took(batch.result, batch.append(), 0)
    waiting = tally.complete()
    waiting.cancel()
    batch.result.succeed(0, -1, 0, bytes(16))
    assert tally.result(1).delivered == 1


class TallyMachine(RuleBasedStateMachine):
    """Two bulk sends and single ones share batches, which end, are split, and take in what was parked."""

    @initialize()
    def begin(self) -> None:
        self.loop = Loop()
        self.tallies = [BulkTally(self.loop) for _ in range(2)]
        # Per call and index: the handle a single send would have got.
        self.deliveries: list[list[Delivery]] = [[], []]
        self.open = [Batch(self.loop, partition) for partition in range(PARTITIONS)]
        self.pending: list[Batch] = []
        self.parked: list[ProduceResult] = []
        self.offset = 0

    def _take(self, call: int, result: ProduceResult, first: int) -> None:
        self.tallies[call].took(result, first, len(self.deliveries[call]))
        self.deliveries[call].append(Delivery(result, first))

    @rule(call=st.integers(0, 1), partitions=st.lists(st.integers(0, PARTITIONS - 1), max_size=8))
    def append(self, call: int, partitions: list[int]) -> None:
        for partition in partitions:
            batch = self.open[partition]
            self._take(call, batch.result, batch.append())

    @rule(call=st.integers(0, 1), partition=st.integers(0, PARTITIONS - 1), count=st.integers(1, 8))
    def append_several(self, call: int, partition: int, count: int) -> None:
        batch, deliveries = self.open[partition], self.deliveries[call]
        self.tallies[call].took(batch.result, batch.count, len(deliveries), count)
        deliveries += [Delivery(batch.result, batch.append()) for _ in range(count)]

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def somebody_else_appends(self, partition: int) -> None:
        self.open[partition].append()

    @rule(call=st.integers(0, 1), partition=st.integers(-1, PARTITIONS - 1))
    def park(self, call: int, partition: int) -> None:
        result = new_result(self.loop, "t", partition)
        self.parked.append(result)
        self._take(call, result, 0)

    @precondition(lambda self: self.parked)
    @rule(partition=st.integers(0, PARTITIONS - 1))
    def place(self, partition: int) -> None:
        batch = self.open[partition]
        self.parked.pop(0).forward([(0, batch.result, batch.append())])

    @precondition(lambda self: self.parked)
    @rule()
    def fail_parked(self) -> None:
        self.parked.pop(0).fail(failure("parked", Outcome.NOT_SENT))

    @rule(partition=st.integers(0, PARTITIONS - 1))
    def close(self, partition: int) -> None:
        if self.open[partition].count:
            self.pending.append(self.open[partition])
            self.open[partition] = Batch(self.loop, partition)

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def split(self, data: Any) -> None:
        batch = self.pending.pop(data.draw(st.integers(0, len(self.pending) - 1)))
        firsts = sorted({0} | data.draw(st.sets(st.integers(0, batch.count - 1), max_size=4)))
        children = []
        for first, after in zip(firsts, [*firsts[1:], batch.count], strict=True):
            child = Batch(self.loop, batch.result.partition)
            child.count = after - first
            children.append(child)
        batch.result.forward([(first, child.result, 0) for first, child in zip(firsts, children, strict=True)])
        self.pending += children

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), known=st.booleans())
    def succeed(self, data: Any, known: bool) -> None:
        batch = self.pending.pop(data.draw(st.integers(0, len(self.pending) - 1)))
        batch.result.succeed(self.offset if known else -1, -1, 0, bytes(16 * batch.count))
        self.offset += batch.count

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def fail(self, data: Any) -> None:
        batch = self.pending.pop(data.draw(st.integers(0, len(self.pending) - 1)))
        error = failure("whole")
        if refused := data.draw(st.sets(st.integers(0, batch.count - 1), max_size=2)):
            error.refused_records = {index: f"refused {index}" for index in refused}
        batch.result.fail(error, aborted=data.draw(st.booleans()))

    @invariant()
    def the_account_is_that_of_single_sends(self) -> None:
        for tally, deliveries in zip(self.tallies, self.deliveries, strict=True):
            result = tally.result(len(deliveries))
            ended = [delivery for delivery in deliveries if delivery.done()]
            delivered = [delivery.result() for delivery in ended if delivery._result.state == SUCCEEDED]
            assert result.delivered == len(delivered)
            failed = {
                index: str(delivery.exception())
                for index, delivery in enumerate(deliveries)
                if delivery.done() and delivery._result.state in (FAILED, ABORTED)
            }
            assert {index: str(error) for index, error in result.errors} == failed
            for (topic, partition), offsets in result.offsets.items():
                there = [one for one in delivered if (one.topic, one.partition) == (topic, partition)]
                known = [one.offset for one in there if one.offset >= 0]
                assert offsets == (min(known, default=-1), max(known, default=-1), len(there))
            assert sum(offsets.records for offsets in result.offsets.values()) == len(delivered)
            assert tally.complete().done() == (len(ended) == len(deliveries))


TestTally = TallyMachine.TestCase


def test_a_record_refused_before_its_batch_is_counted_by_its_number() -> None:
    tally = BulkTally(Loop())
    tally.refused(range(3, 5), failure("no", Outcome.NOT_SENT))
    assert [index for index, _ in tally.result(9).errors] == [3, 4]
    assert isinstance(tally.result(9).errors[0][1], KafkaError)
    assert tally.complete().done()
