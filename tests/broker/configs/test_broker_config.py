from __future__ import annotations

import pytest

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TOPIC_CONFIGS_WITHOUT_EFFECT, TopicConfig
from aioproducer.configs.config_def import table
from aioproducer.errors import ConfigException, InvalidConfigurationException


def test_defaults_are_kafkas() -> None:
    """The defaults in Kafka's documentation; ``test_describe_configs`` compares all of them with a Kafka."""
    config = BrokerConfig.of({})
    defaults = {
        "auto.create.topics.enable": True,
        "background.threads": 10,
        "connection.failed.authentication.delay.ms": 100,
        "connections.max.idle.ms": 600_000,
        "max.connections": 2**31 - 1,
        "max.connections.per.ip": 2**31 - 1,
        "message.max.bytes": 1048588,
        "num.io.threads": 8,
        "num.network.threads": 3,
        "num.partitions": 1,
        "queued.max.request.bytes": -1,
        "queued.max.requests": 500,
        "socket.listen.backlog.size": 1024,
        "socket.receive.buffer.bytes": 102400,
        "socket.request.max.bytes": 104857600,
        "socket.send.buffer.bytes": 102400,
    }
    assert {name: getattr(config, name.replace(".", "_")) for name in defaults} == defaults


def test_names_and_texts_as_in_server_properties() -> None:
    config = BrokerConfig.of({"num.partitions": "3", "auto.create.topics.enable": "false"})
    assert config.num_partitions == 3
    assert config.auto_create_topics_enable is False


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.partitions", 0),
        ("num.partitions", "many"),
        ("log.message.timestamp.type", "Never"),
        ("num.partition", 1),
        ("background.threads", 0),
        ("max.connections.per.ip.overrides", "10.0.0.300:100"),
    ],
)
def test_an_unknown_or_impossible_config_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigException, match=name):
        BrokerConfig.of({name: value})


def test_a_topic_has_the_brokers_values_unless_it_has_its_own() -> None:
    broker = BrokerConfig.of({"message.max.bytes": 5000, "log.message.timestamp.type": "LogAppendTime"})
    config = TopicConfig.of({"max.message.bytes": "4000"}, broker)
    assert config.max_message_bytes == 4000
    assert config.message_timestamp_type == "LogAppendTime"


@pytest.mark.parametrize("given", [{"max.message.bytes": "-1"}, {"no.such.config": "1"}])
def test_an_impossible_topic_config_is_an_invalid_config(given: dict[str, str]) -> None:
    with pytest.raises(InvalidConfigurationException, match=next(iter(given))):
        TopicConfig.of(given, BrokerConfig.of({}))


def test_other_topic_configs_of_kafka_are_accepted() -> None:
    broker = BrokerConfig.of({})
    assert TopicConfig.of({"retention.ms": "1000", "segment.ms": "1000"}, broker) == TopicConfig.of({}, broker)


def test_no_config_is_both_obeyed_and_without_effect() -> None:
    assert not TOPIC_CONFIGS_WITHOUT_EFFECT & set(table(TopicConfig))
