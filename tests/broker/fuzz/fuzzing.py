"""Attacks brokers with random requests, and collects what they must not do: findings."""

from __future__ import annotations

import asyncio
import logging
import math
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from random import Random
from typing import Any

from aioproducer.broker import EmbeddedCluster
from benchmarks.stress.measured_loop import Held, MeasuredLoop
from tests.broker.raw_clients.sasl import CONFIGS as SASL

from .byte_random import ByteRandom, EndOfBytes
from .fuzzing_client import HURRY, JUDGED, FuzzingClient, WrongAnswer
from .random_requests import TOPICS

LONGEST_TURN = 0.100
"""Seconds of CPU time that the broker's event loop may be held."""

LIFE = 5_000
"""Requests to one broker, before another one takes its place."""

_HONEST = 100
"""Every request of this number is an honest one."""

_SHOWN = 3
"""How many of the last requests a finding shows."""

BROKERS: dict[str, dict[str, Any]] = {
    "records in memory": {},
    "records on disk": {
        "data_dir": True,
        "transaction.two.phase.commit.enable": True,
        "unstable.api.versions.enable": True,
    },
    "users and ACLs": {
        **SASL,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice",
    },
}
"""The configs of the brokers, which take turns."""


@dataclass(frozen=True)
class Finding:
    """``frames`` are the last requests before it. ``source``, a seed or an input, makes the same ones, as far as the
    answers do not differ."""

    what: str
    broker: str
    source: str
    number: int
    frames: tuple[bytes, ...]

    def __str__(self) -> str:
        shown = "".join(f"\n    {frame[:1000].hex()}" for frame in self.frames)
        return f"{self.broker}, {self.source}, request {self.number}: {self.what}{shown}"


@dataclass
class Fuzzed:
    """The result of a run."""

    requests: int = 0
    answers: int = 0
    accepted: int = 0
    longest_turn: float = 0.0
    findings: list[Finding] = field(default_factory=list)


class _Errors(logging.Handler):
    """Collects records of level ERROR, and those with a traceback."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: deque[str] = deque()

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.exc_info:
            self.lines.append(logging.Formatter().format(record))


@contextmanager
def _logged() -> Iterator[deque[str]]:
    """Collects the errors of all loggers, asyncio's included, and keeps the broker's lines from other handlers."""
    handler = _Errors()
    root, broker = logging.getLogger(), logging.getLogger("aioproducer")
    propagates, broker.propagate = broker.propagate, False
    for logger in (root, broker):
        logger.addHandler(handler)
    try:
        yield handler.lines
    finally:
        for logger in (root, broker):
            logger.removeHandler(handler)
        broker.propagate = propagates


def fuzz(seconds: float, seed: int, found: Fuzzed, progress: Callable[[Fuzzed], object] = lambda found: None) -> None:
    """Attacks one broker after the other, each with its own seed, for a number of seconds."""
    until = time.monotonic() + seconds
    for name in cycle(BROKERS):
        fuzz_broker(name, seed, found, until=until)
        seed += 1
        progress(found)
        if time.monotonic() >= until:
            return


def fuzz_broker(name: str, seed: int, found: Fuzzed, *, requests: int = LIFE, until: float = math.inf) -> None:
    """Attacks one of :data:`BROKERS` with a number of requests."""
    _run(name, Random(seed), f"seed {seed}", requests, until, found)


def converse(data: bytes, source: str, found: Fuzzed, *, hurry: float = HURRY) -> None:
    """Attacks a broker of its own with the requests that these bytes make: the first one chooses the broker."""
    if data:
        names = tuple(BROKERS)
        _run(names[data[0] % len(names)], ByteRandom(data[1:]), source, LIFE, math.inf, found, hurry)


def _run(
    name: str, random: Random, source: str, requests: int, until: float, found: Fuzzed, hurry: float = HURRY
) -> None:
    with asyncio.Runner(loop_factory=MeasuredLoop) as runner:
        runner.run(_fuzz_broker(name, random, source, requests, until, found, hurry))


async def _fuzz_broker(
    name: str, random: Random, source: str, requests: int, until: float, found: Fuzzed, hurry: float
) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MeasuredLoop)
    configs = dict(BROKERS[name])
    with ExitStack() as stack:
        errors = stack.enter_context(_logged())
        directory = None
        if configs.pop("data_dir", False):
            directory = stack.enter_context(tempfile.TemporaryDirectory())
        async with EmbeddedCluster(configs=configs, data_dir=directory) as cluster:
            for topic in (*TOPICS, JUDGED):
                cluster.create_topic(topic, 1 if topic == JUDGED else 3)
            port = int(cluster.bootstrap_servers.rpartition(":")[2])
            client = FuzzingClient(port, random, logs_in="listeners" in configs, hurry=hurry)
            with loop.measured() as held:
                await asyncio.to_thread(_attack, client, name, source, requests, until, held, errors, found)
        for line in errors:  # logged while the broker closed
            found.findings.append(Finding(line, name, source, requests, ()))


def _attack(
    client: FuzzingClient,
    name: str,
    source: str,
    requests: int,
    until: float,
    held: Held,
    errors: deque[str],
    found: Fuzzed,
) -> None:
    sent: deque[bytes] = deque(maxlen=_SHOWN)
    try:
        for number in range(requests):
            if time.monotonic() >= until:
                break
            wrong = []
            try:
                client.is_served() if number % _HONEST == _HONEST - 1 else client.send()
            except EndOfBytes:
                break
            except (WrongAnswer, OSError) as error:
                wrong.append(f"{type(error).__name__}: {error}")
            sent.append(client.last)
            turn, held.turn = held.turn, 0.0
            found.longest_turn = max(found.longest_turn, turn)
            if turn > LONGEST_TURN:
                wrong.append(f"the loop was held for {turn * 1000:.0f} ms, by {held.what}")
            while errors:
                wrong.append(errors.popleft())
            found.requests += 1
            found.findings += [Finding(what, name, source, number, tuple(sent)) for what in wrong]
    finally:
        client.close()
        found.answers += client.answers
        found.accepted += client.accepted
