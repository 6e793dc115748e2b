"""The scenario of a seed.

Each thing that is drawn has its own random stream, so a new draw changes no other one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from aioproducer.errors import ConfigException
from aioproducer.records.compression import CompressionType, check_codec
from aioproducer.security.jaas import PLAIN_LOGIN_MODULE
from aioproducer.testing.simulation.faults.faults import KINDS
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.releases import NEWEST, OLD
from aioproducer.testing.simulation.scenario import (
    LARGE,
    LARGEST,
    NEVER_CREATED,
    SLOW_LINE,
    Ending,
    Promise,
    Scenario,
    TopicPlan,
    stream,
)
from aioproducer.testing.simulation.users.serializer import turn_around
from aioproducer.testing.simulation.work_plan import ApplicationPlan, WorkPlan, draw_applications, draw_work

_SESSIONS_MS = (0, 300, 1000, 5000)
"""Some sessions are shorter than the second after which brokers let a client renew them."""
AMPLE = {
    "delivery_timeout_ms": 120_000,
    "max_block_ms": 60_000,
    "buffer_memory": 10_000_000,
    "parked_memory": 1 << 24,
    "retry_backoff_max_ms": 1000,
}
"""Configs that give a record time to survive all faults."""
_PASSWORD = "secret"
_SASL = {
    "listeners": "SASL_PLAINTEXT://:0",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN_LOGIN_MODULE} required user_alice="{_PASSWORD}";',
    "connection.failed.authentication.delay.ms": 1,
}


def draw(
    seed: int, kinds: Collection[str] = tuple(KINDS), *, rates: Mapping[str, float] | None = None, ample: bool = False
) -> Scenario:
    """The scenario of a seed. Leaving out kinds of faults changes nothing else.

    ``rates`` are those of kinds that strike with every seed, in place of drawn ones. ``ample``: as if the seed had
    drawn faults that pass and time for all of them.
    """
    of = partial(stream, seed)
    ample = ample or of("ample").random() < 0.1
    in_transactions = not ample and of("in transactions").random() < 0.3
    release = NEWEST if of("release").random() < 0.7 else of("old release").choice(OLD)
    possible = partial(_possible, old=bool(release), in_transactions=in_transactions, ample=ample)
    drawn = possible(_draw_rates(of("rates")))
    calm = not (drawn or rates)
    conditions = _draw_conditions(of("conditions"), calm)
    brokers = of("brokers")
    nodes = brokers.choice((1, 1, 2, 3))
    replication = brokers.randint(1, nodes)
    broker_configs = _draw_broker_configs(brokers, calm, replication)
    config, promise = _draw_config(
        of("config"), calm, slow=conditions.latency > 0.01, splits=broker_configs["message.max.bytes"] < 10_000
    )
    if ample or config["batch_size"] == LARGEST:
        # Otherwise a request may exceed its time-out at every attempt.
        conditions = replace(conditions, bandwidth=1e8, window=256 * 1024)
    topics = _draw_topics(
        of("topics"), broker_configs["auto.create.topics.enable"], by_default=broker_configs["num.partitions"]
    )
    if topics[-1].created_at == NEVER_CREATED:
        config["max_block_ms"] = min(config["max_block_ms"], 3000)
    timing = of("timing")
    duration = timing.choice((0.2, 1.0, 3.0))
    producers = 2 if of("producers").random() < 0.2 else 1
    work = _draw_tasks(of("work"), producers, duration)
    crowd = of("crowd")
    if crowd.random() < 0.3:
        topics, work = [TopicPlan("topic0", 1, 0.0)], [_crowded(plan, duration) for plan in work]
        config |= {"batch_size": crowd.choice((0, 120)), "linger_ms": 0, "buffer_memory": 100_000}
        config["max_in_flight_requests_per_connection"] = crowd.choice((5, 20, 50))
    endings = of("ending")
    ending = Ending.AFTER_ALL if calm or endings.random() < 0.6 else endings.choice(list(Ending))
    applications: list[ApplicationPlan] = []
    if in_transactions:
        applications = draw_applications(of("applications"), duration, calm=calm)
        config, promise = _transactional(config), Promise.EXACTLY_ONCE
        work, producers, ending = [], 0, Ending.AFTER_ALL
    config |= _draw_behaviour(of("behaviour"), calm)
    if ample:
        config, promise, ending = *_with_ample_time(config, promise), Ending.AFTER_ALL
        if not calm and of("slow lines").random() < 0.15:
            conditions = replace(conditions, bandwidth=SLOW_LINE, window=1000)
            config |= _draw_for_slow_lines(of("slow lines"))
        if of("small requests").random() < 0.15:
            broker_configs["socket.request.max.bytes"] = small_requests(config["batch_size"])
    config |= draw_batch_sizes(of("batch sizes"), config["batch_size"], config["max_request_size"])
    records_are_named = release is NEWEST and "upgrades" not in drawn  # by brokers from Kafka 2.4 on
    if not calm and not in_transactions and records_are_named and of("compaction").random() < 0.15:
        broker_configs["log.cleanup.policy"] = "compact"
    bulk = of("bulk").choice((0.0, 0.0, 0.0, 0.0, 0.1))
    units = of("units").choice((0.0, 0.0, 0.5, 1.0))
    doomed = of("doomed units").choice((0.0, 0.0, 0.02))
    if in_transactions:
        config["transaction_group_window_ms"] = of("window of units").choice((0, 0, 0, 5, 50))
    more_config, more_broker_config = _draw_sasl(of("sasl"), calm)
    labour = 0.0
    ends_connections = "sasl_mechanism" in more_config or broker_configs["connections.max.idle.ms"] < 10_000
    if ample and not (calm or in_transactions or ends_connections or conditions.bandwidth == SLOW_LINE):
        labour = _draw_labour(of("labour"), config, work)
    scenario = Scenario(
        seed=seed,
        nodes=nodes,
        broker_configs=broker_configs | more_broker_config,
        topics=topics,
        replication=replication,
        producers=producers,
        config=config | more_config,
        intercepts=of("intercepts").random() < 0.3,
        wraps=not in_transactions and of("wraps").random() < 0.1,
        promise=promise,
        work=[replace(plan, bulk=bulk) for plan in work],
        ending=ending,
        ends_at=timing.uniform(0, 1.5 * duration),
        close_timeout=timing.choice((0.01, 0.1, 1.0)),
        conditions=conditions,
        applications=[
            replace(plan, work=replace(plan.work, bulk=bulk), units=units, doomed=doomed) for plan in applications
        ],
        transaction_version=of("transaction version").choice((0, 1) if release else (1, 2, 2)),
        release=release,
        racks=[brokers.choice((None, "a", "b")) for _ in range(nodes)],
        old_nodes=[node for node in range(nodes) if brokers.random() < 0.2],
        collects=of("collects").random() < 0.1,
        coarse=of("coarse").random() < 0.2,
        slow=of("slow").random() < 0.1,
        calm=calm,
        labour=labour,
        ample=ample,
        rates=possible({kind: rate for kind, rate in drawn.items() if kind in kinds} | dict(rates or {})),
        faults_until=timing.uniform(0.5, 1.5) * duration + timing.choice((0.0, 1.0)),
    )
    if "expiry" in (drawn if rates is None else drawn | dict(rates)):
        return _with_reasons_to_forget(scenario, old=of("old records").choice((0.0, 0.0, 0.1, 1.0)))
    return scenario


def _with_reasons_to_forget(scenario: Scenario, old: float) -> Scenario:
    """A scenario in which producers rest until brokers may forget them, and in which faults last longer than that."""
    return replace(
        scenario,
        work=[_with_rests(plan, old) for plan in scenario.work],
        applications=[replace(plan, work=_with_rests(plan.work, old)) for plan in scenario.applications],
        faults_until=scenario.faults_until + 2 * scenario.expiry,
    )


def _with_rests(plan: WorkPlan, old: float) -> WorkPlan:
    return replace(plan, rests=2, old=old)


def _draw_rates(random: Random) -> dict[str, float]:
    if random.random() < 0.1:
        return {}
    if random.random() < 0.4:  # few kinds, but often
        few = random.sample(list(KINDS), random.randint(1, 3))
        return {kind: 10 ** random.uniform(-1.3, -0.3) for kind in few}
    some = random.choice((0.15, 0.3, 0.5))
    return {kind: 10 ** random.uniform(-2.3, -0.6) for kind in KINDS if random.random() < some}


def _possible(rates: dict[str, float], *, old: bool, in_transactions: bool, ample: bool) -> dict[str, float]:
    """Leaves out kinds that would have no effect, or that no producer can handle."""
    impossible = set()
    if old or "upgrades" in rates:
        # Without topic ids clients cannot distinguish a topic that was created anew from old metadata.
        impossible.add("recreate")
    if in_transactions:
        # A log that loses records makes transactions incomplete.
        impossible |= {"truncation", "retention"}
    else:
        impossible.add("coordinators")
    if ample:
        # Without its producer state, a log cannot show whether a batch was there.
        impossible |= {"truncation", "retention"} if old else {"truncation"}
    return {kind: rate for kind, rate in rates.items() if kind not in impossible}


def _draw_conditions(random: Random, calm: bool) -> Conditions:
    return Conditions(
        latency=random.choice((0.0001, 0.001, 0.005) if calm else (0.0001, 0.001, 0.005, 0.03)),
        bandwidth=random.choice((1e6, 1e8) if calm else (1e5, 1e6, 1e8)),
        window=random.choice((1000, 20_000, 256 * 1024)),
        splits=random.choice((0.0, 0.05, 0.5)),
        writes_later=random.random() < 0.3,
        reset_drops_unread=random.random() < 0.3,
        dead_address=random.random() < 0.1,
    )


def _draw_broker_configs(random: Random, calm: bool, replication: int) -> dict[str, Any]:
    return {
        "auto.create.topics.enable": random.random() < 0.5,
        "num.partitions": random.choice((1, 3)),
        "min.insync.replicas": random.randint(1, replication),
        "message.max.bytes": random.choice((1048588, 1048588, 1048588, 500, 2000)),
        "log.producer.state.batches.to.retain": random.choice((5, 5, 10, 50, 100)),
        "log.message.timestamp.type": random.choice(("CreateTime", "CreateTime", "CreateTime", "LogAppendTime")),
        "connections.max.idle.ms": 600_000 if calm else random.choice((600_000, 600_000, 300)),
    }


def _draw_sasl(random: Random, calm: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Configs of the producer and of the brokers, if clients must authenticate."""
    if random.random() >= 0.1:
        return {}, {}
    config = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": _PASSWORD,
    }
    return config, {**_SASL, "connections.max.reauth.ms": 600_000 if calm else random.choice(_SESSIONS_MS)}


def _draw_behaviour(random: Random, calm: bool) -> dict[str, Any]:
    """Configs that replace the default behaviour of the producer."""
    config: dict[str, Any] = {}
    if random.random() < 0.5:
        config["pipeline"] = "auto"
    if random.random() < 0.05 and not calm:
        config["partitioner_class"] = choose_partition
    if random.random() < 0.1 and not calm:
        config["value_serializer"] = turn_around
    return config


def choose_partition(
    topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, partitions: Sequence[Any]
) -> int:
    """A partitioner (partitioner.class) that sometimes fails, or returns a partition that does not exist."""
    chosen = len(value_bytes or b"")
    if chosen % 41 == 40:
        raise ValueError("not this one")
    return -1 if chosen % 41 == 39 else chosen % len(partitions)


def _draw_topics(random: Random, auto_create: bool, by_default: int) -> list[TopicPlan]:
    topics = [
        _draw_topic(random, f"topic{number}", auto_create, by_default) for number in range(random.choice((1, 1, 2, 3)))
    ]
    if not auto_create and random.random() < 0.1:
        topics.append(TopicPlan("nowhere", 2, NEVER_CREATED))
    return topics


def _draw_topic(random: Random, name: str, auto_create: bool, by_default: int) -> TopicPlan:
    partitions = random.choice((1, 1, 2, 3, 6))
    if auto_create and random.random() < 0.5:
        return TopicPlan(name, by_default, -1.0)
    late = not auto_create and random.random() < 0.3
    return TopicPlan(name, partitions, random.uniform(0, 0.3) if late else 0.0)


def _draw_tasks(random: Random, producers: int, duration: float) -> list[WorkPlan]:
    return [draw_work(random, number % producers, duration) for number in range(random.choice((1, 2, 3, 4)))]


def _crowded(plan: WorkPlan, duration: float) -> WorkPlan:
    """Sends all records to one partition, in small batches, several of which are in flight."""
    return replace(plan, records=120, burst=40, pause=min(plan.pause, duration / 3), waits=0.0)


def _draw_config(random: Random, calm: bool, slow: bool, splits: bool) -> tuple[dict[str, Any], Promise]:
    linger = random.choice((0, 0, 1, 5, 20, 100))
    batch = random.choice((1000, 16384) if splits else (0, 1, 120, 300, 1000, 16384, 16384, LARGEST))
    request_timeout = 5000 if calm or batch == LARGEST else random.choice((100, 300, 1000)) * (5 if slow else 1)
    retry_backoff = 50 if calm else random.choice((5, 10, 50))
    connecting = 5000 if calm else random.choice((100, 500, 2000)) * (5 if slow else 1)
    config: dict[str, Any] = {
        "linger_ms": linger,
        "batch_size": batch,
        "buffer_memory": max(batch, 1000) * random.choice((1, 2, 5, 50)) + 1000,
        "parked_memory": random.choice((1000, 1 << 24, 1 << 24)),
        "max_block_ms": random.choice((100, 500, 3000)) if not calm else 20_000,
        "max_request_size": random.choice((1 << 20, 1 << 20, 3000)),
        "max_in_flight_requests_per_connection": random.choice((1, 1, 2, 5, 5, 20, 50)),
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


def _with_ample_time(config: dict[str, Any], promise: Promise) -> tuple[dict[str, Any], Promise]:
    """Gives the producer enough time, memory and attempts, so that only permanent errors fail a record."""
    scarce = {"retries", "partitioner_class"}
    if promise is Promise.AT_MOST_ONCE:
        scarce |= {"acks", "enable_idempotence"}
        promise = Promise.EXACTLY_ONCE
    config = {name: value for name, value in config.items() if name not in scarce}
    return config | AMPLE, promise


def draw_batch_sizes(random: Random, size: int, largest: int) -> dict[str, int]:
    """How batches of ``batch.size`` are charged, and how far they grow: not at all, a little, to ``largest`` or by
    default."""
    sizes = {"batch_initial_size": min(random.choice((0, 1, 50, 1024)), size)}
    grown = random.choice((1, 2, 10, None, None))
    if grown is not None:
        sizes["batch_max_size"] = max(min(max(size, 100) * grown, largest), size)
    return sizes


def small_requests(batch_size: int) -> int:
    """A ``socket.request.max.bytes`` that every record fits, and not every batch that has grown."""
    return batch_size + LARGE + 1000


def _draw_for_slow_lines(random: Random) -> dict[str, Any]:
    """Configs with which only large records, and requests of many batches, exceed their time-out."""
    return {
        "batch_size": random.choice((0, 120, 300)),
        "request_timeout_ms": 300,
        "socket_connection_setup_timeout_ms": 500,
        "socket_connection_setup_timeout_max_ms": 2000,
    }


def _draw_labour(random: Random, config: dict[str, Any], work: list[WorkPlan]) -> float:
    """A time for each Produce request with which there is time for all: every record may have its own."""
    labour: float = random.choice((0.0, 0.0, 0.0, 0.25, 0.45, 0.7)) * config["request_timeout_ms"] / 1000
    records = sum(plan.records for plan in work)
    return labour if 4000 * records * labour < config["delivery_timeout_ms"] else 0.0


def _transactional(config: dict[str, Any]) -> dict[str, Any]:
    """Leaves out the configs that a transactional producer refuses."""
    refused = {"acks", "enable_idempotence"}
    return {name: value for name, value in config.items() if name not in refused and (name, value) != ("retries", 0)}


def _draw_codec(random: Random) -> str:
    """A random codec; gzip if the library of the drawn one is missing."""
    name = random.choice(("none", "none", "none", "none", "gzip", "snappy", "lz4", "zstd"))
    try:
        check_codec(CompressionType.of(name))
    except ConfigException:
        return "gzip"
    return name
