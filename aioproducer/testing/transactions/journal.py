"""The journal of the workers, and the outcome of each transaction according to it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from aioproducer.testing.transactions.plan import Step, Transaction


class Outcome(Enum):
    COMMITTED = "its commit was acknowledged"
    UNKNOWN = "its producer was interrupted within the commit"
    NOT_COMMITTED = "its commit was never requested, or failed"


class Entry(NamedTuple):
    """A line of the journal; ``detail`` is an error."""

    step: Step
    transaction: Transaction
    detail: str = ""

    def line(self) -> bytes:
        return json.dumps([self.step.value, *self.transaction, self.detail]).encode() + b"\n"

    @classmethod
    def of(cls, line: bytes) -> Entry:
        step, run, number, detail = json.loads(line)
        return cls(Step(step), Transaction(run, number), detail)


class Journal:
    """``last`` is the last step of each transaction, in the order of their beginning."""

    def __init__(self) -> None:
        self.last: dict[Transaction, Step] = {}
        self.failures: list[Entry] = []
        """Transactions that failed and were aborted, with the errors."""
        self.fenced: list[Entry] = []

    def add(self, entry: Entry) -> None:
        if entry.step is Step.FENCED:
            # This entry is about a producer. Its last commit may have succeeded before.
            self.fenced.append(entry)
            return
        if entry.step is Step.FAILED:
            self.failures.append(entry)
        if entry.step is not Step.INITIALIZE:
            self.last[entry.transaction] = entry.step

    def outcome(self, transaction: Transaction) -> Outcome:
        """The outcome of any transaction, also of one that is not in the journal."""
        match self.last.get(transaction):
            case Step.COMMITTED:
                return Outcome.COMMITTED
            case Step.COMMIT:
                return Outcome.UNKNOWN
            case _:
                return Outcome.NOT_COMMITTED

    def with_outcome(self, outcome: Outcome) -> Iterator[Transaction]:
        return (transaction for transaction in self.last if self.outcome(transaction) is outcome)

    def steps(self) -> Counter[Step]:
        """The number of transactions by their last step."""
        return Counter(self.last.values())
