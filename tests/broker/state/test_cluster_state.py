from __future__ import annotations

from uuid import uuid4

import pytest

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.config_changes import ConfigChange, OpType
from aioproducer.broker.requests.long_work import finish
from aioproducer.broker.state import cluster_state
from aioproducer.broker.state.cluster_nodes import Node
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.state.topic import NO_LEADER, NewTopic
from aioproducer.errors import (
    ApiException,
    InvalidConfigurationException,
    InvalidPartitionsException,
    InvalidReplicaAssignmentException,
    InvalidReplicationFactorException,
    InvalidTopicException,
    PolicyViolationException,
    TopicExistsException,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
)


def reached(node_id: int) -> dict[str, Node]:
    return {"PLAINTEXT": Node(node_id, "127.0.0.1", 9092 + node_id)}


def make_state(nodes: int = 1, **configs: object) -> ClusterState:
    state = ClusterState(range(nodes), BrokerConfig.of(configs))
    for node_id in range(nodes):
        state.node_started(node_id, reached(node_id))
    return state


def leaders(state: ClusterState, topic: str) -> list[int]:
    return [partition.leader for partition in state.topics[topic].partitions]


class TestCreate:
    def test_leaders_are_spread_over_the_nodes(self) -> None:
        state = make_state(3)
        state.create_topic(NewTopic("a", partitions=4, replication_factor=2))
        state.create_topic(NewTopic("b", partitions=2))
        assert leaders(state, "a") == [0, 1, 2, 0]
        assert leaders(state, "b") == [1, 2]
        assert [partition.replicas for partition in state.topics["a"].partitions] == [(0, 1), (1, 2), (2, 0), (0, 1)]

    def test_defaults_are_the_brokers(self) -> None:
        state = make_state(2, num_partitions=3, default_replication_factor=2)
        topic = state.create_topic(NewTopic("a"))
        assert [len(partition.replicas) for partition in topic.partitions] == [2, 2, 2]

    def test_replicas_as_assigned(self) -> None:
        state = make_state(3)
        topic = state.create_topic(NewTopic("a", assignments=[[2, 0], [1, 2]]))
        assert [partition.replicas for partition in topic.partitions] == [(2, 0), (1, 2)]
        assert leaders(state, "a") == [2, 1]

    def test_configs(self) -> None:
        topic = make_state().create_topic(NewTopic("a", configs={"max.message.bytes": "10", "retention.ms": "5"}))
        assert topic.config.max_message_bytes == 10
        assert topic.configs == {"max.message.bytes": "10", "retention.ms": "5"}

    def test_names_that_would_be_one_in_metrics_until_one_is_deleted(self) -> None:
        state = make_state()
        state.create_topic(NewTopic("a.b_c"))
        with pytest.raises(InvalidTopicException, match=r"a\.b_c"):
            state.create_topic(NewTopic("a_b.c"))
        state.delete_topic("a.b_c")
        state.create_topic(NewTopic("a_b.c"))

    def test_partitions_of_all_topics_together_have_a_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cluster_state, "MAX_PARTITIONS", 5)
        state = make_state()
        state.create_topic(NewTopic("a", partitions=3))
        with pytest.raises(PolicyViolationException, match="no room for 3"):
            state.create_topic(NewTopic("b", partitions=3))
        state.create_partitions("a", 5)
        with pytest.raises(PolicyViolationException):
            state.create_partitions("a", 6)
        state.delete_topic("a")
        state.create_topic(NewTopic("b", partitions=5))

    def test_in_steps_it_is_there_with_the_last_one_as_the_cluster_is_by_then(self) -> None:
        state = make_state(2)
        steps = state.creating_topic(NewTopic("a", partitions=100, replication_factor=2))
        next(steps)
        assert "a" not in state.topics
        state.alter_broker_configs("", [ConfigChange("message.max.bytes", OpType.SET, "7000")])
        state.node_stopped(0)
        topic = finish(steps)
        assert state.topics["a"] is topic
        assert leaders(state, "a") == [1] * 100
        assert {partition.log.config.max_message_bytes for partition in topic.partitions} == {7000}

    def test_another_request_may_finish_between_the_steps(self) -> None:
        state = make_state()
        steps = state.creating_topic(NewTopic("a", partitions=100))
        next(steps)
        state.create_topic(NewTopic("a"))
        with pytest.raises(TopicExistsException):
            finish(steps)
        more = state.creating_partitions("a", 100)
        next(more)
        state.create_partitions("a", 3)
        with pytest.raises(InvalidPartitionsException, match="another request"):
            finish(more)
        assert len(state.topics["a"].partitions) == 3

    def test_only_to_see_whether_it_could_be(self) -> None:
        state = make_state()
        state.create_topic(NewTopic("a"), validate_only=True)
        assert not state.topics

    @pytest.mark.parametrize(
        ("new", "error"),
        [
            (NewTopic("no/name"), InvalidTopicException),
            (NewTopic("there.is"), TopicExistsException),
            (NewTopic("there_is"), InvalidTopicException),
            (NewTopic("a", partitions=0), InvalidPartitionsException),
            (NewTopic("a", partitions=-2), InvalidPartitionsException),
            (NewTopic("a", replication_factor=0), InvalidReplicationFactorException),
            (NewTopic("a", replication_factor=3), InvalidReplicationFactorException),
            (NewTopic("a", assignments=[[0, 1], [0]]), InvalidReplicaAssignmentException),
            (NewTopic("a", assignments=[[0, 0]]), InvalidReplicaAssignmentException),
            (NewTopic("a", assignments=[[]]), InvalidReplicaAssignmentException),
            (NewTopic("a", assignments=[[7]]), InvalidReplicaAssignmentException),
            (NewTopic("a", configs={"no.config": "1"}), InvalidConfigurationException),
        ],
    )
    def test_an_impossible_topic_is_not_created(self, new: NewTopic, error: type[ApiException]) -> None:
        state = make_state(2)
        state.create_topic(NewTopic("there.is"))
        with pytest.raises(error):
            state.create_topic(new)
        assert list(state.topics) == ["there.is"]

    def test_ids_are_new_each_time(self) -> None:
        state = make_state()
        first = state.create_topic(NewTopic("a"))
        state.delete_topic("a")
        second = state.create_topic(NewTopic("a"))
        assert first.id != second.id
        assert state.topic_by_id(first.id) is None
        assert state.topic_by_id(second.id) is second


class TestDelete:
    def test_by_name_and_by_id(self) -> None:
        state = make_state()
        for name in ("a", "b"):
            state.create_topic(NewTopic(name))
        state.delete_topic("a")
        finish(state.deleting_topic_by_id(state.topics["b"].id))
        assert not state.topics

    def test_missing_topics_raise(self) -> None:
        state = make_state()
        with pytest.raises(UnknownTopicOrPartitionException):
            state.delete_topic("a")
        with pytest.raises(UnknownTopicIdException):
            finish(state.deleting_topic_by_id(uuid4()))

    def test_in_steps(self) -> None:
        """The topic is gone after the first one; the others tell those that watch its partitions."""
        state = make_state()
        topic = state.create_topic(NewTopic("a", 100))
        partitions, told = list(topic.partitions), list[int]()
        for partition in partitions:
            partition.watch(lambda one: told.append(one.index))
        steps = state.deleting_topic("a")
        next(steps)
        assert (state.topics, told) == ({}, [])
        again = state.create_topic(NewTopic("a", 3))
        assert [len(told) for _ in steps] == [32, 64, 96]
        assert told == list(range(100))
        assert {partition.leader for partition in partitions} == {NO_LEADER}
        assert (state.topics["a"], len(again.partitions)) == (again, 3)

    def test_a_deleted_partition_has_no_leader(self) -> None:
        state = make_state()
        (partition,) = state.create_topic(NewTopic("a")).partitions
        state.delete_topic("a")
        assert partition.leader == NO_LEADER


class TestLeaders:
    def test_move(self) -> None:
        state = make_state(2)
        (partition,) = state.create_topic(NewTopic("a", replication_factor=2)).partitions
        state.move_leader("a", 0, 1)
        assert (partition.leader, partition.leader_epoch) == (1, 1)
        state.move_leader("a", 0, 1)
        assert partition.leader_epoch == 1

    def test_to_a_node_without_a_replica(self) -> None:
        state = make_state(2)
        (partition,) = state.create_topic(NewTopic("a")).partitions
        state.move_leader("a", 0, 1)
        assert partition.replicas == (1,)

    def test_not_to_a_node_that_is_not_alive(self) -> None:
        state = make_state(2)
        state.create_topic(NewTopic("a"))
        state.node_stopped(1)
        with pytest.raises(InvalidReplicaAssignmentException):
            state.move_leader("a", 0, 1)
        with pytest.raises(UnknownTopicOrPartitionException):
            state.move_leader("a", 1, 0)

    def test_a_stopped_node_leads_nothing(self) -> None:
        state = make_state(3)
        topic = state.create_topic(NewTopic("a", partitions=3, replication_factor=2))
        state.node_stopped(1)
        assert leaders(state, "a") == [0, 2, 2]
        assert [partition.leader_epoch for partition in topic.partitions] == [0, 1, 0]
        assert state.in_sync_replicas(topic.partitions[1]) == [2]

    def test_without_replicas_there_is_no_leader_until_the_node_is_back(self) -> None:
        state = make_state(2)
        state.create_topic(NewTopic("a", partitions=2))
        state.node_stopped(1)
        assert leaders(state, "a") == [0, NO_LEADER]
        state.node_started(1, reached(1))
        assert leaders(state, "a") == [0, 1]


def test_producer_ids_are_given_out_once() -> None:
    state = make_state()
    assert len({state.allocate_producer_id() for _ in range(100)}) == 100
