"""The drawn plans of users: tasks that send, and applications that work in transactions."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """The work of one task with a producer."""

    producer: int
    records: int
    pause: float
    """Mean seconds between bursts."""
    burst: int
    large: float
    """The probability that a record is larger than a batch."""
    waits: float
    """The probability that a record is awaited before the next one."""
    enqueues: bool
    cancels: float
    flushes: float
    bulk: float = 0.0
    """The probability that many records are sent at once."""
    rests: int = 0
    """The number of pauses so long that brokers may forget the producer."""
    old: float = 0.0
    """The probability that a timestamp is so old that brokers may forget the producer right after the record."""


@dataclass(frozen=True, slots=True)
class ApplicationPlan:
    """The plan of an application with a transactional id, in all its lives. Probabilities apply to each transaction;
    applications with the same id are rivals."""

    transactional_id: str
    timeout_ms: int
    """The application's ``transaction.timeout.ms``."""
    begins_at: float
    lives: int
    span: float
    """Mean seconds after which a life is ended from outside; 0 for never."""
    transactions: int
    """The largest number of transactions in each life."""
    work: WorkPlan
    """The work in one transaction, with the largest number of its records."""
    aborts: float
    offsets: float
    """The probability that a transaction contains offsets of a group."""
    by_hand: float
    """The probability that a transaction is made by single calls, not as a block."""
    units: float = 0.0
    """The probability that a life works with units that share transactions, each handler with its own."""
    doomed: float = 0.0
    """The probability that a unit asks for what is never accepted: a record of a deleted topic, or an offset of a topic
    that does not exist. It uses up the time that it has."""


def draw_work(random: Random, producer: int, duration: float) -> WorkPlan:
    records = random.choice((1, 20, 60, 120))
    burst = random.choice((1, 1, 5, 40))
    return WorkPlan(
        producer=producer,
        records=records,
        pause=random.choice((0.0, duration * burst / records)),
        burst=burst,
        large=random.choice((0.0, 0.0, 0.05, 0.3)),
        waits=random.choice((0.0, 0.0, 0.2, 1.0)),
        enqueues=random.random() < 0.5,
        cancels=random.choice((0.0, 0.0, 0.2)),
        flushes=random.choice((0.0, 0.0, 0.05)),
    )


def draw_applications(random: Random, duration: float, *, calm: bool) -> list[ApplicationPlan]:
    """One to three applications, with one or two transactional ids."""
    ids = random.choice((1, 1, 2))
    return [
        _draw_application(random, f"id{number % ids}", duration, calm=calm)
        for number in range(random.choice((1, 2, 3)))
    ]


def _draw_application(random: Random, transactional_id: str, duration: float, *, calm: bool) -> ApplicationPlan:
    lives = random.choice((1, 2, 4))
    transactions = random.choice((1, 4, 8))
    records = random.choice((1, 5, 20))
    burst = random.choice((1, 5, 20))
    return ApplicationPlan(
        transactional_id,
        timeout_ms=600_000 if calm else random.choice((300, 2000, 60_000)),
        begins_at=random.choice((0.0, random.uniform(0, duration))),
        lives=lives,
        span=random.choice((0.0, duration / lives)),
        transactions=transactions,
        work=WorkPlan(
            producer=-1,  # each life has its own
            records=records,
            pause=random.choice((0.0, duration / lives / transactions)),
            burst=burst,
            large=random.choice((0.0, 0.0, 0.05)),
            waits=random.choice((0.0, 0.0, 0.2)),
            enqueues=random.random() < 0.5,
            cancels=random.choice((0.0, 0.05, 0.3)),
            flushes=random.choice((0.0, 0.05)),
        ),
        aborts=random.choice((0.0, 0.3)),
        offsets=random.choice((0.0, 0.5)),
        by_hand=random.choice((0.0, 0.5, 1.0)),
    )
