from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aioproducer.producer.accumulator.incomplete_batches import IncompleteBatches
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from tests.producer.simulations.standing_loop import Loop, make_batch

QUEUES = [PartitionQueue(topic, partition, None) for topic, partition in (("t", 0), ("t", 1), ("u", 0))]


class IncompleteMachine(RuleBasedStateMachine):
    """Against a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = IncompleteBatches()
        self.expected: list[tuple[ProducerBatch, PartitionQueue]] = []
        self.gone = [make_batch(Loop())]
        self.numbers: dict[ProducerBatch, int] = {}
        self.added = 0

    @rule(queue=st.sampled_from(QUEUES))
    def add(self, queue: PartitionQueue) -> None:
        batch = make_batch(Loop())
        self.batches.add(batch, queue)
        self.added += 1
        self.numbers[batch] = self.added
        self.expected.append((batch, queue))

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        batch, _ = self.expected.pop(data.draw(st.integers(0, len(self.expected) - 1)))
        self.batches.remove(batch)
        self.gone.append(batch)

    @rule(data=st.data())
    def remove_again(self, data: st.DataObject) -> None:
        self.batches.remove(data.draw(st.sampled_from(self.gone)))

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), parts=st.integers(0, 4))
    def replace(self, data: st.DataObject, parts: int) -> None:
        place = data.draw(st.integers(0, len(self.expected) - 1))
        batch, queue = self.expected[place]
        others = [make_batch(Loop()) for _ in range(parts)]
        self.batches.replace(batch, others)
        self.numbers |= dict.fromkeys(others, self.numbers[batch])
        self.expected[place : place + 1] = [(other, queue) for other in others]
        self.gone.append(batch)

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def join(self, data: st.DataObject) -> None:
        queue = data.draw(st.sampled_from(QUEUES))
        parts = [batch for batch, where in self.expected if where is queue]
        if not parts:
            return
        parts = parts[: data.draw(st.integers(1, len(parts)))]
        whole = make_batch(Loop())
        self.batches.join(parts, whole)
        self.numbers[whole] = self.numbers[parts[0]]
        self.expected = [
            (whole if batch is parts[0] else batch, where) for batch, where in self.expected if batch not in parts[1:]
        ]
        self.gone += parts

    @invariant()
    def it_has_the_same_in_the_same_order(self) -> None:
        assert self.batches.items() == self.expected
        assert list(self.batches) == [batch for batch, _ in self.expected]
        assert len(self.batches) == len(self.expected)
        assert bool(self.batches) == bool(self.expected)
        assert self.batches.oldest is (self.expected[0][0] if self.expected else None)
        assert all(self.batches.queue_of(batch) is queue for batch, queue in self.expected)
        assert self.batches.topics == Counter(queue.topic for _, queue in self.expected)
        assert self.batches.count == self.added
        numbers = [self.numbers[batch] for batch, _ in self.expected]
        assert numbers == sorted(numbers)
        for count in (0, self.added // 2, self.added):
            for place, behind in enumerate([None, *list(self.batches)]):
                left = [batch for batch, _ in self.expected[place:] if self.numbers[batch] <= count]
                assert self.batches.oldest_of_first(count, behind) is (left[0] if left else None)
            assert self.batches.oldest_of_first(count, self.gone[-1]) is self.batches.oldest_of_first(count)
        assert self.batches.queues() == list(dict.fromkeys(queue for _, queue in self.expected))


TestIncompleteBatches: Any = IncompleteMachine.TestCase


def test_an_unknown_batch_has_no_queue_and_no_place() -> None:
    batches, batch = IncompleteBatches(), make_batch(Loop())
    with pytest.raises(KeyError):
        batches.queue_of(batch)
    with pytest.raises(KeyError):
        batches.replace(batch, [])


def test_it_may_change_while_somebody_goes_through_it() -> None:
    batches = IncompleteBatches()
    for _ in range(3):
        batches.add(make_batch(Loop()), QUEUES[0])
    for batch in batches:
        batches.remove(batch)
    assert not batches
