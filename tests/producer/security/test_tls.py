"""Producers, and the embedded broker, with key stores of Java's, cipher suites, and certificates that are renewed."""

from __future__ import annotations

import asyncio
import logging
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.admin import ConfigResource, KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import ConfigException, InvalidRequestException, SslAuthenticationException
from aioproducer.reader import PartitionReader
from tests.broker.raw_clients.tls import tls_cluster
from tests.support.security.certificates import Certificates, make_certificates
from tests.support.security.stores import PASSWORD as STORE_PASSWORD
from tests.support.security.stores import Stores, make_stores


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Stores:
    return make_stores(tmp_path_factory.mktemp("brokers"), certificates, certificates.broker)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Stores:
    return make_stores(tmp_path_factory.mktemp("clients"), certificates, certificates.client)


def options(cluster: EmbeddedCluster, certificates: Certificates, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": cluster.bootstrap_servers,
        "security_protocol": "SSL",
        "ssl_truststore_location": str(certificates.authority),
        **more,
    }


@pytest.mark.once  # keytool takes a second for each store
@pytest.mark.parametrize("kind", ["p12", "jks"])
async def test_stores_of_java_on_both_sides(brokers: Stores, clients: Stores, kind: str) -> None:
    configs = {"listeners": "SSL://:0", "inter.broker.listener.name": "SSL", "ssl.client.auth": "required"}
    async with EmbeddedCluster(configs={**configs, **brokers.configs(kind)}) as cluster:
        given: Any = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "SSL",
            **clients.configs(kind),
        }
        async with KafkaAdmin.from_config(given) as admin:
            assert await admin.list_topics() == {}
        async with KafkaProducer.from_config({**given, "transactional.id": "t"}) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send("t", b"value")
        underscored = {name.replace(".", "_"): value for name, value in given.items()}
        servers = underscored.pop("bootstrap_servers")
        async with PartitionReader(servers, "t", 0, **underscored) as reader:
            assert [record.value async for record in reader.read_to_end()] == [b"value"]


@pytest.mark.once
async def test_an_open_listener_takes_another_store(certificates: Certificates, brokers: Stores) -> None:
    """Its password is set together with it, and nobody can read it."""
    async with tls_cluster(certificates, ssl__keystore__location=str(certificates.client)) as cluster:
        before = await own_certificate(cluster)
        own = {
            "listener.name.ssl.ssl.keystore.location": str(brokers.jks),
            "listener.name.ssl.ssl.keystore.password": "wrong",
        }
        with pytest.raises(InvalidRequestException, match=r"'ssl\.keystore\.password': it is not that of"):
            cluster.alter_broker_configs(own, node_id=0)
        assert await own_certificate(cluster) == before
        own["listener.name.ssl.ssl.keystore.password"] = STORE_PASSWORD
        cluster.alter_broker_configs(own, node_id=0)
        assert await own_certificate(cluster) != before
        async with KafkaAdmin(**options(cluster, certificates)) as admin:
            described = await admin.describe_configs(ConfigResource.broker(0))
        assert described["listener.name.ssl.ssl.keystore.password"].value is None
        assert STORE_PASSWORD not in repr(described)


@asynccontextmanager
async def suites(certificates: Certificates, broker: dict[str, str], **client: Any) -> AsyncIterator[KafkaProducer]:
    async with (
        tls_cluster(certificates, **broker) as cluster,
        KafkaProducer(**options(cluster, certificates, **client)) as producer,
    ):
        yield producer


TLS_1_2 = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
OF_1_3 = "TLS_AES_256_GCM_SHA384"


@pytest.mark.parametrize(
    ("broker", "client"),
    [
        ({}, {"ssl_cipher_suites": TLS_1_2}),
        ({}, {"ssl_cipher_suites": [TLS_1_2, OF_1_3]}),
        ({"ssl__cipher__suites": TLS_1_2}, {}),
        ({"ssl__cipher__suites": OF_1_3}, {"ssl_enabled_protocols": ["TLSv1.3"]}),
        ({"ssl__protocol": "TLSv1.2"}, {"ssl_enabled_protocols": "TLSv1.3,TLSv1.2,TLSv1.1"}),
    ],
)
async def test_suites_in_common(certificates: Certificates, broker: dict[str, str], client: dict[str, Any]) -> None:
    async with suites(certificates, broker, **client) as producer:
        await producer.send("t", b"value")


@pytest.mark.parametrize(
    ("broker", "client", "message"),
    [
        ({"ssl__enabled__protocols": "TLSv1.2"}, {"ssl_enabled_protocols": "TLSv1.3"}, "ALERT_PROTOCOL_VERSION"),
        (
            {"ssl__cipher__suites": TLS_1_2},
            {"ssl_cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
            "HANDSHAKE_FAILURE",
        ),
        # Whoever chooses a suite of TLS 1.3 that the other side has not named is refused: OpenSSL's first is another.
        ({}, {"ssl_cipher_suites": "TLS_AES_128_GCM_SHA256"}, r"led to TLS_AES_256_GCM_SHA384, .* ssl\.cipher\.suites"),
        ({"ssl__cipher__suites": "TLS_AES_128_GCM_SHA256"}, {}, "closed the connection"),
    ],
)
async def test_no_suite_in_common(
    certificates: Certificates, broker: dict[str, str], client: dict[str, Any], message: str
) -> None:
    async with suites(certificates, broker, max_block_ms=3000, **client) as producer:
        with pytest.raises(Exception, match=message):
            await producer.send("t", b"value")


async def own_certificate(cluster: EmbeddedCluster) -> str:
    return await asyncio.to_thread(ssl.get_server_certificate, cluster.listener(0))


class TestRenewedOnDisk:
    async def test_a_listener(self, certificates: Certificates, tmp_path: Path, caplog: Any) -> None:
        file = tmp_path / "broker.pem"
        shutil.copy(certificates.broker, file)
        async with (
            tls_cluster(certificates, ssl__keystore__location=str(file)) as cluster,
            KafkaProducer(**options(cluster, certificates)) as producer,
        ):
            first = await own_certificate(cluster)
            await producer.send("t", b"1")
            file.write_bytes(b"half a cert")
            assert await own_certificate(cluster) == first
            assert "the changed certificates of listener SSL cannot be used" in caplog.text
            shutil.copy(certificates.client, file)
            assert await own_certificate(cluster) != first
            await producer.send("t", b"2")
            assert producer.metrics()["successful-authentication-total"] <= 2, "open connections stay"

    async def test_a_producer_under_load(
        self, certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The authority changes on both sides: the brokers' certificates are of another one, and all records arrive."""
        caplog.set_level(logging.INFO, "aioproducer.security.tls.sources")
        trust, own = tmp_path / "trust.pem", tmp_path / "own.pem"
        shutil.copy(certificates.authority, trust)
        shutil.copy(certificates.client, own)
        async with tls_cluster(certificates, ssl__client__auth="required") as cluster:
            given = options(cluster, certificates, ssl_truststore_location=str(trust), ssl_keystore_location=str(own))
            async with KafkaProducer(**given, reconnect_backoff_ms=0) as producer:
                cluster.create_topic("t")
                sent = []
                for number in range(400):
                    sent.append(await producer.enqueue("t", b"%d" % number))
                    if number == 100:
                        both = certificates.authority.read_bytes() + certificates.other_authority.read_bytes()
                        trust.write_bytes(both)
                    if number == 200:
                        own.write_bytes(b"half a key")
                    if number % 100 == 50:
                        await cluster.stop_node(0)
                        await cluster.start_node(0)
                await asyncio.gather(*sent)
            assert [record.value for record in cluster.log("t").records()] == [b"%d" % n for n in range(400)]
        events = [getattr(record, "kafka", {}).get("event") for record in caplog.records]
        assert events.count("certificates_renewed") == 1
        assert events.count("certificates_not_renewed") == 1

    async def test_a_trust_that_ends(self, certificates: Certificates, tmp_path: Path) -> None:
        """The next connection is refused, and works again with the right file."""
        trust = tmp_path / "trust.pem"
        shutil.copy(certificates.authority, trust)
        async with tls_cluster(certificates) as cluster:
            given = options(cluster, certificates, ssl_truststore_location=str(trust), reconnect_backoff_ms=0)
            async with KafkaProducer(**given) as producer:
                await producer.send("t", b"1")
                shutil.copy(certificates.other_authority, trust)
                await cluster.stop_node(0)
                await cluster.start_node(0)
                with pytest.raises(SslAuthenticationException, match=r"self-signed certificate|unable to get local"):
                    await producer.partitions_for("other")
                shutil.copy(certificates.authority, trust)
                await producer.send("t", b"2")


class TestFactory:
    async def test_on_both_sides(self, certificates: Certificates) -> None:
        def of_broker() -> ssl.SSLContext:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates.broker)
            return context

        made = []

        class OfClient:
            def __call__(self) -> ssl.SSLContext:
                made.append(ssl.create_default_context(cafile=str(certificates.authority)))
                return made[-1]

        configs = {
            "listeners": "SSL://:0",
            "inter.broker.listener.name": "SSL",
            "ssl.engine.factory.class": of_broker,
        }
        async with (
            EmbeddedCluster(configs=configs) as cluster,
            KafkaProducer(
                bootstrap_servers=cluster.bootstrap_servers, security_protocol="SSL", ssl_engine_factory_class=OfClient
            ) as producer,
        ):
            await producer.send("t", b"value")
            assert len(made) >= 2
            async with KafkaAdmin(
                bootstrap_servers=cluster.bootstrap_servers,
                security_protocol="SSL",
                ssl_truststore_location=str(certificates.authority),
            ) as admin:
                broker = ConfigResource.broker(0)
                described = await admin.describe_configs(broker)
                assert "of_broker" in str(described["ssl.engine.factory.class"].value)
                with pytest.raises(InvalidRequestException, match=r"ssl\.engine\.factory\.class"):
                    await admin.alter_configs(broker, {"ssl.engine.factory.class": "os.getcwd"})

    async def test_that_fails(self, certificates: Certificates) -> None:
        """What waits for metadata hears so, and the next record tries again."""
        answers: list[Any] = [ssl.create_default_context(cafile=str(certificates.authority)), OSError("no vault")]

        def factory() -> ssl.SSLContext:
            answers.append(answers.pop(0))
            if isinstance(answers[-1], OSError):
                raise answers[-1]
            context: ssl.SSLContext = answers[-1]
            return context

        async with (
            tls_cluster(certificates) as cluster,
            KafkaProducer(
                bootstrap_servers=cluster.bootstrap_servers, security_protocol="SSL", ssl_engine_factory_class=factory
            ) as producer,
        ):
            with pytest.raises(SslAuthenticationException, match=r"factory failed \(OSError: no vault\)"):
                await producer.send("t", b"value")

    def test_instead_of_the_other_configs(self) -> None:
        with pytest.raises(ConfigException, match=r"'ssl\.cipher\.suites': ssl\.engine\.factory\.class is there, too"):
            KafkaProducer(
                bootstrap_servers="b:1",
                security_protocol="SSL",
                ssl_engine_factory_class=ssl.create_default_context,
                ssl_cipher_suites=OF_1_3,
            )
