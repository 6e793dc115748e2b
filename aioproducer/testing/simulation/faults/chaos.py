"""Faults of the cluster while producers use it: leaders move, brokers stop and start, networks are cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any

from aioproducer.broker import EmbeddedCluster, Partition, Topic
from aioproducer.broker.state.topic import NO_LEADER
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing.simulation.faults.faults import PRODUCE_SINCE_2_4, SimulatedFaults
from aioproducer.testing.simulation.faults.truncation import cut_off, may_be_cut_off
from aioproducer.testing.simulation.faults.vanished import Vanished, found_in
from aioproducer.testing.simulation.releases import Releases
from aioproducer.testing.simulation.scenario import LIMITS, NEVER_CREATED, Scenario, TopicPlan
from aioproducer.testing.simulation.trace import Trace

Event = Callable[[], Coroutine[Any, Any, None]]

GROUPS = ("group0", "group1")
"""The groups whose offsets belong to transactions."""

MOST_PARTITIONS = 8
"""The largest number of partitions that a topic grows to."""

_EVENTS_PER_SECOND = 50
"""The number of events of one kind at a rate of 1."""

_BUSY_SECONDS = 6.0
"""A longer run has no more events than one of this length."""


class Chaos:
    """Runs for ``scenario.faults_until`` seconds; when it returns, all nodes run, and there are no more faults."""

    def __init__(
        self, scenario: Scenario, cluster: EmbeddedCluster, faults: SimulatedFaults, trace: Trace, random: Random
    ) -> None:
        self._scenario = scenario
        self._cluster = cluster
        self._faults = faults
        self._trace = trace
        self._random = random
        self.deleted: list[tuple[float, Topic]] = []
        """Deleted topics, with the time of their deletion."""
        self.vanished = Vanished()
        self._stopped: set[int] = set()
        self._late: list[TopicPlan] = []

    async def run(self) -> None:
        events: list[tuple[float, Event]] = []
        per_second = _EVENTS_PER_SECOND * min(1.0, _BUSY_SECONDS / self._scenario.faults_until)
        for kind, event in (
            ("leaders", self._move),
            ("coordinators", self._move_coordinator),
            ("restarts", self._restart),
            ("upgrades", self._upgrade),
            ("outages", self._outage),
            ("recreate", self._recreate),
            ("growth", self._grow),
            ("replicas", self._hold_replica),
            ("truncation", self._truncate),
            ("retention", self._delete_records),
            ("windows", self._change_window),
            ("limits", self._change_limit),
        ):
            rate = self._scenario.rates.get(kind, 0.0) * per_second
            when = self._random.expovariate(rate) if rate else self._scenario.faults_until
            while when < self._scenario.faults_until:
                events.append((when, event))
                when += self._random.expovariate(rate)
        late = [plan for plan in self._scenario.topics if 0 < plan.created_at < NEVER_CREATED]
        events += [(plan.created_at, partial(self._create_late, plan)) for plan in late]
        events.sort(key=lambda event: event[0])
        async with asyncio.TaskGroup() as group:
            passed = 0.0
            for when, event in events:
                await asyncio.sleep(when - passed)
                passed = when
                group.create_task(event(), name="chaos event")
            await asyncio.sleep(max(0.0, self._scenario.faults_until - passed))
            self._faults.over = True
            for topic in self._cluster.topics:
                self._cluster.alter_topic_configs(topic.name, {"max.message.bytes": None})
            self._trace("faults are over")

    def create(self, plan: TopicPlan) -> None:
        if plan.name in [topic.name for topic in self._cluster.topics]:
            return  # a broker has created the topic automatically
        self._trace("create", plan.name)
        self._cluster.create_topic(plan.name, plan.partitions)

    async def _create_late(self, plan: TopicPlan) -> None:
        if len(self._stopped) > self._scenario.nodes - self._scenario.replication:
            # The topic needs as many nodes as it has replicas.
            self._late.append(plan)
        else:
            self.create(plan)

    async def _move(self) -> None:
        alive = [node for node in range(self._scenario.nodes) if node not in self._stopped]
        partitions = [partition for topic in self._cluster.topics for partition in topic.partitions]
        if not alive or not partitions:
            return
        partition = self._random.choice(partitions)
        node = self._random.choice(alive)
        self._trace("leader", partition, node)
        self._cluster.move_leader(partition.topic, partition.index, node)

    async def _move_coordinator(self) -> None:
        application = self._random.choice(self._scenario.applications)
        key = self._random.choice((application.transactional_id, *GROUPS))
        node = self._random.randrange(self._scenario.nodes)
        self._trace("coordinator", key, node)
        self._cluster.move_coordinator(key, node)

    async def _restart(self) -> None:
        await self._replace(self._random.randrange(self._scenario.nodes), None)

    async def _upgrade(self) -> None:
        await self._replace(self._random.randrange(self._scenario.nodes), self._faults.releases)

    async def _replace(self, node: int, releases: Releases | None) -> None:
        """Restarts a node, as another one of these releases if there are any."""
        if node in self._stopped:
            return
        down = self._random.expovariate(5)
        # The first node keeps its port: clients cannot find a cluster whose addresses have all changed.
        port = 0 if node and self._random.random() < 0.3 else None
        self._trace("stop", node)
        self._stopped.add(node)
        await self._cluster.stop_node(node)
        await asyncio.sleep(down)
        if releases is not None:
            release = releases.choose(self._random)
            self._trace("release", node, release)
            releases.replaced(node, release, range(self._scenario.nodes))
        self._trace("start", node)
        await self._cluster.start_node(node, port=port)
        self._stopped.discard(node)
        for topic in self._cluster.topics:
            for partition in topic.partitions:
                # Acts as if every replica had been restarted.
                partition.log.producer_state.forget_all_but_last()
        late, self._late = self._late, []
        for plan in late:
            await self._create_late(plan)

    async def _recreate(self) -> None:
        plans = {plan.name: plan for plan in self._scenario.topics}
        names = [topic.name for topic in self._cluster.topics if topic.name in plans]
        if not names:
            return
        plan = plans[self._random.choice(names)]
        self._trace("delete", plan.name)
        self.deleted.append((self._now(), self._cluster.topic(plan.name)))
        self._cluster.delete_topic(plan.name)
        await asyncio.sleep(self._random.choice((0.0, 0.0, 0.1, 2.0)))
        await self._create_late(plan)

    async def _grow(self) -> None:
        small = [topic for topic in self._cluster.topics if len(topic.partitions) < MOST_PARTITIONS]
        if not small or len(self._stopped) > self._scenario.nodes - self._scenario.replication:
            return
        topic = self._random.choice(small)
        count = len(topic.partitions) + self._random.randint(1, 2)
        self._trace("grow", topic.name, count)
        self._cluster.create_partitions(topic.name, count)

    def _any_partition(self) -> tuple[Topic, Partition] | None:
        partitions = [(topic, partition) for topic in self._cluster.topics for partition in topic.partitions]
        return self._random.choice(partitions) if partitions else None

    async def _hold_replica(self) -> None:
        chosen = self._any_partition()
        if chosen is None:
            return
        topic, partition = chosen
        busy = {partition.leader, *partition.held, *self._stopped}
        followers = [node for node in partition.replicas if node not in busy]
        if not followers:
            return
        node, in_sync = self._random.choice(followers), self._random.random() < 0.5
        self._trace("hold", partition, node, "in sync" if in_sync else "")
        self._cluster.hold_replica(topic.name, partition.index, node, in_sync=in_sync)
        await asyncio.sleep(self._random.expovariate(5))
        if topic not in self._cluster.topics or node not in partition.held:
            return
        if in_sync and node not in self._stopped and self._random.random() < 0.3:
            self._elect(topic, partition, node)
        else:
            self._trace("release", partition, node)
            self._cluster.release_replica(topic.name, partition.index, node)

    def _elect(self, topic: Topic, partition: Partition, node: int) -> None:
        """A replica in sync becomes the leader; it has copied the log up to the high watermark only.

        With acks=all no record that is lost thereby was acknowledged. Markers are not lost, because a coordinator
        waits for all replicas in sync to have them.
        """
        log = partition.log
        lost = [batch for batch in log.batches() if batch.base_offset >= log.high_watermark]
        if any(batch.is_control for batch in lost) or self._scenario.config.get("acks", "all") != "all":
            lost = []
        self._trace("elect", partition, node, len(lost))
        if lost:
            cut_off(partition, lost)
        self._lead(topic, partition, node)

    def _lead(self, topic: Topic, partition: Partition, node: int) -> None:
        """The node becomes the leader, with the partition's log as it is now."""
        partition.elect(NO_LEADER)  # ends requests that wait for replicas: another leader does not answer them
        if node in partition.held:
            self._cluster.release_replica(topic.name, partition.index, node)
        self._cluster.alter_topic_configs(topic.name, {})  # the log follows its configs
        self._cluster.move_leader(topic.name, partition.index, node)

    async def _truncate(self) -> None:
        chosen = self._any_partition()
        alive = [node for node in range(self._scenario.nodes) if node not in self._stopped]
        if chosen is None or not alive:
            return
        topic, partition = chosen
        lost = may_be_cut_off(partition.log, self._random.randint(1, 4))
        if not lost:
            return
        node = self._random.choice([node for node in alive if node in partition.replicas] or alive)
        self._trace("truncate", partition, lost[0].base_offset, node)
        for batch in lost:
            self.vanished.cut_off += found_in(topic, partition, batch.records())
        cut_off(partition, lost)
        self._lead(topic, partition, node)

    async def _delete_records(self) -> None:
        chosen = self._any_partition()
        if chosen is None:
            return
        topic, partition = chosen
        log = partition.log
        before = self._random.randint(log.log_start_offset, log.high_watermark)
        self._trace("delete records", partition, before)
        self.vanished.retire(found_in(topic, partition, (one for one in log.records() if one.offset < before)))
        log.delete_records(before)
        if self._faults.releases.newest(partition.leader, ApiKey.PRODUCE) < PRODUCE_SINCE_2_4:
            for producer_id, entry in dict(log.producer_state.entries()).items():
                if not entry.batches or entry.batches[-1].last_offset < before:
                    log.producer_state.expire(producer_id)

    async def _change_window(self) -> None:
        if not self._cluster.topics:
            return
        topic = self._random.choice(self._cluster.topics)
        retain = self._random.choice((5, 6, 10, 50))
        self._trace("window", topic.name, retain)
        self._cluster.alter_topic_configs(topic.name, {"producer.state.batches.to.retain": retain})

    async def _change_limit(self) -> None:
        if not self._cluster.topics:
            return
        topic = self._random.choice(self._cluster.topics)
        limit = self._random.choice((*LIMITS, None))
        self._trace("limit", topic.name, limit)
        self._cluster.alter_topic_configs(topic.name, {"max.message.bytes": limit})

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _outage(self) -> None:
        servers = self._cluster.bootstrap_servers.split(",")
        if servers == [""]:
            return
        _, _, port = self._random.choice(servers).rpartition(":")
        seconds = self._random.choice((0.1, 1.0, 2.0)) * self._scenario.milliseconds("request_timeout_ms")
        self._trace("outage", port, f"{seconds:.3f}")
        self._faults.cut_off(int(port), self._now() + seconds)
