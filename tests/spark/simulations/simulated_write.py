"""Brokers, tasks and drivers of one write, in memory: each request is a turn, and who has the next one is the test's
choice.

The rules of coordinators are Kafka's, as far as the two phases depend on them: identities and epochs in both protocols,
fencing, ends that are answered before they can be seen, time-outs, offsets that are not stable yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aioproducer.errors import ProducerFencedException
from aioproducer.spark.exactly_once.content_digest import digest_of_all
from aioproducer.spark.exactly_once.decision import Decision
from aioproducer.spark.exactly_once.marker import Marker
from aioproducer.spark.exactly_once.prepared import Outcome, Prepared

T = TypeVar("T")

Row = tuple[int, int]
"""Its epoch, and its number."""

EMPTY, ONGOING, PREPARE, COMPLETE = "Empty", "Ongoing", "Prepare", "Complete"


def digest_of(rows: Sequence[Row]) -> str:
    return digest_of_all(f"{1 << (8 * number):016x}" for _, number in rows)


@dataclass
class Transaction:
    """A transactional id."""

    producer_id: int
    producer_epoch: int = -1
    state: str = EMPTY
    committed: bool = False
    """How the last one has ended, or is about to end."""
    rows: list[Row] = field(default_factory=list)
    marker: Marker | None = None


class Brokers:
    """``second``: the protocol of KIP-890."""

    def __init__(self, *, second: bool) -> None:
        self.second = second
        self.waiting: list[asyncio.Future[None]] = []
        self.transactions: dict[tuple[int, int], Transaction] = {}
        self.visible: list[Row] = []
        self.markers: dict[int, Marker] = {}
        self.decision: Decision | None = None
        self.decided: list[Decision] = []
        """All there have been."""
        self.proposal: Decision | None = None
        self.set_back: dict[int, Marker] = {}
        """Markers that come in force with the proposal."""
        self.prepared = False
        """Whether the proposal is committed, and merely cannot be read yet."""
        self.is_forgotten = False
        """Whether the topic was deleted since the proposal was made."""
        self.owner = 0
        self.aborted: set[tuple[int, int, int, int]] = set()
        self.wrongly_aborted = False
        self.deletions = 0
        """Of the topic, which is created anew at once."""
        self.before = 0
        """How many decisions were deleted with it."""
        self.deleted: set[Row] = set()
        """Rows that could be read before that."""

    def lost(self) -> set[tuple[int, int, int, int]]:
        """What was aborted of the last decision."""
        return self._in_force() & self.aborted

    async def turn(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        try:
            await future
        finally:
            if future in self.waiting:
                self.waiting.remove(future)

    async def until(self, condition: Callable[[], bool]) -> None:
        """A request that is repeated until it is answered."""
        await self.turn()
        while not condition():
            await self.turn()

    # Coordinators

    def init(self, key: tuple[int, int]) -> tuple[int, int]:
        one = self.transactions.setdefault(key, Transaction(1000 + len(self.transactions)))
        if one.state == ONGOING:
            self.abort(key)
            self.complete(key)
        one.producer_epoch += 1
        one.state = EMPTY
        return one.producer_id, one.producer_epoch

    def abort(self, key: tuple[int, int]) -> None:
        """By the coordinator itself: after a time-out, or because the id is taken over."""
        one = self.transactions[key]
        assert one.state == ONGOING
        self.aborted.add((*key, one.producer_id, one.producer_epoch))
        one.producer_epoch += 1
        one.state, one.committed = PREPARE, False

    def end(self, key: tuple[int, int], identity: tuple[int, int], *, committed: bool) -> bool | None:
        """None: to be repeated."""
        one = self.transactions[key]
        mine = one.producer_id, one.producer_epoch
        after = mine == (identity[0], identity[1] + 1) if self.second else mine == identity
        if one.state == ONGOING and mine == identity:
            if not committed:
                self.aborted.add((*key, *identity))
                self.wrongly_aborted = self.wrongly_aborted or (*key, *identity) in self._ever_decided()
            one.producer_epoch += self.second
            one.state, one.committed = PREPARE, committed
            return True
        if one.state == PREPARE and after and one.committed == committed:
            return None
        return one.state == COMPLETE and after and one.committed == committed

    def complete(self, key: tuple[int, int]) -> None:
        """The markers of the end are written."""
        one = self.transactions[key]
        assert one.state == PREPARE
        if one.committed:
            self.visible += one.rows
            assert one.marker is not None or self.deletions
            if one.marker is not None:
                self.markers[key[0]] = one.marker
        one.state, one.rows, one.marker = COMPLETE, [], None

    def apply(self) -> None:
        """The decision can be read."""
        assert self.prepared
        assert self.proposal is not None
        if not self.is_forgotten:
            self.decision = self.proposal
            self.decided.append(self.proposal)
            self.markers |= self.set_back
        self.proposal, self.prepared = None, False

    def delete_the_topic(self) -> None:
        """Its rows and all of its offsets, pending ones as well; transactions go on in the new topic."""
        self.deletions += 1
        self.before = len(self.decided)
        self.deleted |= set(self.visible)
        self.visible.clear()
        self.markers.clear()
        self.decision, self.is_forgotten = None, True
        for one in self.transactions.values():
            one.rows, one.marker = [], None

    def withdraw(self) -> None:
        """The driver's transaction is aborted."""
        if not self.prepared:
            self.proposal = None

    def in_force(self) -> Decision | None:
        """The decision that counts, even if it cannot be read yet."""
        return self.proposal if self.prepared and not self.is_forgotten else self.decision

    def _in_force(self) -> set[tuple[int, int, int, int]]:
        last = self.in_force()
        return set() if last is None else {one.identity for one in last.prepared}

    def _ever_decided(self) -> set[tuple[int, int, int, int]]:
        return self._in_force().union(
            *({one.identity for one in each.prepared} for each in self.decided[self.before :])
        )


class SimulatedLedger:
    """Of a task or a driver."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._me = -1
        self._gone: set[tuple[int, int, int, int]] = set()

    topic = "t"

    async def decision(self) -> Decision | None:
        await self._brokers.until(lambda: self._brokers.proposal is None or self._brokers.is_forgotten)
        return self._brokers.decision

    async def pause(self, seconds: float) -> None:
        await self._brokers.turn()

    async def markers(self, partitions: Sequence[int]) -> dict[int, Marker | None]:
        """Read one after the other, as from coordinators of their own."""
        return {partition: await self._marker(partition) for partition in partitions}

    async def _marker(self, partition: int) -> Marker | None:
        await self._brokers.turn()
        return self._brokers.markers.get(partition)

    async def end(self, prepared: Prepared, *, committed: bool) -> bool:
        while True:
            await self._brokers.turn()
            key, identity = (prepared.partition, prepared.slot), (prepared.producer_id, prepared.producer_epoch)
            ended = self._brokers.end(key, identity, committed=committed)
            if ended is not None:
                await self._brokers.turn()
                return ended

    async def check_remembered(self, prepared: Prepared) -> None:
        await self._brokers.turn()

    async def take_over(self) -> None:
        self._brokers.withdraw()
        await self._brokers.until(lambda: not self._brokers.prepared)
        self._brokers.withdraw()
        self._brokers.owner += 1
        self._me = self._brokers.owner
        await self._brokers.turn()

    async def propose(self, decision: Decision) -> None:
        await self._brokers.turn()
        self._check()
        # As it is kept, and read again.
        head, *pieces = decision.as_offsets()
        self._brokers.proposal = Decision.read(head, pieces, "here")
        self._brokers.set_back, self._brokers.is_forgotten = {}, False
        assert self._brokers.proposal == decision
        self._gone = self._brokers.aborted & {one.identity for one in decision.prepared}

    async def set_back(self, markers: Mapping[int, Marker]) -> None:
        await self._brokers.turn()
        self._check()
        self._brokers.set_back = dict(markers)

    async def time_left(self, prepared: Sequence[Prepared]) -> list[int | None]:
        left: list[int | None] = []
        for one in prepared:
            await self._brokers.turn()
            left.append(1000 if self._is_open(one) else None)
        return left

    async def decide(self) -> None:
        await self._brokers.turn()
        self._check()
        if self._brokers.proposal is None:
            raise ProducerFencedException("the decision was withdrawn")
        assert not self._gone, "what is gone is not decided"
        self._brokers.prepared = True
        await self._brokers.turn()

    async def left_open(self) -> list[Prepared]:
        await self._brokers.turn()
        found = [
            Prepared(*key, one.producer_id, one.producer_epoch, self._brokers.second)
            for key, one in self._brokers.transactions.items()
            if one.state == ONGOING
        ]
        await self._brokers.turn()
        return found if self._me == self._brokers.owner else []

    async def fence(self, prepared: Prepared) -> None:
        if await self.end(prepared, committed=False) and not self._brokers.second:
            key = prepared.partition, prepared.slot
            await self._brokers.until(lambda: self._brokers.transactions[key].state != PREPARE)
            one = self._brokers.transactions[key]
            if one.state == ONGOING or (one.producer_id, one.producer_epoch) == prepared[2:4]:
                self._brokers.init(key)
            await self._brokers.turn()

    async def markers_from(self, partitions: int) -> dict[int, Marker | None]:
        await self._brokers.turn()
        return {partition: marker for partition, marker in self._brokers.markers.items() if partition >= partitions}

    def _is_open(self, one: Prepared) -> bool:
        found = self._brokers.transactions[one.partition, one.slot]
        return found.state == ONGOING and (found.producer_id, found.producer_epoch) == one[2:4]

    def _check(self) -> None:
        if self._me != self._brokers.owner:
            raise ProducerFencedException("another driver has taken over")


class SimulatedRows:
    """Of an attempt of a task."""

    def __init__(self, brokers: Brokers, rows: Sequence[Row], epoch: int, partition: int, attempt: int) -> None:
        self._brokers = brokers
        self._rows = rows
        self._epoch = epoch
        self._partition = partition
        self._attempt = attempt

    async def skip(self) -> Outcome:
        await self._brokers.turn()
        return Outcome(self._partition, len(self._rows), digest_of(self._rows), None)

    async def hold(self) -> Outcome:
        brokers = self._brokers
        slot = self._attempt
        while True:
            await brokers.turn()
            found = brokers.transactions.get((self._partition, slot))
            if found is None or found.state != ONGOING:
                break
            slot += 1
        key = self._partition, slot
        await brokers.until(lambda: key not in brokers.transactions or brokers.transactions[key].state != PREPARE)
        identity = brokers.init(key)
        for row in self._rows:
            await self._part(key, identity)
            brokers.transactions[key].rows.append(row)
        await self._part(key, identity, begins=not brokers.second)
        brokers.transactions[key].marker = Marker(self._epoch, len(self._rows), digest_of(self._rows))
        await brokers.turn()
        return Outcome.held(len(self._rows), digest_of(self._rows), Prepared(*key, *identity, brokers.second))

    async def _part(self, key: tuple[int, int], identity: tuple[int, int], *, begins: bool = False) -> None:
        """``begins``: as AddOffsetsToTxn does, even if the transaction was aborted without its producer's knowledge."""
        await self._brokers.turn()
        one = self._brokers.transactions[key]
        possible = (EMPTY, ONGOING, COMPLETE) if begins else (EMPTY, ONGOING)
        if (one.producer_id, one.producer_epoch) != identity or one.state not in possible:
            raise ProducerFencedException("another attempt has taken over")
        one.state = ONGOING


class Actors:
    """Coroutines that have turns."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._loop = asyncio.new_event_loop()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = self._loop.create_task(work)
        self._spin()
        return task

    def step(self, number: int) -> None:
        """The one that waits there has its turn."""
        waiting = self._brokers.waiting
        waiting.pop(number % len(waiting)).set_result(None)
        self._spin()

    def crash(self, task: asyncio.Task[Any]) -> None:
        """It does nothing more."""
        task.cancel()
        self._spin()

    def close(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._spin()
        self._loop.close()

    def _spin(self) -> None:
        async def idle() -> None:
            for _ in range(12):
                await asyncio.sleep(0)

        self._loop.run_until_complete(idle())
