from __future__ import annotations

import pytest

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.cluster_configs import ALL_NODES, ClusterConfigs, ConfigSource, altered_topic
from aioproducer.broker.configs.config_changes import ConfigChange, OpType
from aioproducer.errors import InvalidConfigurationException, InvalidRequestException
from aioproducer.security.jaas import PLAIN_LOGIN_MODULE
from aioproducer.security.password import Password

WINDOW = "log.producer.state.batches.to.retain"
OF_TOPIC = "producer.state.batches.to.retain"


def make(**static: object) -> ClusterConfigs:
    return ClusterConfigs(BrokerConfig.of(static))


def set_to(name: str, value: str) -> list[ConfigChange]:
    return [ConfigChange(name, OpType.SET, value)]


def sources(
    configs: ClusterConfigs, own: dict[str, str], node_id: int = 0
) -> list[tuple[str, str | None, ConfigSource]]:
    (entry,) = [entry for entry in configs.topic_entries(own, node_id) if entry.key.name == OF_TOPIC]
    assert (entry.value, entry.source) == entry.synonyms[0][1:]
    return list(entry.synonyms)


def test_a_topics_own_value_counts_first_then_the_nodes_then_that_of_all_nodes_then_the_static_one() -> None:
    configs = make(log_producer_state_batches_to_retain=6)
    expected = [(WINDOW, "6", ConfigSource.STATIC_BROKER), (WINDOW, "5", ConfigSource.DEFAULT)]
    assert sources(configs, {}) == expected
    configs.alter(ALL_NODES, set_to(WINDOW, "7"))
    expected.insert(0, (WINDOW, "7", ConfigSource.DYNAMIC_DEFAULT_BROKER))
    assert sources(configs, {}) == expected
    configs.alter("0", set_to(WINDOW, " 8"))
    assert sources(configs, {}, node_id=1) == expected, "of another node"
    expected.insert(0, (WINDOW, "8", ConfigSource.DYNAMIC_BROKER))
    assert sources(configs, {}) == expected
    assert sources(configs, {OF_TOPIC: "9"}) == [(OF_TOPIC, "9", ConfigSource.TOPIC), *expected]

    assert [configs.topic({}, node_id).producer_state_batches_to_retain for node_id in (0, 1, None)] == [8, 7, 7]
    assert configs.topic({OF_TOPIC: "9"}, 0).producer_state_batches_to_retain == 9
    assert [configs.differs(node_id) for node_id in (0, 1)] == [True, False]
    configs.alter("0", [ConfigChange(WINDOW, OpType.DELETE, None)])
    assert not configs.differs(0)


def test_the_configs_of_all_nodes_are_only_those_that_are_set() -> None:
    configs = make(num_partitions=3)
    assert configs.default_entries() == []
    configs.alter(ALL_NODES, set_to("log.retention.bytes", "1000"))
    (entry,) = configs.default_entries()
    assert entry.synonyms == (("log.retention.bytes", "1000", ConfigSource.DYNAMIC_DEFAULT_BROKER),)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num.partitions", "3", "cannot be changed while the broker runs: .*num.partitions"),
        ("log.retention.byte", "3", "unknown broker config .*did you mean 'log.retention.bytes'"),
        (WINDOW, "4", "must be at least 5"),
        (WINDOW, "many", "of type int"),
    ],
)
def test_an_invalid_broker_config_is_refused_and_nothing_is_changed(name: str, value: str, message: str) -> None:
    configs = make()
    with pytest.raises(InvalidRequestException, match=message):
        configs.alter(ALL_NODES, [*set_to("log.retention.bytes", "1"), *set_to(name, value)])
    assert configs.default_entries() == [], "nothing of it was done"


def test_validating_changes_nothing() -> None:
    configs = make()
    configs.alter(ALL_NODES, set_to(WINDOW, "20"), validate_only=True)
    assert configs.default_entries() == []


def test_a_topic_config_that_is_unknown_can_be_deleted_and_not_set() -> None:
    assert altered_topic({"no.such": "1"}, [ConfigChange("no.such", OpType.DELETE, None)]) == {}
    with pytest.raises(InvalidConfigurationException, match=r"unknown topic config 'retention\.m'; did you mean"):
        altered_topic({}, set_to("retention.m", "1"))


@pytest.mark.parametrize("name", ["num.network.threads", "num.io.threads", "background.threads"])
def test_pools_are_resized_in_steps(name: str) -> None:
    configs = make()
    now = int(getattr(configs.broker(), name.replace(".", "_")))
    for wrong in (now * 2 + 1, (now - 1) // 2):
        with pytest.raises(InvalidRequestException, match=r"in steps|at least 1"):
            configs.alter(ALL_NODES, set_to(name, str(wrong)))
    configs.alter(ALL_NODES, set_to(name, str(now * 2)))
    configs.alter(ALL_NODES, set_to(name, str(now * 4)))
    assert getattr(configs.broker(0), name.replace(".", "_")) == now * 4


@pytest.mark.parametrize("name", ["num.network.threads", "ssl.keystore.location"])
def test_a_config_of_a_listener_is_no_list(name: str) -> None:
    with pytest.raises(InvalidConfigurationException, match=r"APPEND is only for lists, .*listener\.name\.plaintext"):
        make().alter("0", [ConfigChange(f"listener.name.plaintext.{name}", OpType.APPEND, "1")])


def test_a_removed_listener_loses_its_configs_on_its_node_only() -> None:
    configs = make(listener_security_protocol_map="PLAINTEXT:PLAINTEXT,MY_OWN:SASL_PLAINTEXT")
    users = f'{PLAIN_LOGIN_MODULE} required user_alice="secret";'
    own = {"max.connections": "7", "plain.sasl.jaas.config": users, "sasl.enabled.mechanisms": "PLAIN"}
    for node in "01":
        listeners = set_to("listeners", "PLAINTEXT://:0,MY_OWN://:0")
        configs.alter(node, [*listeners, *(set_to(f"listener.name.my.own.{name}", own[name])[0] for name in own)])
    config = configs.broker(0)
    assert config.of_listener("MY_OWN", "max.connections") == 7
    assert config.plain_users("MY_OWN") == {"alice": Password("secret")}
    assert config.on_listener("MY_OWN").sasl_enabled_mechanisms == ("PLAIN",)
    assert config.on_listener("PLAINTEXT") == config

    configs.alter("0", set_to("listeners", "PLAINTEXT://:0"))
    assert configs.dynamic("0") == {"listeners": "PLAINTEXT://:0"}
    assert configs.broker(1) == config


def test_secrets_have_the_type_password() -> None:
    configs = make()
    configs.alter("0", set_to("listener.name.plaintext.ssl.key.password", "planted"))
    (entry,) = [entry for entry in configs.broker_entries(0) if entry.key.name.startswith("listener.name")]
    assert entry.synonyms[0] == ("listener.name.plaintext.ssl.key.password", "[hidden]", ConfigSource.DYNAMIC_BROKER)
    assert "planted" not in repr(configs.broker(0))
