from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from aioproducer.errors import IllegalStateException
from aioproducer.producer.batches.buffer_pool import SPARE_BYTES, BatchBuffer, BufferPool


class PoolMachine(RuleBasedStateMachine):
    """Whoever takes and gives back, in any order: no byte is lost, and none is there twice."""

    taken = Bundle("taken")

    @initialize(total=st.integers(0, 1000))
    def begin(self, total: int) -> None:
        self.pool = BufferPool(total, 100)
        self.held = 0

    @rule(target=taken, size=st.integers(0, 400))
    def allocate(self, size: int) -> int:
        fits = size <= self.pool.total - self.held
        assert self.pool.allocate(size) == fits
        self.held += size if fits else 0
        return size if fits else 0

    @rule(size=consumes(taken))
    def deallocate(self, size: int) -> None:
        self.pool.deallocate(size)
        self.held -= size

    @rule(target=taken, size=consumes(taken), needed=st.integers(0, 400))
    def exchange(self, size: int, needed: int) -> int:
        self.pool.exchange(size, needed)
        self.held += needed - size
        return needed

    @rule(more=st.integers(1, 1000))
    def give_back_too_much(self, more: int) -> None:
        with pytest.raises(IllegalStateException, match="given back to a pool"):
            self.pool.deallocate(self.held + more)

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert self.pool.available + self.held == self.pool.total


PoolMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=30)
TestPool = PoolMachine.TestCase


class SpareMachine(RuleBasedStateMachine):
    """Buffers grow, come back and are used again: what recycled ones have grown to is counted, also while they are
    used."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BufferPool(10**8, SPARE_BYTES)
        self.used: list[BatchBuffer] = []

    @rule()
    def take(self) -> None:
        self.used.append(self.pool.buffer())

    @precondition(lambda self: self.used)
    @rule(data=st.data(), size=st.sampled_from([1, SPARE_BYTES // 5, SPARE_BYTES // 2, SPARE_BYTES - 8]))
    def give_back(self, data: st.DataObject, size: int) -> None:
        buffer = data.draw(st.sampled_from(self.used))
        self.used.remove(buffer)
        buffer.records.append(0, 0, None, bytes(size), None)
        held = buffer.records.size() + buffer.sizes.size()
        others = [*self.pool._spares, *self.used]
        fits = sum(other.counted for other in others) + max(held, buffer.grown) <= SPARE_BYTES
        self.pool.recycle(buffer)
        assert (buffer in self.pool._spares) == fits

    @invariant()
    def what_is_spare_is_counted(self) -> None:
        recycled = [*self.pool._spares, *self.used]
        assert self.pool._spare_bytes == sum(buffer.counted for buffer in recycled) <= SPARE_BYTES
        assert all(spare.counted == spare.grown for spare in self.pool._spares)


SpareMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=20)
TestSpares = SpareMachine.TestCase


def test_nothing_negative_is_given_back() -> None:
    pool = BufferPool(100, 10)
    assert pool.allocate(50)
    with pytest.raises(IllegalStateException):
        pool.deallocate(-1)
    assert pool.available == 50


def test_a_buffer_is_used_again_empty() -> None:
    pool = BufferPool(1000, 100)
    buffer = pool.buffer()
    buffer.records.append(0, 0, b"key", b"value", None)
    buffer.sizes.append(0, 3, 5)
    pool.recycle(buffer)
    again = pool.buffer()
    assert again is buffer
    assert again.records.size() == 0
    assert again.records.freeze() == again.sizes.freeze() == b""
    assert pool.buffer() is not buffer


def test_a_buffer_that_grew_beyond_a_batch_is_let_go() -> None:
    pool = BufferPool(1000, 100)
    buffer = pool.buffer()
    buffer.records.append(0, 0, None, bytes(200), None)  # with its 16 bytes of sizes two batches and more
    pool.recycle(buffer)
    assert pool.buffer() is not buffer


def test_the_free_list_is_bounded_by_bytes() -> None:
    pool = BufferPool(10**8, 100_000)
    given = [BatchBuffer() for _ in range(100)]
    for buffer in given:
        buffer.records.append(0, 0, None, bytes(100_000), None)
        pool.recycle(buffer)
    taken = [pool.buffer() for _ in range(100)]
    kept = len({id(buffer) for buffer in taken} & {id(buffer) for buffer in given})
    assert kept == SPARE_BYTES // 100_008
    fresh = BatchBuffer()
    fresh.records.append(0, 0, None, bytes(100_000), None)
    pool.recycle(fresh)  # what was taken out may be in use for long, by batches that are charged less
    assert pool.buffer() is not fresh
    pool.recycle(taken[0])
    assert pool.buffer() is taken[0]


@pytest.mark.parametrize("more", [0, 1])
def test_the_free_list_may_be_full_to_the_byte(more: int) -> None:
    probe, buffer, pool = BatchBuffer(), BatchBuffer(), BufferPool(10**8, SPARE_BYTES)
    probe.records.append(0, 0, None, bytes(SPARE_BYTES), None)
    overhead = probe.records.size() - SPARE_BYTES
    buffer.records.append(0, 0, None, bytes(SPARE_BYTES - overhead + more), None)
    pool.recycle(buffer)
    assert (pool.buffer() is buffer) == (more == 0)


def test_a_buffer_is_as_large_as_the_most_it_ever_held() -> None:
    pool = BufferPool(1000, 100)
    buffer = pool.buffer()
    buffer.records.append(0, 0, None, bytes(300), None)
    buffer.clear()
    pool.recycle(buffer)
    assert pool.buffer() is not buffer


def test_bytes_already_in_memory_are_charged_without_room() -> None:
    pool = BufferPool(100, 10)
    assert pool.allocate(90)
    pool.exchange(90, 130)
    assert pool.available == -30
    assert not pool.allocate(0)
    pool.exchange(130, 20)
    assert pool.available == 80
