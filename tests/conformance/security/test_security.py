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
from aioproducer.testing.kafka.kafka_jvm import properties_text
from aioproducer.testing.pytest_kafka import running_kafka
from tests.support.security.certificates import Certificates, make_certificates
from tests.support.security.stores import PASSWORD as STORE_PASSWORD
from tests.support.security.stores import Stores, make_stores

PASSWORD = "alice's secret"
SUITE_OF_TLS_1_2 = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
SUITE_OF_TLS_1_3 = "TLS_AES_256_GCM_SHA384"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def stores(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("brokers"), certificates, certificates.broker)


@pytest.fixture(scope="module")
def clients(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("clients"), certificates, certificates.client)


@pytest.fixture(scope="module")
def kafka(certificates: Certificates, stores: Stores) -> Iterator[ApacheKafka]:
    configs: dict[str, Any] = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "connections.max.reauth.ms": 2000,
        "ssl.client.auth": "required",
    }
    for kind in ("p12", "jks"):
        configs |= {f"listener.name.{kind}.{name}": value for name, value in stores.configs(kind).items()}
        for store in ("keystore", "truststore"):
            configs[f"listener.name.{kind}.ssl.{store}.type"] = {"p12": "PKCS12", "jks": "JKS"}[kind]
    configs["listener.name.suites.ssl.cipher.suites"] = f"{SUITE_OF_TLS_1_3},{SUITE_OF_TLS_1_2}"
    for store, file in (("keystore", certificates.broker), ("truststore", certificates.authority)):
        configs |= {f"ssl.{store}.type": "PEM", f"ssl.{store}.location": str(file)}
    for listener in ("plain", "both"):
        prefix = f"listener.name.{listener}"
        configs[f"{prefix}.plain.sasl.jaas.config"] = f'{PLAIN_LOGIN_MODULE} required user_alice="{PASSWORD}";'
        configs[f"{prefix}.scram-sha-512.sasl.jaas.config"] = f"{SCRAM_LOGIN_MODULE} required;"
    listeners = {"PLAIN": "SASL_PLAINTEXT", "TLS": "SSL", "BOTH": "SASL_SSL"}
    listeners |= {"P12": "SSL", "JKS": "SSL", "SUITES": "SSL"}
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


@pytest.mark.parametrize("kind", ["p12", "jks"])
async def test_the_properties_file_of_a_java_client(
    kafka: ApacheKafka, clients: Stores, kind: str, tmp_path: Path
) -> None:
    """Stores of keytool on both sides, passwords in a file of their own, and Kafka's own console consumer as judge."""
    (tmp_path / "secrets.properties").write_text(properties_text({"store.password": STORE_PASSWORD}))
    reference = f"${{file:{tmp_path}/secrets.properties:store.password}}"
    text = properties_text(
        {
            "bootstrap.servers": kafka.bootstrap_servers_of(kind.upper()),
            "security.protocol": "SSL",
            "config.providers": "file",
            "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
            "config.providers.file.param.allowed.paths": str(tmp_path),
            **clients.configs(kind),
            "ssl.keystore.type": {"p12": "PKCS12", "jks": "JKS"}[kind],
            "ssl.keystore.password": reference,
            "ssl.truststore.password": reference,
            "ssl.enabled.protocols": "TLSv1.2,TLSv1.1,TLSv1",
            "ssl.keymanager.algorithm": "SunX509",
            "transactional.id": f"by-{kind}",
        }
    )
    async with KafkaProducer.from_config(text) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send(f"over-{kind}", b"value")
    assert [record.value for record in await kafka.tools.console_consumer(f"over-{kind}", max_messages=1)] == [b"value"]


@pytest.mark.parametrize(
    ("suites", "protocols"),
    [
        (SUITE_OF_TLS_1_2, "TLSv1.2,TLSv1.3"),
        (SUITE_OF_TLS_1_3, "TLSv1.3"),
        (f"{SUITE_OF_TLS_1_3},{SUITE_OF_TLS_1_2}", "TLSv1.2"),
    ],
)
async def test_cipher_suites(kafka: ApacheKafka, certificates: Certificates, suites: str, protocols: str) -> None:
    async with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers_of("SUITES"),
        security_protocol="SSL",
        **tls(certificates, certificates.client),
        ssl_cipher_suites=suites,
        ssl_enabled_protocols=protocols,
    ) as producer:
        await producer.send("suites", b"value")


async def test_no_cipher_suite_in_common(kafka: ApacheKafka, certificates: Certificates) -> None:
    async with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers_of("SUITES"),
        security_protocol="SSL",
        **tls(certificates, certificates.client),
        ssl_cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    ) as producer:
        with pytest.raises(SslAuthenticationException, match="HANDSHAKE_FAILURE"):
            await producer.send("never", b"")
