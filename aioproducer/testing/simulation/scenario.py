"""What there is to know of a run beforehand: the cluster, the producers' configs, what they do, what goes wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.produce_answer import FIRST_WITH_TOPIC_IDS
from aioproducer.testing.simulation.conditions import Conditions
from aioproducer.testing.simulation.releases import Release
from aioproducer.testing.simulation.work_plan import ApplicationPlan, WorkPlan

LARGE = 2000
"""How much larger than a batch a large record may be, in bytes."""
LARGEST = 1 << 20
"""A batch.size that nothing but large records fill."""
LIMITS = (300, 500, 2000)
"""What the largest batch of a topic may be changed to, in bytes."""
SLOW_LINE = 10_000
"""Bytes a second of a line that some records take too long to cross."""
NEVER_CREATED = math.inf
"""When a topic is created that never is."""
KEYS = [b"a", b"b", b"c", b"d", b"e", None, None, None]


class Promise(Enum):
    """What the producer's configs promise of each record."""

    EXACTLY_ONCE = "exactly once, in order"
    AT_LEAST_ONCE = "at least once if acknowledged"
    AT_MOST_ONCE = "at most once"


class Ending(Enum):
    """How a producer's life ends."""

    AFTER_ALL = "closed when everything has ended"
    CLOSED = "closed while records are under way"
    CLOSED_IN_TIME = "closed with a time-out while records are under way"
    ABORTED = "closed with a time-out of 0"
    TORN_DOWN = "its tasks are cancelled from outside, as asyncio.run does at its end"
    CANCELLED = "closed by a task that is cancelled"


def stream(seed: int, what: str) -> Random:
    """A source of randomness of its own for each thing that is random: one more draw here changes nothing there."""
    return Random(f"{seed} {what}")


@dataclass(frozen=True, slots=True)
class TopicPlan:
    name: str
    partitions: int
    created_at: float
    """Seconds after the start; negative if brokers create it when they are asked for it."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """All there is to know before the run; times in seconds after its start."""

    seed: int
    nodes: int
    broker_configs: dict[str, Any]
    topics: list[TopicPlan]
    replication: int
    producers: int
    config: dict[str, Any]
    intercepts: bool
    wraps: bool
    """Sequences begin where they soon come to their end."""
    promise: Promise
    work: list[WorkPlan]
    ending: Ending
    ends_at: float
    close_timeout: float
    conditions: Conditions
    applications: list[ApplicationPlan]
    """In place of producers and work: everything is written in transactions."""
    transaction_version: int
    """The protocol of transactions, as the cluster has finalized it; before 2 it is the first one."""
    release: Release
    """What brokers are, in the beginning if they are going to be replaced."""
    racks: list[str | None]
    old_nodes: list[int]
    """Brokers before KIP-1269, among newer ones."""
    collects: bool
    """Garbage is collected all the time."""
    coarse: bool
    """The clock has whole milliseconds, as uvloop's."""
    calm: bool
    """Nothing goes wrong and times are generous, so everything has to be delivered."""
    ample: bool = False
    """What goes wrong passes, and times are generous, so everything has to be delivered, sooner or later."""
    rates: dict[str, float] = field(default_factory=dict)
    faults_until: float = 0.0

    @property
    def log_append_time(self) -> bool:
        """Records have the broker's timestamp."""
        return bool(self.broker_configs["log.message.timestamp.type"] == "LogAppendTime")

    @property
    def largest_batch(self) -> int:
        """What brokers take, in bytes."""
        return int(self.broker_configs["message.max.bytes"])

    @property
    def slow_lines(self) -> bool:
        """A large record may take longer to cross a line than its request may take."""
        return self.ample and self.conditions.bandwidth == SLOW_LINE

    def may_change_its_size(self, plan: TopicPlan) -> bool:
        """Whether the topic may have another number of partitions one day: because it grows, or because a broker that
        creates it anew, as it is asked for it, knows no number but its own."""
        configs = self.broker_configs
        anew = "recreate" in self.rates and configs["auto.create.topics.enable"]
        return "growth" in self.rates or (anew and plan.partitions != configs["num.partitions"])

    @property
    def mixes_logs(self) -> bool:
        """Requests name topics by their names, so of those under way while a topic is created anew, the first may reach
        the old log and the second the new one. With one at a time none is under way with another.
        """
        by_name = (
            self.release.get(ApiKey.PRODUCE, FIRST_WITH_TOPIC_IDS) < FIRST_WITH_TOPIC_IDS or "upgrades" in self.rates
        )
        return "recreate" in self.rates and by_name and self.config["max_in_flight_requests_per_connection"] > 1

    @property
    def compacts(self) -> bool:
        """Brokers refuse records without a key, and name them (KIP-467)."""
        return self.broker_configs.get("log.cleanup.policy") == "compact"

    @property
    def forgets_with_records(self) -> bool:
        """Brokers before Kafka 2.5 forget a producer with the last of its records. They append a batch again that they
        had appended and deleted, if they are of a newer release by then.
        """
        return "retention" in self.rates and ("upgrades" in self.rates or bool(self.release))

    @property
    def reuses_offsets(self) -> bool:
        """A log may end before an offset that a record had."""
        return not self.rates.keys().isdisjoint(("recreate", "truncation"))

    @property
    def expiry(self) -> float:
        """Seconds after which brokers forget a producer that writes nothing. It is more than its batches may take that
        were sent together: Kafka's default is a day."""
        return 1 + 2 * self.milliseconds("delivery_timeout_ms")

    def users(self, transactional_id: str) -> int:
        """How many applications have it."""
        return sum(plan.transactional_id == transactional_id for plan in self.applications)

    def milliseconds(self, name: str) -> float:
        """A config in seconds."""
        return float(self.config[name]) / 1000

    def describe(self) -> list[str]:
        intercepted = ", intercepted" if self.intercepts else ""
        rates = ", ".join(f"{kind} {rate:.3f}" for kind, rate in self.rates.items())
        return [
            f"{self.nodes} nodes, racks {self.racks}, brokers {self.broker_configs}",
            *(f"{topic}, replication {self.replication}" for topic in self.topics),
            f"{self.producers} producers, {self.promise.value}: {self.config}" + intercepted,
            *(str(work) for work in self.work),
            *(str(application) for application in self.applications),
            f"{self.conditions}",
            f"newest versions {self.release}, before KIP-1269: {self.old_nodes}, "
            f"transactions {self.transaction_version}"
            + (", garbage is collected all the time" if self.collects else "")
            + (", sequences come to their end" if self.wraps else "")
            + (", the clock has whole milliseconds" if self.coarse else "")
            + (", faults pass and there is ample time" if self.ample else ""),
            f"faults for {self.faults_until:.3f} s: {rates or 'none'}",
            f"{self.ending.value} ({self.ends_at:.3f} s, time-out {self.close_timeout:.3f} s)",
        ]
