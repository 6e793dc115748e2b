from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aioproducer.broker.network.channel.memory_pool import MemoryPool
from tests.support.manual_clock import ManualClock

SIZE, FRAME, PIECE = 100, 60, 10


class Client:
    """Sends requests of ``FRAME`` bytes piece by piece, as far as it is let."""

    def __init__(self, pool: MemoryPool) -> None:
        self.pool = pool
        self.partial = 0
        self.whole = 0
        self.waits = False

    def memory_available(self) -> None:
        assert self.waits
        self.waits = False

    def read(self) -> None:
        self.pool.reserve(PIECE)
        self.partial += PIECE
        if self.partial == FRAME:
            self.partial, self.whole = 0, self.whole + 1
        self.waits = self.partial > 0 and not self.pool.may_read(self)

    def handle(self) -> None:
        self.whole -= 1
        self.pool.release(self, FRAME)

    def leave(self) -> None:
        self.pool.release(self, self.partial + self.whole * FRAME)
        self.pool.forget(self)


class Pool(RuleBasedStateMachine):
    """Clients that send, are handled and leave, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = MemoryPool(SIZE, Random(0), ManualClock())
        self.clients: list[Client] = []

    @precondition(lambda self: len(self.clients) < 5)
    @rule()
    def come(self) -> None:
        self.clients.append(Client(self.pool))

    @precondition(lambda self: self.clients)
    @rule(which=st.integers(0, 4))
    def read(self, which: int) -> None:
        client = self.clients[which % len(self.clients)]
        if not client.waits and client.whole == 0:
            client.read()

    @precondition(lambda self: self.clients)
    @rule(which=st.integers(0, 4))
    def handle(self, which: int) -> None:
        client = self.clients[which % len(self.clients)]
        if client.whole:
            client.handle()

    @precondition(lambda self: self.clients)
    @rule(which=st.integers(0, 4))
    def leave(self, which: int) -> None:
        self.clients.pop(which % len(self.clients)).leave()

    @invariant()
    def adds_up(self) -> None:
        held = sum(client.partial + client.whole * FRAME for client in self.clients)
        assert self.pool.available == SIZE - held

    @invariant()
    def is_bounded(self) -> None:
        # One request beyond the limit, and a piece of each other client that was being read.
        assert self.pool.available >= -(FRAME + PIECE * (len(self.clients) + 5))

    @invariant()
    def a_receiver_can_continue(self) -> None:
        waiting = [client for client in self.clients if client.waits]
        moving = [client for client in self.clients if client.whole or not client.waits]
        assert not waiting or moving
        assert not waiting or self.pool.available <= 0


TestPool = Pool.TestCase


def test_the_next_client_is_drawn_at_random() -> None:
    firsts = set()
    for seed in range(20):
        pool = MemoryPool(SIZE, Random(seed), ManualClock())
        owner, *others = [Client(pool) for _ in range(4)]
        pool.reserve(SIZE)
        assert pool.may_read(owner)  # the one that may exceed the limit
        for client in others:
            client.waits = not pool.may_read(client)
        assert all(client.waits for client in others)
        pool.release(owner, 0)  # it is done, and there is room for one other at a time
        firsts.add(next(number for number, client in enumerate(others) if not client.waits))
        assert sum(client.waits for client in others) == 2
    assert firsts == {0, 1, 2}


def test_no_limit() -> None:
    assert not MemoryPool(-1, Random(0), ManualClock()).is_limited
    assert not MemoryPool(0, Random(0), ManualClock()).is_limited


def test_the_time_for_which_memory_was_depleted() -> None:
    clock = ManualClock()
    pool = MemoryPool(SIZE, Random(0), clock)
    assert (pool.available, pool.used, pool.depleted_percent(0), pool.depleted_time(0)) == (SIZE, 0, 0, 0)
    owner, first, second = [Client(pool) for _ in range(3)]
    pool.reserve(SIZE)
    assert pool.may_read(owner)
    clock.advance(10)
    for client in (first, second):
        client.waits = not pool.may_read(client)
        clock.advance(5)
    assert (pool.available, pool.used) == (0, SIZE)
    assert (pool.depleted_percent(20), pool.depleted_time(20)) == (0.5, 10), "while it lasts"
    first.leave()
    clock.advance(5)
    pool.release(owner, SIZE)
    clock.advance(5)
    assert (pool.depleted_percent(30), pool.depleted_time(30)) == (0.5, 15)
