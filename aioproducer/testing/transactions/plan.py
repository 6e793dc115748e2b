"""The plan of a campaign: its transactions, their records, and the interruptions of their producer. A seed decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final, NamedTuple


class Transaction(NamedTuple):
    """The ``run`` of the producer, and the transaction's number, which continues from run to run."""

    run: int
    number: int


class Step(Enum):
    """A step in the journal of a worker, which writes the first four before the step, and the others after it."""

    INITIALIZE = "initialize"
    BEGIN = "begin"
    COMMIT = "commit"
    ABORT = "abort"
    FAILED = "failed"
    COMMITTED = "committed"
    ABORTED = "aborted"
    FENCED = "fenced"


class Interruption(NamedTuple):
    """A worker is interrupted ``delay`` seconds after it takes this step, in the first transaction from ``number`` on.

    It is killed; or it is stopped, and woken when its successor is at work.
    """

    number: int
    step: Step
    delay: float
    stopped: bool

    def is_due(self, step: Step, number: int) -> bool:
        return step is self.step and (step is Step.INITIALIZE or number >= self.number)


# About as long as the steps take, in seconds; for a commit, after all records are in the log.
_LONGEST_DELAY: Final = {Step.BEGIN: 0.01, Step.COMMIT: 0.02, Step.ABORT: 0.02, Step.INITIALIZE: 0.05}


@dataclass(frozen=True)
class Plan:
    """``transactions`` is the least number; more follow until all interruptions have happened."""

    seed: int = 1
    transactions: int = 1000
    records: int = 750
    partitions: int = 6
    kills: int = 20
    stops: int = 4
    bounces: int = 6

    def __post_init__(self) -> None:
        if self.kills + self.stops > self.transactions:
            wanted = self.kills + self.stops
            raise ValueError(f"{wanted} interruptions do not fit into {self.transactions} transactions")

    @staticmethod
    def commits(number: int) -> bool:
        """Whether the transaction is committed; a third is aborted."""
        return number % 3 != 0

    @staticmethod
    def waits(number: int) -> bool:
        """Whether all records are in the log before the transaction's end begins, as in half of the transactions."""
        return number % 2 == 0

    def values(self, transaction: Transaction) -> Iterator[tuple[int, bytes]]:
        """Partition and value of each record."""
        for index in range(self.records):
            yield index % self.partitions, b"%d %d %d" % (*transaction, index)

    def interruptions(self) -> list[Interruption]:
        """All interruptions, by number. Only a worker whose predecessor was killed is killed while it initializes."""
        random = Random(self.seed)
        kinds = [True] * self.stops + [False] * self.kills
        random.shuffle(kinds)
        numbers = sorted(random.sample(range(self.transactions), len(kinds)))
        made: list[Interruption] = []
        for number, stopped in zip(numbers, kinds, strict=True):
            starting = not stopped and bool(made) and not made[-1].stopped
            step = random.choice([Step.BEGIN, Step.COMMIT, Step.ABORT] + [Step.INITIALIZE] * starting)
            made.append(Interruption(number, step, random.uniform(0, _LONGEST_DELAY[step]), stopped))
        return made


def transaction_of(value: bytes | None) -> Transaction:
    """The transaction that a record with this value belongs to."""
    run, number, _ = (value or b"").split()
    return Transaction(int(run), int(number))
