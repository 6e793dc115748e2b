"""What is drawn from a seed before a run begins: the cluster, the producers' configs, what they do, what goes wrong."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random
from typing import Any

from aioproducer.errors import ConfigException
from aioproducer.jaas import PLAIN_LOGIN_MODULE
from aioproducer.protocol.api_keys import ApiKey
from aioproducer.records.compression import CompressionType, check_codec
from aioproducer.testing.simulation.faults import KINDS
from aioproducer.testing.simulation.network import Conditions
from aioproducer.testing.simulation.work_plan import ApplicationPlan, WorkPlan, draw_applications, draw_work

LARGE = 2000
"""How much larger than a batch a large record may be, in bytes."""
NEVER = math.inf
"""When a topic is created that never is."""
_VERSIONED = (
    ApiKey.PRODUCE,
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
)
_LATER_KINDS = ("growth", "windows")
"""Drawn from a stream of their own, as they came later."""
_SESSIONS_MS = (0, 300, 1000, 5000)
"""Also those that end before brokers let anybody renew them: a second after the last time."""
_PASSWORD = "secret"
_SASL = {
    "listeners": "SASL_PLAINTEXT://:0",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN_LOGIN_MODULE} required user_alice="{_PASSWORD}";',
    "connection.failed.authentication.delay.ms": 1,
}
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
    newest_versions: dict[int, int]
    """Older brokers: the newest version they have of an API."""
    racks: list[str | None]
    old_nodes: list[int]
    """Brokers before KIP-1269, among newer ones."""
    collects: bool
    """Garbage is collected all the time."""
    coarse: bool
    """The clock has whole milliseconds, as uvloop's."""
    calm: bool
    """Nothing goes wrong and times are generous, so everything has to be delivered."""
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
            f"newest versions {self.newest_versions}, before KIP-1269: {self.old_nodes}, "
            f"transactions {self.transaction_version}"
            + (", garbage is collected all the time" if self.collects else "")
            + (", the clock has whole milliseconds" if self.coarse else ""),
            f"faults for {self.faults_until:.3f} s: {rates or 'none'}",
            f"{self.ending.value} ({self.ends_at:.3f} s, time-out {self.close_timeout:.3f} s)",
        ]


def draw(seed: int, kinds: Collection[str] = tuple(KINDS)) -> Scenario:
    """The scenario of a seed. Leaving kinds of faults out changes nothing else."""
    random = stream(seed, "scenario")
    nodes = random.choice((1, 1, 2, 3))
    auto_create = random.random() < 0.5
    versions = _draw_versions(random)
    rates = _draw_rates(stream(seed, "rates"))
    more = stream(seed, "more")
    if rates:
        rates |= {kind: 10 ** more.uniform(-2.3, -0.6) for kind in _LATER_KINDS if more.random() < 0.1}
    if versions:
        # Before topics had ids, clients could not tell a topic that was created anew from old news.
        rates.pop("recreate", None)
    in_transactions = stream(seed, "transactions").random() < 0.3
    # A transaction is not whole in a topic that was deleted; and who has no transactions has no coordinator.
    rates.pop("recreate" if in_transactions else "coordinators", None)
    calm = not rates
    latency = random.choice((0.0001, 0.001, 0.005) if calm else (0.0001, 0.001, 0.005, 0.03))
    largest_batch = random.choice((1048588, 1048588, 1048588, 500, 2000))
    config, promise = _draw_config(random, calm, slow=latency > 0.01, splits=largest_batch < 10_000)
    producers = 2 if random.random() < 0.2 else 1
    by_default = random.choice((1, 3))
    topics = [
        _draw_topic(random, f"topic{number}", auto_create, by_default) for number in range(random.choice((1, 1, 2, 3)))
    ]
    if not auto_create and random.random() < 0.1:
        topics.append(TopicPlan("nowhere", 2, NEVER))
        config["max_block_ms"] = min(config["max_block_ms"], 3000)
    ending = Ending.AFTER_ALL if calm or random.random() < 0.6 else random.choice(list(Ending))
    duration = random.choice((0.2, 1.0, 3.0))
    work = [draw_work(random, number % producers, duration) for number in range(random.choice((1, 2, 3, 4)))]
    if random.random() < 0.3:
        # All of it for one partition, in batches of few records that are on their way together.
        topics = [TopicPlan("topic0", 1, 0.0)]
        work = [replace(plan, records=120, burst=40, pause=min(plan.pause, duration / 3), waits=0.0) for plan in work]
        config |= {"batch_size": random.choice((0, 120)), "linger_ms": 0, "buffer_memory": 100_000}
        config["max_in_flight_requests_per_connection"] = random.choice((5, 20))
    replication = random.randint(1, nodes)
    applications: list[ApplicationPlan] = []
    if in_transactions:
        applications = draw_applications(stream(seed, "applications"), duration, calm=calm)
        config, promise = _transactional(config), Promise.EXACTLY_ONCE
        work, producers, ending = [], 0, Ending.AFTER_ALL
    more_config, more_broker_config = _draw_more(more, calm=calm)
    config |= more_config
    bulk = more.choice((0.0, 0.0, 0.0, 0.0, 0.1))
    work = [replace(plan, bulk=bulk) for plan in work]
    applications = [replace(plan, work=replace(plan.work, bulk=bulk)) for plan in applications]
    return Scenario(
        seed=seed,
        nodes=nodes,
        broker_configs={
            "auto.create.topics.enable": auto_create,
            "num.partitions": by_default,
            "min.insync.replicas": random.randint(1, replication),
            "message.max.bytes": largest_batch,
            **_draw_broker_configs(random, calm),
            **more_broker_config,
        },
        topics=topics,
        replication=replication,
        producers=producers,
        config=config,
        intercepts=random.random() < 0.3,
        promise=promise,
        work=work,
        ending=ending,
        ends_at=random.uniform(0, 1.5 * duration),
        close_timeout=random.choice((0.01, 0.1, 1.0)),
        conditions=Conditions(
            latency=latency,
            bandwidth=random.choice((1e6, 1e8) if calm else (1e5, 1e6, 1e8)),
            window=random.choice((1000, 20_000, 256 * 1024)),
            splits=random.choice((0.0, 0.05, 0.5)),
            writes_later=random.random() < 0.3,
            reset_drops_unread=random.random() < 0.3,
        ),
        applications=applications,
        transaction_version=random.choice((0, 1) if versions else (1, 2, 2)),
        newest_versions=versions,
        racks=[random.choice((None, "a", "b")) for _ in range(nodes)],
        old_nodes=[node for node in range(nodes) if random.random() < 0.2],
        collects=random.random() < 0.1,
        coarse=more.random() < 0.2,
        calm=calm,
        rates={kind: rate for kind, rate in rates.items() if kind in kinds},
        faults_until=random.uniform(0.5, 1.5) * duration + random.choice((0.0, 1.0)),
    )


def _draw_more(random: Random, *, calm: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Configs of the producer and of the brokers."""
    config: dict[str, Any] = {}
    brokers: dict[str, Any] = {}
    if random.random() < 0.1:
        config["pipeline"] = "auto"
    if random.random() < 0.05 and not calm:
        config["partitioner_class"] = choose_partition
    if random.random() < 0.1:
        brokers = {**_SASL, "connections.max.reauth.ms": 600_000 if calm else random.choice(_SESSIONS_MS)}
        config |= {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "alice",
            "sasl_plain_password": _PASSWORD,
        }
    return config, brokers


def choose_partition(
    topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, partitions: Sequence[Any]
) -> int:
    """A partitioner (partitioner.class) that now and then fails, or names a partition that there is not."""
    chosen = len(value_bytes or b"")
    if chosen % 41 == 40:
        raise ValueError("not this one")
    return -1 if chosen % 41 == 39 else chosen % len(partitions)


def _draw_topic(random: Random, name: str, auto_create: bool, by_default: int) -> TopicPlan:
    partitions = random.choice((1, 1, 2, 3, 6))
    if auto_create and random.random() < 0.5:
        return TopicPlan(name, by_default, -1.0)
    late = not auto_create and random.random() < 0.3
    return TopicPlan(name, partitions, random.uniform(0, 0.3) if late else 0.0)


def _draw_rates(random: Random) -> dict[str, float]:
    if random.random() < 0.1:
        return {}
    first = [kind for kind in KINDS if kind not in _LATER_KINDS]
    if random.random() < 0.4:  # few kinds, but these often
        few = random.sample(first, random.randint(1, 3))
        return {kind: 10 ** random.uniform(-1.3, -0.3) for kind in first if kind in few}
    some = random.choice((0.15, 0.3, 0.5))
    return {kind: 10 ** random.uniform(-2.3, -0.6) for kind in first if random.random() < some}


def _draw_config(random: Random, calm: bool, slow: bool, splits: bool) -> tuple[dict[str, Any], Promise]:
    linger = random.choice((0, 0, 1, 5, 20, 100))
    batch = random.choice((1000, 16384) if splits else (0, 1, 120, 300, 1000, 16384))
    request_timeout = 5000 if calm else random.choice((100, 300, 1000)) * (5 if slow else 1)
    retry_backoff = 50 if calm else random.choice((5, 10, 50))
    connecting = 5000 if calm else random.choice((100, 500, 2000)) * (5 if slow else 1)
    config: dict[str, Any] = {
        "linger_ms": linger,
        "batch_size": batch,
        "buffer_memory": max(batch, 1000) * random.choice((1, 2, 5, 50)) + 1000,
        "parked_memory": random.choice((10_000, 1 << 24, 1 << 24)),
        "max_block_ms": random.choice((100, 500, 3000)) if not calm else 20_000,
        "max_request_size": random.choice((1 << 20, 1 << 20, 3000)),
        "max_in_flight_requests_per_connection": random.choice((1, 1, 2, 5, 5, 20, 20)),
        "request_timeout_ms": request_timeout,
        "delivery_timeout_ms": linger
        + request_timeout
        + (random.choice((0, 200, 1000, 5000, 20_000)) if not calm else 60_000),
        "retry_backoff_ms": retry_backoff,
        "retry_backoff_max_ms": retry_backoff * random.choice((1, 10)),
        "reconnect_backoff_ms": random.choice((1, 10, 50)),
        "reconnect_backoff_max_ms": random.choice((50, 500)),
        "socket_connection_setup_timeout_ms": connecting,
        "socket_connection_setup_timeout_max_ms": connecting * random.choice((1, 3)),
        "metadata_max_age_ms": random.choice((300_000, 300_000, 300, 2000)),
        "connections_max_idle_ms": random.choice((540_000, 540_000, 100, 1000)),
        "compression_type": _draw_codec(random),
        "compression_thread_bytes": random.choice((-1, 0, 500)),
        "partitioner_ignore_keys": random.random() < 0.1,
        "partitioner_adaptive_partitioning_enable": random.random() < 0.7,
        "partitioner_availability_timeout_ms": random.choice((0, 1, 100)),
        **random.choice(({}, {"client_rack": "a"}, {"client_rack": "a", "partitioner_rack_aware": True})),
        "metrics_recording_level": random.choice(("INFO", "DEBUG")),
        "metrics_sample_window_ms": random.choice((30_000, 100)),
    }
    kind = random.random()
    if kind < 0.8:
        if random.random() < 0.3:
            config["retries"] = random.randint(1, 3)
        return config, Promise.EXACTLY_ONCE
    if kind < 0.94:
        config["acks"] = random.choice(("1", "all"))
        config["enable_idempotence"] = False
        if random.random() < 0.3:
            config["retries"] = 0
            return config, Promise.AT_MOST_ONCE
        return config, Promise.AT_LEAST_ONCE
    config["acks"] = "0"
    return config, Promise.AT_MOST_ONCE


def _transactional(config: dict[str, Any]) -> dict[str, Any]:
    """Without what a transactional producer refuses."""
    refused = {"acks", "enable_idempotence"}
    return {name: value for name, value in config.items() if name not in refused and (name, value) != ("retries", 0)}


def _draw_codec(random: Random) -> str:
    """Without the library of the one that is drawn, gzip."""
    name = random.choice(("none", "none", "none", "none", "gzip", "snappy", "lz4", "zstd"))
    try:
        check_codec(CompressionType.of(name))
    except ConfigException:
        return "gzip"
    return name


def _draw_broker_configs(random: Random, calm: bool) -> dict[str, Any]:
    return {
        "log.producer.state.batches.to.retain": random.choice((5, 5, 10, 50)),
        "log.message.timestamp.type": random.choice(("CreateTime", "CreateTime", "CreateTime", "LogAppendTime")),
        "connections.max.idle.ms": 600_000 if calm else random.choice((600_000, 600_000, 300)),
    }


def _draw_versions(random: Random) -> dict[int, int]:
    if random.random() < 0.7:
        return {}
    # Kafka 2.1, 2.4, 3.3 and 3.7, as far as it matters.
    versions = random.choice(((7, 7, 2, 3, 1, 2), (8, 9, 2, 3, 1, 2), (9, 12, 4, 4, 3, 3), (10, 12, 4, 4, 3, 3)))
    return dict(zip(_VERSIONED, versions, strict=True))
