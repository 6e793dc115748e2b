from __future__ import annotations

import inspect
import ssl
from typing import Any

import pytest

from aioproducer.compat.aiokafka import AIOKafkaProducer
from aioproducer.compat.aiokafka.configs import addresses
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import ConfigException
from aioproducer.security.kerberos.settings import KerberosSettings
from aioproducer.security.sasl import Credentials

aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")


def config_of(**arguments: Any) -> ProducerConfig:
    return AIOKafkaProducer(**arguments).kafka_producer.config


def test_it_has_every_argument_of_aiokafkas_with_its_default() -> None:
    aiokafkas = inspect.signature(aiokafka.AIOKafkaProducer).parameters
    ours = inspect.signature(AIOKafkaProducer).parameters
    assert set(ours) == {*aiokafkas, "config"}
    defaults = {name: parameter.default for name, parameter in aiokafkas.items()}
    # Objects that stand for what is chosen by itself.
    for name in ("acks", "partitioner"):
        assert type(AIOKafkaProducer(**{name: defaults.pop(name)})) is AIOKafkaProducer
    assert {name: ours[name].default for name in defaults} == defaults


@pytest.mark.parametrize(
    ("servers", "found"),
    [
        ("localhost", ["localhost:9092"]),
        ("a:1, b", ["a:1", "b:9092"]),
        (["a:1", "b"], ["a:1", "b:9092"]),
        (("[::1]:1", "[::1]", "::1"), ["[::1]:1", "[::1]:9092", "[::1]:9092"]),
        ("a:", ["a:"]),
        ("a:1, ,", ["a:1"]),
        (["", "a:1", " "], ["a:1"]),
        ("kafka://a:1,SSL://a", ["kafka://a:1", "SSL://a"]),
    ],
)
def test_addresses(servers: Any, found: list[str]) -> None:
    assert addresses(servers) == found


def test_without_arguments_it_delivers_as_aiokafka_does() -> None:
    config = config_of()
    assert (config.acks, config.enable_idempotence, config.linger_ms, config.batch_size) == ("1", False, 0, 16384)
    assert config.max_in_flight_requests_per_connection == 1, "retries keep the order"
    assert (config.request_timeout_ms, config.delivery_timeout_ms, config.max_block_ms) == (40000, 40000, 40000)


def test_idempotent_it_tries_for_ever() -> None:
    for arguments in ({"enable_idempotence": True}, {"transactional_id": "x"}):
        config = config_of(**arguments)
        assert (config.acks, config.enable_idempotence, config.delivery_timeout_ms) == ("all", True, 2**31 - 1)
        assert config.max_in_flight_requests_per_connection == 5


@pytest.mark.parametrize(
    ("acks", "found"), [(0, "0"), (1, "1"), (-1, "all"), ("all", "all"), (object(), "1"), (True, "1")]
)
def test_acks(acks: object, found: str) -> None:
    assert config_of(acks=acks).acks == found


def test_the_default_partitioners_of_others_are_the_built_in_one() -> None:
    kafka = pytest.importorskip("kafka.partitioner.default", reason="kafka-python is not installed")
    for partitioner in (None, aiokafka.producer.producer.DefaultPartitioner(), kafka.DefaultPartitioner()):
        producer = AIOKafkaProducer(partitioner=partitioner)
        assert producer._partitioner is None
    own = type("Own", (aiokafka.producer.producer.DefaultPartitioner,), {})()
    assert AIOKafkaProducer(partitioner=own)._partitioner is own


def test_fractions_are_rounded_up_and_half_a_millisecond_does_not_become_none() -> None:
    config = config_of(linger_ms=0.5, retry_backoff_ms=50.0, request_timeout_ms=5000.0, max_batch_size=16e3)
    assert (config.linger_ms, config.retry_backoff_ms, config.batch_size) == (1, 50, 16000)
    assert (config.request_timeout_ms, config.max_block_ms, config.delivery_timeout_ms) == (5000, 5000, 5001)
    assert config_of(transactional_id="x", transaction_timeout_ms=5000.0).transaction_timeout_ms == 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"linger_ms": "5"}, "linger_ms is '5'; it must be a finite number"),
        ({"linger_ms": float("nan")}, "linger_ms is nan; it must be a finite number"),
        ({"connections_max_idle_ms": float("inf")}, "connections_max_idle_ms is inf; it must be a finite number"),
        ({"max_batch_size": None}, "max_batch_size is None; it must be a finite number"),
        ({"security_protocol": None}, "security_protocol is None; it must be PLAINTEXT, SSL, SASL_PLAINTEXT or"),
        ({"linger": 5}, "unknown producer config 'linger'"),
    ],
    ids=str,
)
def test_an_impossible_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException, match=message) as raised:
        config_of(**arguments)
    (name,) = arguments
    assert raised.value.name == name.replace("_", ".")


def test_an_unknown_argument_is_a_type_error_and_a_wrong_value_is_not() -> None:
    with pytest.raises(TypeError):
        config_of(no_such_config=5)
    with pytest.raises(ConfigException) as raised:
        config_of(max_in_flight_requests_per_connection=0)
    assert not isinstance(raised.value, TypeError)


def test_there_is_memory_for_any_size_of_batches() -> None:
    assert config_of(max_batch_size=100_000_000).buffer_memory == 200_000_000


def test_a_patient_retry_is_not_cut_short() -> None:
    assert (config_of().retry_backoff_max_ms, config_of(retry_backoff_ms=5000).retry_backoff_max_ms) == (1000, 5000)


def test_idle_connections_may_stay() -> None:
    assert config_of(connections_max_idle_ms=None).connections_max_idle_ms == -1


def test_a_config_that_the_protocol_does_not_use_is_not_looked_at() -> None:
    config = config_of(ssl_context=ssl.create_default_context(), sasl_plain_username="alice", sasl_mechanism="GSSAPI")
    assert (config.security_protocol, config.ssl_context, config.credentials) == ("PLAINTEXT", None, None)


def test_with_tls_and_a_name() -> None:
    context = ssl.create_default_context()
    config = config_of(
        security_protocol="SASL_SSL", ssl_context=context, sasl_plain_username="alice", sasl_plain_password="secret"
    )
    assert config.ssl_context is context
    assert isinstance(config.credentials, Credentials)
    assert (config.credentials.mechanism, config.credentials.username) == ("PLAIN", "alice")


def test_with_tokens() -> None:
    from aiokafka.abc import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return "token"

    provider = Provider()
    config = config_of(
        security_protocol="SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=provider
    )
    assert config.sasl_oauth_token_provider is provider
    assert config_of(sasl_oauth_token_provider=provider).sasl_oauth_token_provider is None


def test_with_kerberos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioproducer.security.kerberos.settings.gssapi", lambda: None)
    given = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}
    config = config_of(**given)
    assert isinstance(config.credentials, KerberosSettings)
    assert config.credentials.service == "kafka"
    with pytest.raises(ConfigException, match="sasl_kerberos_domain_name is not supported"):
        config_of(**given, sasl_kerberos_domain_name="other")


def test_with_the_configs_of_this_package_for_tls() -> None:
    assert config_of(security_protocol="SSL", ssl_endpoint_identification_algorithm="").tls is not None


def test_clients_without_a_name_are_numbered() -> None:
    first, second = (config_of().client_id for _ in range(2))
    assert first.startswith("aiokafka-producer-")
    assert first != second
