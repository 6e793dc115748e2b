from __future__ import annotations

import pytest

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log.partition_log import PartitionLog
from aioproducer.broker.state.topic import Partition, plain_name, validate_topic_name
from aioproducer.errors import InvalidTopicException


@pytest.mark.parametrize("name", ["a", "orders.v1", "A_b-3", "x" * 249, "..."])
def test_allowed_names(name: str) -> None:
    validate_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ü", "a/b", "x" * 250, "a\n"])
def test_an_invalid_topic_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidTopicException):
        validate_topic_name(name)


@pytest.mark.parametrize(("name", "plain"), [("a.b_c-d", "a_b_c-d"), ("ab", "ab"), ("_", "_"), ("..a", "__a")])
def test_names_that_would_be_one_in_metrics(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_a_new_leader_has_a_new_epoch_and_watchers_know() -> None:
    partition = Partition("t", 0, (0, 1), PartitionLog("t-0", TopicConfig.of({}, BrokerConfig.of({}))), leader=0)
    seen = []
    partition.watch(lambda partition: seen.append((partition.leader, partition.leader_epoch)))
    partition.elect(1)
    assert seen == [(1, 1)]


def test_a_watcher_may_unwatch_while_watchers_are_called() -> None:
    partition = Partition("t", 0, (0,), PartitionLog("t-0", TopicConfig.of({}, BrokerConfig.of({}))), leader=0)
    calls = []

    def watch_once(partition: Partition) -> None:
        calls.append(1)
        partition.unwatch(watch_once)

    partition.watch(watch_once)
    partition.notify()
    partition.notify()
    assert calls == [1]
