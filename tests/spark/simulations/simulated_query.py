"""A query that Spark runs, kills, repeats and divides otherwise, over simulated brokers; and what it is promised."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from aioproducer.errors import IllegalStateException, ProducerFencedException
from aioproducer.spark.exactly_once.decision import (
    Decision,
    EpochIncompleteException,
    EpochLostException,
    EpochNotCommittedException,
    check_none_is_missing,
    check_order,
)
from aioproducer.spark.exactly_once.marker import MarkerMismatchException, MissingMarkerException
from aioproducer.spark.exactly_once.prepared import Outcome, prepared_of
from aioproducer.spark.exactly_once.two_phases import abort, commit, finish, set_by_hand, write

from .simulated_write import ONGOING, PREPARE, Actors, Brokers, Row, SimulatedLedger, SimulatedRows, Transaction

ROWS = 3
"""Of an epoch."""


@dataclass
class Run:
    """A run of the query, until its driver crashes or fails."""

    epoch: int
    partitions: int
    attempts: dict[asyncio.Task[Outcome], int] = field(default_factory=dict)
    """Those that have not ended, and the partition of each."""
    numbers: Counter[int] = field(default_factory=Counter)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    ending: asyncio.Task[None] | None = None
    aborts: bool = False

    def rows(self, partition: int) -> list[Row]:
        return [(self.epoch, row) for row in range(ROWS) if row % self.partitions == partition]


class SimulatedQuery:
    """A query that Spark runs again and again; every promise is checked when something has happened."""

    def __init__(self, *, second: bool) -> None:
        self.brokers = Brokers(second=second)
        self.actors = Actors(self.brokers)
        self.run: Run | None = None
        self.turns = 0
        self.ending_since = 0
        self.epoch = 0
        self.done: set[int] = set()
        """Epochs whose commit has returned, which Spark never runs again."""
        self.skipped: set[int] = set()
        """Batches that are not run again although their driver was killed."""
        self.is_stuck = False
        """Whether an error has told the user to set the marker by hand."""
        self.marking: asyncio.Task[None] | None = None
        self.incomplete: set[int] = set()
        """Epochs of which an error has said that they have to be run again with as many partitions."""

    # Spark

    def start(self, partitions: int) -> None:
        if self.run is None and not self.is_stuck:
            self.run = Run(self.epoch, partitions)
            for partition in range(partitions):
                self.attempt(partition)

    def attempt(self, partition: int) -> None:
        assert self.run is not None
        run, epoch = self.run, self.run.epoch
        number = run.numbers[partition]
        run.numbers[partition] += 1

        def check(last: Decision | None) -> None:
            check_order(last, epoch, "here")
            check_none_is_missing(last, epoch, "here", group="g", place="t-0", streaming=not self.skipped)

        rows = SimulatedRows(self.brokers, run.rows(partition), epoch, partition, number)
        work = write(SimulatedLedger(self.brokers), rows, epoch, partition, "here", check)
        run.attempts[self.actors.start(work)] = partition
        self.look()

    def copy(self, partition: int) -> None:
        """Speculation, or the attempt after one that has failed or was lost."""
        run = self.run
        if run is not None and run.ending is None and run.numbers[partition % run.partitions] < 4:
            self.attempt(partition % run.partitions)

    def begin_the_stage_anew(self) -> None:
        """Later attempts have the numbers of earlier ones, which may live on."""
        if self.run is not None:
            self.run.numbers.clear()
            self.run.attempts.clear()

    def step(self, number: int) -> None:
        """One of the waiting attempts has its turn. If none waits, Spark takes its next step."""
        self.turns += 1
        if self.brokers.waiting:
            self.actors.step(number)
            self.look()
        elif self.run is None and self.is_stuck:
            self.mark_by_hand()
        elif self.run is None:
            self.start(number % 3 + 1)
        elif self.run.ending is None and not self.run.attempts:
            for partition in range(self.run.partitions):
                if partition not in self.run.outcomes:
                    self.attempt(partition)

    def lose_an_attempt(self, number: int) -> None:
        if self.run is not None and self.run.attempts:
            self.actors.crash(list(self.run.attempts)[number % len(self.run.attempts)])
            self.look()

    def kill_the_driver(self) -> None:
        """Its tasks live on."""
        if self.run is not None and self.run.ending is not None:
            self.actors.crash(self.run.ending)
        self.run = None

    def lose_the_driver(self) -> None:
        """Everybody believes that it is dead; it, too, lives on."""
        self.run = None

    def skip_the_epoch(self) -> None:
        """The driver is killed, and the next run is that of another ``writeEpoch``. Any earlier decision will do."""
        self.kill_the_driver()
        if self.brokers.in_force() is not None:
            self.skipped.add(self.epoch)
            self.epoch += 1

    def fail_the_commit(self) -> None:
        """A request of the driver is not answered in time. Spark has it abort the epoch then."""
        run = self.run
        if run is not None and run.ending is not None and not run.aborts:
            self.actors.crash(run.ending)
            self.abort()

    def turns_of_the_driver(self) -> int:
        """Since it began to commit; -1 if it has not."""
        return self.turns - self.ending_since if self.run is not None and self.run.ending is not None else -1

    def abort_by_a_lost_driver(self) -> None:
        _ = self.actors.start(abort(SimulatedLedger(self.brokers), ()))

    def finish_by_hand(self) -> None:
        _ = self.actors.start(finish(SimulatedLedger(self.brokers)))

    def delete_the_topic(self) -> None:
        """Not while an attempt is between its first row and its marker, which would then be in two topics."""
        if not any(one.state == ONGOING and one.rows and one.marker is None for one in self._transactions()):
            self.brokers.delete_the_topic()

    def mark_by_hand(self) -> None:
        """What the errors say: to the epoch before if none of its rows are there, and else to do without the rest."""
        if self.marking is not None and self.marking.exception() is None:
            self.is_stuck, self.marking = False, None
            return
        ledger = SimulatedLedger(self.brokers)
        if self.marking is not None and isinstance(self.marking.exception(), IllegalStateException):
            self.marking = None
            _ = self.actors.start(finish(ledger))
            return
        while self._keys(PREPARE):
            self.complete(0)
        if self.seen(self.epoch):
            self.epoch += 1
        self.marking = self.actors.start(set_by_hand(ledger, self.epoch - 1))

    def fail_the_job(self) -> None:
        if self.run is not None and self.run.ending is None:
            self.abort()

    def abort(self) -> None:
        assert self.run is not None
        self.run.aborts = True
        prepared = prepared_of(self.run.outcomes.values())
        self.run.ending = self.actors.start(abort(SimulatedLedger(self.brokers), prepared))

    def look(self) -> None:
        """What has ended, as Spark sees it."""
        run = self.run
        if run is None:
            return
        for task in [task for task in run.attempts if task.done()]:
            partition = run.attempts.pop(task)
            if task.cancelled():
                continue
            if (error := task.exception()) is not None:
                self.is_stuck |= isinstance(error, MissingMarkerException) and self.brokers.deletions > 0
                assert self.is_stuck or isinstance(error, ProducerFencedException | MarkerMismatchException), error
            elif run.ending is None:
                run.outcomes.setdefault(partition, task.result())
        if run.ending is None and self.is_stuck:
            self.abort()
        elif run.ending is None and len(run.outcomes) == run.partitions:
            outcomes = list(run.outcomes.values())
            self.ending_since = self.turns
            work = commit(SimulatedLedger(self.brokers), run.epoch, outcomes, 10_000, "here")
            run.ending = self.actors.start(work)
        elif run.ending is not None and run.ending.done():
            self.ended(run, run.ending.exception())

    def ended(self, run: Run, error: BaseException | None) -> None:
        if run.aborts:
            assert error is None
            self.run = None
        elif error is None:
            self.done.add(run.epoch)
            assert self.is_whole(run.epoch)
            self.epoch += 1
            self.run = None
        else:
            self.is_stuck |= isinstance(error, EpochLostException) and self.brokers.deletions > 0
            expected = ProducerFencedException | EpochIncompleteException | EpochNotCommittedException
            found_a_decision = isinstance(error, IllegalStateException) and self.brokers.deletions > 0
            assert self.is_stuck or found_a_decision or isinstance(error, expected), error
            if isinstance(error, EpochIncompleteException):
                aborted = self.brokers.lost() or self.brokers.deletions
                assert aborted, "brokers, or another attempt, have aborted what was decided"
                last = self.brokers.in_force()
                if last is None:  # deleted since the driver has read it
                    assert self.brokers.deletions
                    self.is_stuck = True
                else:
                    self.epoch = last.epoch  # the error says that it has to be run again
                    self.incomplete.add(self.epoch)
                    self.skipped.discard(self.epoch)
            if isinstance(error, EpochNotCommittedException) and not self.is_decided(run.epoch):
                assert not self.seen(run.epoch)
            self.brokers.withdraw()  # as closing the producer does
            self.abort()

    # Brokers

    def complete(self, number: int) -> None:
        """The end of a transaction, or the decision, can be seen."""
        keys = self._keys(PREPARE)
        if keys:
            self.brokers.complete(keys[number % len(keys)])
        elif self.brokers.prepared:
            self.brokers.apply()

    def time_out(self, number: int) -> None:
        """Of a task's transaction, or of the driver's."""
        keys = self._keys(ONGOING)
        if keys and number % 4:
            self.brokers.abort(keys[number % len(keys)])
        else:
            self.brokers.withdraw()

    def _keys(self, state: str) -> list[tuple[int, int]]:
        return [key for key, one in self.brokers.transactions.items() if one.state == state]

    def _transactions(self) -> Iterable[Transaction]:
        return self.brokers.transactions.values()

    # What is promised

    def check(self) -> None:
        assert max(Counter(self.brokers.visible).values(), default=1) == 1, "each row once"
        assert all(self.is_decided(epoch) for epoch, _ in self.brokers.visible), "nothing before the decision"
        assert all(self.is_whole(epoch) for epoch in self.done)
        assert not self.brokers.wrongly_aborted, "neither drivers nor tasks abort what was decided"

    def is_decided(self, epoch: int) -> bool:
        in_force = [*self.brokers.decided, *([self.brokers.proposal] if self.brokers.prepared else [])]
        return any(one is not None and one.epoch == epoch for one in in_force)

    def seen(self, epoch: int) -> list[Row]:
        return [row for row in self.brokers.visible if row[0] == epoch]

    def is_whole(self, epoch: int) -> bool:
        """Whether all rows can be read, or will be in a moment, or could be until their topic was deleted."""
        rows = [*self.seen(epoch), *(row for row in self.brokers.deleted if row[0] == epoch)]
        for one in self._transactions():
            if one.state == PREPARE and one.committed:
                rows += [row for row in one.rows if row[0] == epoch]
        return set(rows) == {(epoch, row) for row in range(ROWS)}

    def finish(self, order: Sequence[int]) -> None:
        """When nothing crashes any more, the epoch is completed: with as many partitions as before if it was decided
        and something of it was lost, or an error says so, and with any number otherwise."""
        self.come_to_rest(order)
        begun = self.epoch
        for _ in range(5 + 5 * self.brokers.deletions):
            if self.epoch <= begun:  # an earlier one, if that has to be completed before
                last = self.brokers.decision
                lost = last is not None and last.epoch == self.epoch and bool(self.brokers.lost())
                lost |= self.epoch in self.incomplete
                self.start(last.partitions if last is not None and lost else 2)
                self.copy(0)
                self.come_to_rest(order)
        assert self.epoch > begun, "the epoch is completed"
        if not self.brokers.deletions:
            self.check_all_rows()
        assert all(one.state != ONGOING for one in self._transactions()), "nothing is left open"
        self.check()

    def check_all_rows(self) -> None:
        written = [epoch for epoch in range(self.epoch) if epoch not in self.skipped or self.is_decided(epoch)]
        assert sorted(self.brokers.visible) == [(epoch, row) for epoch in written for row in range(ROWS)]

    def close(self) -> None:
        self.actors.close()

    def come_to_rest(self, order: Sequence[int]) -> None:
        for turn in range(3000):
            while self._keys(PREPARE) or self.brokers.prepared:
                self.complete(0)
            if self.run is None and not self.brokers.waiting and not self.is_stuck:
                return
            if turn % 100 == 99:
                self.brokers.withdraw()  # a driver's transaction times out soon
            self.step(order[turn % len(order)])
        raise AssertionError("it comes to no rest")
