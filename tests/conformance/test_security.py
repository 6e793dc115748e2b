"""The producer says who it is to real Kafka, over TLS or without, and is believed or not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.errors import SaslAuthenticationException, SslAuthenticationException
from aioproducer.security.jaas import PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.support.certificates import Certificates, make_certificates

PASSWORD = "alice's secret"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def kafka(certificates: Certificates) -> Iterator[ApacheKafka]:
    configs: dict[str, Any] = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "connections.max.reauth.ms": 2000,
        "ssl.client.auth": "required",
    }
    for store, file in (("keystore", certificates.broker), ("truststore", certificates.authority)):
        configs |= {f"ssl.{store}.type": "PEM", f"ssl.{store}.location": str(file)}
    for listener in ("plain", "both"):
        prefix = f"listener.name.{listener}"
        configs[f"{prefix}.plain.sasl.jaas.config"] = f'{PLAIN_LOGIN_MODULE} required user_alice="{PASSWORD}";'
        configs[f"{prefix}.scram-sha-512.sasl.jaas.config"] = f"{SCRAM_LOGIN_MODULE} required;"
    listeners = {"PLAIN": "SASL_PLAINTEXT", "TLS": "SSL", "BOTH": "SASL_SSL"}
    with running_kafka("4.3.1", configs=configs, listeners=listeners) as kafka:
        know_alice_by_scram(kafka)
        yield kafka


def know_alice_by_scram(kafka: ApacheKafka) -> None:
    made = kafka.tools.run(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", kafka.bootstrap_servers, "--alter", "--entity-type", "users", "--entity-name", "alice"),
        *("--add-config", f"SCRAM-SHA-512=[password={PASSWORD}]"),
    )
    asyncio.run(made)


def alice(mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    return {"sasl_mechanism": mechanism, "sasl_plain_username": "alice", "sasl_plain_password": password}


def tls(certificates: Certificates, shows: Path) -> dict[str, Any]:
    return {"ssl_truststore_location": str(certificates.authority), "ssl_keystore_location": str(shows)}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_sasl_again_and_again(kafka: ApacheKafka, mechanism: str) -> None:
    """For longer than two sessions."""
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers_of("PLAIN"), security_protocol="SASL_PLAINTEXT", **alice(mechanism)
    )
    async with producer:
        offsets = []
        for number in range(25):
            offsets.append((await producer.send(f"by-{mechanism}", b"%d" % number)).offset)
            await asyncio.sleep(0.2)
    assert offsets == list(range(25))


async def test_with_tls(kafka: ApacheKafka, certificates: Certificates) -> None:
    cases: Any = (("TLS", "SSL", {}), ("BOTH", "SASL_SSL", alice("SCRAM-SHA-512")))
    for listener, protocol, more in cases:
        producer = KafkaProducer(
            bootstrap_servers=kafka.bootstrap_servers_of(listener),
            **{"security_protocol": protocol, **tls(certificates, certificates.client), **more},
        )
        async with producer:
            deliveries = [await producer.enqueue(f"over-{listener}", bytes(10_000)) for _ in range(300)]
            assert len({(await delivery).offset for delivery in deliveries}) == 300


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_a_wrong_password(kafka: ApacheKafka, mechanism: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers_of("PLAIN"),
        security_protocol="SASL_PLAINTEXT",
        **alice(mechanism, "wrong"),
    )
    async with producer:
        with pytest.raises(SaslAuthenticationException, match="did not accept user 'alice'"):
            await producer.send("never", b"")


async def test_a_certificate_that_the_broker_does_not_believe(kafka: ApacheKafka, certificates: Certificates) -> None:
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers_of("TLS"),
        security_protocol="SSL",
        **tls(certificates, certificates.stranger),
    )
    async with producer:
        with pytest.raises(SslAuthenticationException, match=r"TLS with .* failed"):
            await producer.send("never", b"")
