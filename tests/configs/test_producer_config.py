from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from aioproducer.admin import AdminConfig
from aioproducer.configs.config_def import ConfigKey, Type, as_text, table
from aioproducer.configs.producer_config import ProducerConfig, known_to, producer_config
from aioproducer.configs.properties import read_properties
from aioproducer.configs.unsupported import BY_PRODUCERS
from aioproducer.errors import ConfigException
from aioproducer.producer.producer import KafkaProducer
from aioproducer.reader import ReaderConfig


def config(**given: Any) -> ProducerConfig:
    return producer_config({"bootstrap.servers": "b:1", **given})


def test_defaults_are_kafkas() -> None:
    expected = {
        "acks": "all",
        "enable_idempotence": True,
        "batch_size": 16384,
        "linger_ms": 5,
        "buffer_memory": 32 * 1024 * 1024,
        "max_block_ms": 60_000,
        "max_in_flight_requests_per_connection": 5,
        "retries": 2**31 - 1,
        "delivery_timeout_ms": 120_000,
        "request_timeout_ms": 30_000,
        "retry_backoff_ms": 100,
        "compression_type": "none",
        "max_request_size": 1024 * 1024,
        "partitioner_ignore_keys": False,
        "connections_max_idle_ms": 9 * 60_000,
        "receive_buffer_bytes": 32768,
    }
    defaults = config(pipeline="fixed")
    assert {name: getattr(defaults, name) for name in expected} == expected


@pytest.mark.parametrize("weak", [{"acks": 0}, {"acks": "1"}, {"retries": 0}])
def test_weaker_configs_turn_off_idempotence_only_if_it_is_not_set(weak: dict[str, Any]) -> None:
    assert not config(**weak).enable_idempotence
    assert not config(**weak, enable_idempotence=False).enable_idempotence
    for name in ("enable_idempotence", "enable.idempotence"):
        with pytest.raises(ConfigException, match=rf"enable\.idempotence=true .* {next(iter(weak))} is"):
            config(**weak, **{name: "true"})
    assert config(acks="-1", enable_idempotence=True).required_acks == -1


@pytest.mark.parametrize("asked_for", [{}, {"enable_idempotence": True}])
def test_more_than_five_requests_in_flight_are_allowed_to_idempotent_producers(asked_for: dict[str, Any]) -> None:
    made = config(max_in_flight_requests_per_connection=20, **asked_for)
    assert made.max_in_flight_requests_per_connection == 20
    assert made.enable_idempotence


def test_with_an_automatic_pipeline_linger_is_a_bound_and_wide_unless_given() -> None:
    assert (config().pipeline, config().linger_ms) == ("auto", 100)
    assert (config(linger_ms=7).pipeline, config(linger_ms=7).linger_ms) == ("fixed", 7)
    assert (config(pipeline="fixed").pipeline, config(pipeline="fixed").linger_ms) == ("fixed", 5)
    assert config(pipeline="auto").linger_ms == 100
    assert config(pipeline="auto", linger_ms=5).linger_ms == 5
    assert config(pipeline="auto", request_timeout_ms=200_000).delivery_timeout_ms == 200_100
    with pytest.raises(ConfigException, match="pipeline"):
        config(pipeline="maybe")


def test_a_client_id_of_its_own_unless_one_is_given() -> None:
    """As Kafka's producer numbers them (``ProducerConfig.maybeOverrideClientId``)."""
    one, other = (config().client_id for _ in range(2))
    assert [name.rpartition("-")[0] for name in (one, other)] == ["producer", "producer"]
    assert int(other.rpartition("-")[2]) == int(one.rpartition("-")[2]) + 1
    assert config(transactional_id="orders").client_id == "producer-orders"
    assert config(client_id="mine", transactional_id="orders").client_id == "mine"
    assert config(client_id="").client_id == ""


def test_the_delivery_timeout_covers_linger_and_a_request() -> None:
    times = {"linger_ms": 100, "request_timeout_ms": 200_000}
    assert config(**times).delivery_timeout_ms == 200_100  # the default gives way
    assert config(**times, delivery_timeout_ms=200_100).delivery_timeout_ms == 200_100
    with pytest.raises(ConfigException, match=r"delivery\.timeout\.ms is 200099; .* 200100"):
        config(**times, delivery_timeout_ms=200_099)
    assert config(linger_ms=2**40).delivery_timeout_ms == 2**31 - 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("linger.millis", 5, "did you mean 'linger.ms'"),
        ("acks", 2, "one of all, -1, 0, 1"),
        ("batch.size", -1, "0 to"),
        ("batch.size", 2**31, "int"),
        ("linger_ms", "soon", "long"),
        ("max.in.flight.requests.per.connection", 0, "at least 1"),
        ("compression.type", "brotli", "one of none, gzip, snappy, lz4, zstd"),
        ("enable.idempotence", 1, "boolean"),
        ("security.protocol", "TLS", "one of plaintext, ssl, sasl_plaintext, sasl_ssl"),
        ("bootstrap.servers", "", "must be non-empty"),
        ("client.id", "a\ud800", "has half of a surrogate pair"),
        ("transactional.id", "x" * 40_000, "must be 1 to 32000 bytes in UTF-8"),
    ],
)
def test_an_unknown_config_or_impossible_value_is_named(name: str, value: object, message: str) -> None:
    with pytest.raises(ConfigException, match=message) as raised:
        config(**{name: value})
    assert raised.value.name == name.replace("_", ".")


@pytest.mark.parametrize("rack", [{}, {"client.rack": " "}])
def test_rack_awareness_needs_a_rack(rack: dict[str, str]) -> None:
    with pytest.raises(ConfigException, match=r"partitioner\.rack\.aware=true needs client\.rack") as raised:
        config(**{"partitioner.rack.aware": True, **rack})
    assert raised.value.name == "client.rack"
    assert config(**{"partitioner.rack.aware": True, "client.rack": "a"}).client_rack == "a"


def test_a_partitioner_of_the_users_own_leaves_nothing_to_adapt() -> None:
    assert config().adaptive_partitioning
    assert not config(partitioner_class=lambda *_: 0).adaptive_partitioning
    assert not config(partitioner_adaptive_partitioning_enable=False).adaptive_partitioning


def test_servers_are_required() -> None:
    with pytest.raises(ConfigException, match=r"'bootstrap\.servers' is missing"):
        producer_config({})


@pytest.mark.parametrize("name", BY_PRODUCERS)
def test_a_config_that_only_kafka_has_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigException, match=r"is not supported: .+; remove it"):
        config(**{name + "x" if name.endswith(".") else name: "v"})


# All rows


@pytest.mark.parametrize(
    "row", [row for row in table(ProducerConfig).values() if row.default is not dataclasses.MISSING]
)
def test_every_config_takes_its_default_as_text_and_as_it_is_under_both_names(row: ConfigKey) -> None:
    has_no_text = row.default is None or row.type in (Type.CLASS, Type.CLASSES)
    given = [row.default] if has_no_text else [row.default, as_text(row.default), f" {as_text(row.default)} "]
    field = row.name.replace(".", "_")
    for name in (row.name, field):
        for value in given:
            assert getattr(config(**{name: value}), field) == row.default


@pytest.mark.parametrize("row", list(table(ProducerConfig).values()), ids=lambda row: row.name)
def test_every_config_is_described_and_refuses_what_it_cannot_be(row: ConfigKey) -> None:
    assert row.doc.endswith((".", "text"))
    with pytest.raises(ConfigException) as raised:
        config(**{row.name: object()})
    assert raised.value.name == row.name


@pytest.mark.parametrize(
    "row",
    [row for row in table(ProducerConfig).values() if row.type in (Type.INT, Type.LONG)],
    ids=lambda row: row.name,
)
def test_every_number_has_a_range(row: ConfigKey) -> None:
    for number in (2**63, -(2**31) - 1):
        with pytest.raises(ConfigException):
            config(**{row.name: number})


def test_configs_given_twice() -> None:
    twice: dict[str, object] = {"linger.ms": 5, "linger_ms": 6}
    with pytest.raises(ConfigException, match="given twice"):
        config(**twice)
    with pytest.raises(ConfigException, match="given twice"):
        KafkaProducer.from_config({"bootstrap.servers": "b:1"} | twice)


def test_a_properties_file_is_taken_as_it_is() -> None:
    made = producer_config(read_properties("bootstrap.servers=a:1,b:2\nlinger.ms=20\nenable.idempotence=false\nacks=1"))
    assert made.bootstrap_servers == ("a:1", "b:2")
    assert (made.linger_ms, made.enable_idempotence, made.required_acks) == (20, False, 1)


def test_configs_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        config().linger_ms = 7  # type: ignore[misc]


# What follows from others


@pytest.mark.parametrize(("acks", "required"), [("all", -1), ("-1", -1), (-1, -1), ("0", 0), (1, 1)])
def test_acks_as_the_protocol_has_it(acks: object, required: int) -> None:
    assert config(acks=acks).required_acks == required


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ({}, None),
        ({"compression_type": "snappy"}, None),
        ({"compression_type": "gzip"}, None),
        ({"compression_type": "gzip", "compression_gzip_level": 9, "compression_zstd_level": 5}, 9),
        ({"compression_type": "lz4"}, 9),
        ({"compression_type": "zstd"}, 3),
        ({"compression_type": "zstd", "compression.zstd.level": "-5"}, -5),
    ],
)
def test_the_level_is_that_of_the_codec(given: dict[str, Any], level: int | None) -> None:
    assert config(**given).compression_level == level


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ({}, (1024, 16384, 262144)),
        ({"batch_size": 500}, (500, 500, 262144)),
        ({"batch_size": 0}, (0, 0, 0)),
        ({"batch_size": 1}, (1, 1, 1)),
        ({"batch_size": 1_000_000}, (1024, 1_000_000, 1_000_000)),
        ({"batch_size": 2_000_000}, (1024, 2_000_000, 2_000_000)),
        ({"max_request_size": 100_000}, (1024, 16384, 100_000)),
        ({"max_request_size": 10_000}, (1024, 16384, 16384)),
        ({"batch_max_size": 16384}, (1024, 16384, 16384)),
        ({"batch.max.size": "1048576", "batch.initial.size": "16384"}, (16384, 16384, 1048576)),
        ({"batch_size": 2_000_000, "batch_max_size": 2_000_000}, (1024, 2_000_000, 2_000_000)),
        ({"batch_size": 0, "batch_max_size": 100, "batch_initial_size": 0}, (0, 0, 100)),
    ],
)
def test_batches_begin_small_and_grow(given: dict[str, Any], sizes: tuple[int, int, int]) -> None:
    """Only defaults give way (KIP-782)."""
    made = config(**given)
    assert (made.batch_initial_size, made.batch_size, made.batch_max_size) == sizes


@pytest.mark.parametrize(
    ("given", "name", "message"),
    [
        ({"batch_size": 1000, "batch_initial_size": 1001}, "batch.initial.size", r"is 1001; it must be at most batch"),
        ({"batch_initial_size": 16385}, "batch.initial.size", r"batch\.size=16384"),
        ({"batch_max_size": 16383}, "batch.max.size", r"is 16383; it must be at least batch\.size=16384"),
        ({"batch_size": 300_000, "batch_max_size": 262144}, "batch.max.size", r"at least batch\.size=300000"),
        ({"batch_max_size": 1048577}, "batch.max.size", r"is 1048577; .* max\.request\.size=1048576"),
        ({"batch_max_size": -1}, "batch.max.size", "0 to"),
        ({"batch_initial_size": "much"}, "batch.initial.size", "int"),
    ],
)
def test_batch_sizes_that_contradict_each_other(given: dict[str, Any], name: str, message: str) -> None:
    with pytest.raises(ConfigException, match=message) as raised:
        config(**given)
    assert raised.value.name == name


def test_a_batch_fits_into_the_memory() -> None:
    assert config(batch_size=1000, buffer_memory=1000).batch_size == 1000
    with pytest.raises(ConfigException, match=r"batch\.size is 1001; .* buffer\.memory=1000: lower this") as raised:
        config(batch_size=1001, buffer_memory=1000)
    assert (raised.value.name, raised.value.value) == ("batch.size", 1001)
    with pytest.raises(ConfigException, match=r"buffer\.memory is 1000; .* batch\.size=16384: raise this") as raised:
        config(buffer_memory=1000)
    assert (raised.value.name, raised.value.value) == ("buffer.memory", 1000)


def test_plaintext_may_be_written_as_one_likes() -> None:
    assert config(security_protocol="plaintext").security_protocol == "plaintext"


@pytest.mark.parametrize(
    "name",
    [
        "sasl.jaas.config",
        "sasl_jaas_config",
        "ssl.key.password",
        "ssl.keystore.pasword",
        "sasl.oauthbearer.assertion.x",
    ],
)
def test_no_secret_is_ever_shown(name: str) -> None:
    with pytest.raises(ConfigException) as raised:
        config(**{name: "open sesame"})
    assert "sesame" not in str(raised.value) + repr(raised.value) + repr(vars(raised.value))


def test_clients_do_not_hear_of_what_only_others_know() -> None:
    given = {"bootstrap.servers": "x:1", "linger.ms": "1", "default.api.timeout.ms": "1", "lingr.ms": "1"}
    assert known_to(AdminConfig, given).keys() == {"bootstrap.servers", "default.api.timeout.ms", "lingr.ms"}
    of_reader = {"bootstrap.servers": "x:1", "isolation.level": "read_committed", "default.api.timeout.ms": "1"}
    assert known_to(AdminConfig, of_reader, of=ReaderConfig).keys() == {"bootstrap.servers", "default.api.timeout.ms"}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("ssl_cafile", "ssl.truststore.location"),
        ("ssl.ca.location", "ssl.truststore.location"),
        ("sasl.username", "sasl.plain.username"),
    ],
)
def test_the_name_of_another_client_leads_to_the_name_here(theirs: str, ours: str) -> None:
    with pytest.raises(ConfigException, match=f"it is '{ours}' here"):
        producer_config({"bootstrap.servers": "b:1", theirs: "planted"})
