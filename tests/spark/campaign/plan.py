"""The plan of interruptions: what, and when. Drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice


class Kind(StrEnum):
    """What is done to the query."""

    DRIVER = "driver killed"
    EXECUTOR = "executor killed"
    WORKER = "Python worker killed"
    STOP = "query stopped"
    CANCEL = "all jobs cancelled"
    UPSTREAM = "transient error upstream"
    SPECULATION = "slow task, copied"
    CORES = "stopped in the middle, other cores"


class Moment(StrEnum):
    """The event after which it is done."""

    BEGUN = "task begun"
    WROTE = "task has written"
    COMMITTING = "driver commits"
    DECIDED = "driver has decided"
    COMMITTED = "driver has committed"


class Mode(StrEnum):
    """How the rows are written."""

    STREAM = "stream"
    BATCH = "batch"
    FOREACH = "foreachBatch"


_LONGEST_MS = {Moment.BEGUN: 1500, Moment.WROTE: 300, Moment.COMMITTING: 60, Moment.DECIDED: 10, Moment.COMMITTED: 40}

ENDS_ATTEMPT = (Kind.DRIVER, Kind.STOP, Kind.CANCEL, Kind.CORES)
"""After one of these nothing of an attempt is left."""

_OF_TASKS = (Kind.UPSTREAM, Kind.SPECULATION)
"""Made by a task itself, when it reads its next rows."""


@dataclass(frozen=True)
class Interruption:
    """``delay_ms`` after the ``nth`` such event of an attempt."""

    kind: Kind
    moment: Moment
    nth: int
    delay_ms: int


_WEIGHTS = {Kind.DRIVER: 1, Kind.CORES: 1}
"""The others have 2: after these a new session has to be started, which takes longest."""


def interruptions(seed: int, number: int) -> Sequence[Interruption]:
    """Each kind as often as its weight, in any order."""
    dice = random.Random(seed)
    kinds = list(islice(cycle(kind for kind in Kind for _ in range(_WEIGHTS.get(kind, 2))), number))
    dice.shuffle(kinds)
    return [_one(kind, dice) for kind in kinds]


def _one(kind: Kind, dice: random.Random) -> Interruption:
    moment = Moment.BEGUN if kind in _OF_TASKS else dice.choice(list(Moment))
    return Interruption(kind, moment, dice.choice((1, 1, 1, 2, 3)), dice.randint(0, _LONGEST_MS[moment]))


def modes() -> Iterator[Mode]:
    """In turn, for ever."""
    return cycle(Mode)
