from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.simulation.drawing import draw
from aioproducer.testing.simulation.faults.chaos import MOST_PARTITIONS, Chaos
from aioproducer.testing.simulation.faults.faults import SimulatedFaults
from aioproducer.testing.simulation.listening import listen_on_network
from aioproducer.testing.simulation.releases import NEWEST, OLD, Release, Releases
from aioproducer.testing.simulation.scenario import NEVER_CREATED, Scenario, TopicPlan
from aioproducer.testing.simulation.work_plan import draw_applications
from tests.broker.raw_clients.batches import NOW_MS, make_batch
from tests.testing.simulation.simulated import World

TOPICS = [
    TopicPlan("now", 2, 0.0),
    TopicPlan("late", 1, 0.5),
    TopicPlan("never", 1, NEVER_CREATED),
    TopicPlan("auto", 1, -1.0),
]


def scenario(**rates: float) -> Scenario:
    applications = draw_applications(Random(0), 2.0, calm=False)
    return replace(
        draw(0), nodes=3, topics=TOPICS, replication=2, rates=rates, faults_until=2.0, applications=applications
    )


async def run(
    world: World, plan: Scenario, release: Release = NEWEST
) -> tuple[EmbeddedCluster, Chaos, SimulatedFaults]:
    faults = SimulatedFaults(Random(0), plan.rates, plan.milliseconds("request_timeout_ms"), world.trace)
    faults.releases = Releases(release)
    configs = {"default.replication.factor": 2}
    cluster = EmbeddedCluster(3, host="10.0.0.2", configs=configs, random=Random(0), listen=listen_on_network)
    async with cluster:
        chaos = Chaos(plan, cluster, faults, world.trace, Random(1))
        chaos.create(TOPICS[0])
        await chaos.run()
        assert cluster.bootstrap_servers.count(":") == 3, "all nodes run again"
        assert faults.over
        leaders = [partition.leader for topic in cluster.topics for partition in topic.partitions]
        assert all(leader >= 0 for leader in leaders)
    return cluster, chaos, faults


def events(world: World) -> set[str]:
    return {line.split(" ")[1] for line in world.trace.lines}


def test_topics_are_created_when_their_time_has_come() -> None:
    world = World()
    cluster, _, _ = world.run(lambda: run(world, scenario()))
    assert [topic.name for topic in cluster.topics] == ["now", "late"]
    assert events(world) == {"create", "faults"}


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("leaders", {"leader"}),
        ("coordinators", {"coordinator"}),
        ("restarts", {"stop", "start"}),
        ("upgrades", {"stop", "release", "start"}),
        ("outages", {"outage"}),
        ("recreate", {"delete", "create"}),
        ("growth", {"grow"}),
        ("replicas", {"hold", "release"}),
        ("windows", {"window"}),
        ("limits", {"limit"}),
    ],
)
def test_each_kind_happens_and_is_over_in_the_end(kind: str, seen: set[str]) -> None:
    world = World()
    cluster, chaos, _ = world.run(lambda: run(world, scenario(**{kind: 0.2})))
    assert seen <= events(world)
    if kind == "recreate":
        assert len(chaos.deleted) > 3
        assert {topic.name for _, topic in chaos.deleted} <= {"now", "late"}
        assert [topic.name for topic in cluster.topics if topic.name == "now"] == ["now"]
    else:
        assert chaos.deleted == []
    grown = {topic.name: len(topic.partitions) for topic in cluster.topics}
    assert (grown["now"] > 2) == (kind == "growth")
    assert max(grown.values()) <= MOST_PARTITIONS + 1
    retained = {topic.config.producer_state_batches_to_retain for topic in cluster.topics}
    assert (retained != {5}) == (kind == "windows")
    assert {topic.config.max_message_bytes for topic in cluster.topics} == {BrokerConfig().message_max_bytes}
    assert not any(partition.held for topic in cluster.topics for partition in topic.partitions)


def with_batches(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """New topics get this many batches of one producer in each partition."""
    create = Chaos.create

    def create_full(self: Chaos, plan: TopicPlan) -> None:
        create(self, plan)
        for partition in self._cluster.topic(plan.name).partitions:
            for sequence in range(count):
                data = make_batch(b"v", producer_id=1, producer_epoch=0, base_sequence=sequence)
                partition.log.append(RecordBatch(data), leader_epoch=0, now_ms=NOW_MS)

    monkeypatch.setattr(Chaos, "create", create_full)


def test_records_that_the_new_leader_has_not_copied_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    with_batches(monkeypatch, 10)
    world = World()
    cluster, chaos, _ = world.run(lambda: run(world, scenario(truncation=0.1)))
    assert "truncate" in events(world)
    for topic in cluster.topics:
        for partition in topic.partitions:
            lost = [
                found.record.offset
                for found in chaos.vanished.cut_off
                if (found.topic_id, found.partition) == (topic.id, partition.index)
            ]
            assert sorted([*(record.offset for record in partition.log.records()), *lost]) == list(range(10))
            assert partition.log.producer_state.entry(1) is not None
    assert chaos.vanished.cut_off


@pytest.mark.parametrize(("release", "forgets"), [(OLD[0], True), (OLD[1], False), (NEWEST, False)])
def test_logs_lose_their_beginning_and_old_brokers_the_producers_in_it(
    release: Release, forgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_batches(monkeypatch, 3)
    world = World()
    cluster, chaos, _ = world.run(lambda: run(world, scenario(retention=0.5), release))
    assert "delete" in events(world)
    for topic in cluster.topics:
        for partition in topic.partitions:
            whole = chaos.vanished.whole(topic, partition)
            assert [found.record.offset for found in whole] == [0, 1, 2]
            assert partition.log.log_start_offset == 3
            assert (partition.log.producer_state.entry(1) is None) == forgets


def test_all_at_once_leaves_the_cluster_well() -> None:
    plan = scenario(leaders=0.3, restarts=0.3, outages=0.3, recreate=0.3, replicas=0.3)
    for seed in range(5):
        world = World(seed=seed)
        cluster, _, _ = world.run(partial(run, world, plan))
        assert {"leader", "stop", "start", "outage", "delete", "create", "hold"} <= events(world)
        assert not any(partition.held for topic in cluster.topics for partition in topic.partitions)
