"""Everything about a run that is known before it: the cluster, the configs, the work and the faults."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Any

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.produce_answer import FIRST_WITH_TOPIC_IDS
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.releases import Release
from aioproducer.testing.simulation.work_plan import ApplicationPlan, WorkPlan

LARGE = 2000
"""How much larger than a batch a large record may be, in bytes."""
LARGEST = 1 << 20
"""A batch.size that only large records fill."""
LIMITS = (300, 500, 2000)
"""The values to which a topic's largest batch may be changed, in bytes."""
SLOW_LINE = 10_000
"""Bytes per second of a line that some records take too long to cross."""
NEVER_CREATED = math.inf
"""The time of creation of a topic that is never created."""
KEYS = [b"a", b"b", b"c", b"d", b"e", None, None, None]


class Promise(Enum):
    """The guarantee that the producer's configs give for each record."""

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
    """A separate random stream for each thing that is drawn, so a new draw changes no other one."""
    return Random(f"{seed} {what}")


@dataclass(frozen=True, slots=True)
class TopicPlan:
    name: str
    partitions: int
    created_at: float
    """Seconds after the start; negative if brokers create the topic automatically."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """All decisions of a run; times are seconds after its start."""

    seed: int
    nodes: int
    broker_configs: dict[str, Any]
    topics: list[TopicPlan]
    replication: int
    producers: int
    config: dict[str, Any]
    intercepts: bool
    wraps: bool
    """Sequences begin near their end."""
    promise: Promise
    work: list[WorkPlan]
    ending: Ending
    ends_at: float
    close_timeout: float
    conditions: Conditions
    applications: list[ApplicationPlan]
    """Applications in place of producers and work; all records are written in transactions."""
    transaction_version: int
    """The finalized ``transaction.version``; below 2 it means the first protocol."""
    release: Release
    """The release of the brokers; with upgrades, the release that they begin with."""
    racks: list[str | None]
    old_nodes: list[int]
    """Brokers before KIP-1269, among newer ones."""
    collects: bool
    """Garbage is collected all the time."""
    coarse: bool
    """The clock has whole milliseconds, as uvloop's."""
    slow: bool
    """The machine is slow, so that what takes a time slice takes many."""
    calm: bool
    """There are no faults and times are generous, so everything must be delivered."""
    labour: float = 0.0
    """Seconds that a broker takes for each Produce request, one after the other of a connection."""
    ample: bool = False
    """All faults pass and times are generous, so everything must be delivered sooner or later."""
    rates: dict[str, float] = field(default_factory=dict)
    faults_until: float = 0.0

    @property
    def log_append_time(self) -> bool:
        """Records have the broker's timestamp."""
        return bool(self.broker_configs["log.message.timestamp.type"] == "LogAppendTime")

    @property
    def largest_batch(self) -> int:
        """The largest batch that brokers take, in bytes."""
        return int(self.broker_configs["message.max.bytes"])

    @property
    def slow_lines(self) -> bool:
        """A large record may take longer to cross a line than the time-out of its request."""
        return self.ample and self.conditions.bandwidth == SLOW_LINE

    def may_change_its_size(self, plan: TopicPlan) -> bool:
        """Whether the topic's number of partitions may change: the topic grows, or a broker creates it anew
        automatically, with its default number."""
        configs = self.broker_configs
        anew = "recreate" in self.rates and configs["auto.create.topics.enable"]
        return "growth" in self.rates or (anew and plan.partitions != configs["num.partitions"])

    @property
    def may_read(self) -> bool:
        """Whether producers have Read on the topics, without which a broker refuses their inquiries."""
        return self.ample or stream(self.seed, "permissions").random() < 0.8

    @property
    def by_name(self) -> bool:
        """Whether requests may name topics by name."""
        return self.release.get(ApiKey.PRODUCE, FIRST_WITH_TOPIC_IDS) < FIRST_WITH_TOPIC_IDS or "upgrades" in self.rates

    @property
    def mixes_logs(self) -> bool:
        """Requests name topics by name. While a topic is created anew, the first of two requests under way may reach
        the old log and the second the new one. With one request in flight this cannot happen.
        """
        return "recreate" in self.rates and self.by_name and self.config["max_in_flight_requests_per_connection"] > 1

    @property
    def hides_new_topics(self) -> bool:
        """Brokers that name topics by name show fewer partitions for a while: a topic created anew looks the same."""
        return "growth" in self.rates and self.by_name

    @property
    def compacts(self) -> bool:
        """Brokers refuse records without a key, and name them (KIP-467)."""
        return self.broker_configs.get("log.cleanup.policy") == "compact"

    @property
    def forgets_with_records(self) -> bool:
        """Brokers before Kafka 2.5 forget a producer with the last of its records. After an upgrade they may append a
        batch again that they had appended and deleted.
        """
        return "retention" in self.rates and ("upgrades" in self.rates or bool(self.release))

    @property
    def reuses_offsets(self) -> bool:
        """Whether a log may use offsets again that records had."""
        return not self.rates.keys().isdisjoint(("recreate", "truncation"))

    @property
    def expiry(self) -> float:
        """Seconds after which brokers forget a producer that writes nothing. Batches sent together take less time than
        that: Kafka's default is a day."""
        return 1 + 2 * self.milliseconds("delivery_timeout_ms")

    def users(self, transactional_id: str) -> int:
        """The number of applications with this transactional id."""
        return sum(plan.transactional_id == transactional_id for plan in self.applications)

    def milliseconds(self, name: str) -> float:
        """A config in milliseconds, as seconds."""
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
            + (", the machine is slow" if self.slow else "")
            + (f", brokers take {self.labour:.3f} s for a request" if self.labour else "")
            + (", faults pass and there is ample time" if self.ample else ""),
            f"faults for {self.faults_until:.3f} s: {rates or 'none'}",
            f"{self.ending.value} ({self.ends_at:.3f} s, time-out {self.close_timeout:.3f} s)",
        ]
