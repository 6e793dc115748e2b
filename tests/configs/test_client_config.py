from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer import KafkaProducer, sync
from aioproducer.admin import KafkaAdmin
from aioproducer.compat.aiokafka import AIOKafkaProducer
from aioproducer.configs.client_config import client_config
from aioproducer.errors import ConfigException
from aioproducer.net.retrying_client import RetryingConfig
from aioproducer.reader import PartitionReader


def test_other_clients_have_their_own_configs() -> None:
    made = client_config(RetryingConfig, {"bootstrap_servers": "b:1"}, owner="reader")
    assert (made.max_in_flight_requests_per_connection, made.max_request_size) == (100, 2**20)
    with pytest.raises(ConfigException, match=r"unknown reader config 'linger\.ms'"):
        client_config(RetryingConfig, {"bootstrap_servers": "b:1", "linger.ms": 5}, owner="reader")


def reader(**config: Any) -> PartitionReader:
    return PartitionReader(config.pop("bootstrap_servers"), "t", 0, **config)


CLIENTS = [KafkaProducer, sync.KafkaProducer, KafkaAdmin, AIOKafkaProducer, reader]
WITH_TOKENS = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "given",
    [
        {"bootstrap_servers": "user:PLANTED@host:9092"},
        {"bootstrap_servers": "kafka://user:PLANTED@host:9092"},
        {"bootstrap_servers": "user:PLANTED@h"},
        {"sasl.plain.password=PLANTED": ""},
        {"PLANTEDhAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr8": ""},
        {**WITH_TOKENS, "sasl_oauth_token_provider": "eyJh.PLANTED.c2ln"},
        {**WITH_TOKENS, "sasl_oauth_token_provider": ["PLANTED"]},
    ],
)
def test_no_error_of_any_client_has_a_secret(client: Callable[..., object], given: dict[str, Any]) -> None:
    with pytest.raises(ConfigException) as raised:
        client(**{"bootstrap_servers": "host:9092", **given})
    assert "PLANTED" not in "".join(traceback.format_exception(raised.value)) + repr(vars(raised.value))


@pytest.mark.parametrize("client", [KafkaProducer, sync.KafkaProducer, KafkaAdmin])
def test_a_key_without_backslashes_is_refused_by_its_line(client: Any) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIGHPLANTED\nAgEAPLANTED=\n-----END PRIVATE KEY-----\n"
    with pytest.raises(ConfigException, match=r"line 3 has no '='") as raised:
        client.from_config(f"bootstrap.servers=x:1\nssl.keystore.key={key}")
    assert "PLANTED" not in "".join(traceback.format_exception(raised.value))
