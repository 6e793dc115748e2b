from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.broker_config import BrokerConfig
from aioproducer.testing.simulation.chaos import MOST_PARTITIONS, Chaos
from aioproducer.testing.simulation.drawing import draw
from aioproducer.testing.simulation.faults import SimulatedFaults
from aioproducer.testing.simulation.listening import listen_on_network
from aioproducer.testing.simulation.scenario import NEVER, Scenario, TopicPlan
from aioproducer.testing.simulation.work_plan import draw_applications

from .simulated import World

TOPICS = [TopicPlan("now", 2, 0.0), TopicPlan("late", 1, 0.5), TopicPlan("never", 1, NEVER), TopicPlan("auto", 1, -1.0)]


def scenario(**rates: float) -> Scenario:
    applications = draw_applications(Random(0), 2.0, calm=False)
    return replace(
        draw(0), nodes=3, topics=TOPICS, replication=2, rates=rates, faults_until=2.0, applications=applications
    )


async def run(world: World, plan: Scenario) -> tuple[EmbeddedCluster, Chaos, SimulatedFaults]:
    faults = SimulatedFaults(Random(0), plan.rates, plan.milliseconds("request_timeout_ms"), world.trace)
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


def test_all_at_once_leaves_the_cluster_well() -> None:
    for seed in range(5):
        world = World(seed=seed)
        world.run(lambda world=world: run(world, scenario(leaders=0.3, restarts=0.3, outages=0.3, recreate=0.3)))  # type: ignore[misc]
        assert {"leader", "stop", "start", "outage", "delete", "create"} <= events(world)
