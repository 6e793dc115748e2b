"""Listeners with TLS: which clients connect, and that no client waits for another one's handshake."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.security import tls_handshake
from aioproducer.errors import ConfigException, InvalidRequestException
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.testing.kafka.apache_kafka import KafkaTools, KafkaUnavailable, fetch_kafka
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import RawClient
from tests.broker.raw_clients.sasl import ESCAPED, PASSWORD, alice, figures, java_configs, log_in
from tests.broker.raw_clients.tls import tls_cluster
from tests.support.security.certificates import Certificates, make_certificates

VALUES = [b"value %d" % index for index in range(100)]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@asynccontextmanager
async def connected(cluster: EmbeddedCluster, authority: Path, shows: Path | None = None) -> AsyncIterator[RawClient]:
    context = ssl.create_default_context(cafile=str(authority))
    if shows is not None:
        context.load_cert_chain(shows)
    host, port = cluster.listener(0)
    client = RawClient(*await asyncio.open_connection(host, port, ssl=context))
    try:
        yield client
    finally:
        try:
            await client.close()
        except ssl.SSLError:
            pass  # refused by the broker


async def serves(client: RawClient) -> bool:
    return bool((await client.request(MetadataRequest([]), 13)).brokers)


async def test_requests_small_and_large(certificates: Certificates) -> None:
    async with tls_cluster(certificates) as cluster, connected(cluster, certificates.authority) as client:
        cluster.create_topic("t")
        for size in (1, 100_000, 900_000):
            batch = make_batch(bytes(size))
            data = TopicProduceData("t", cluster.topic("t").id, [PartitionProduceData(0, batch)])
            answer = await client.request(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 13)
            assert answer.responses[0].partition_responses[0].error_code == 0
        assert [len(record.value or b"") for record in cluster.log("t").records()] == [1, 100_000, 900_000]
        for _ in range(50):
            assert await serves(client)


async def test_pipelined_requests_are_answered_in_order(certificates: Certificates) -> None:
    async with tls_cluster(certificates) as cluster, connected(cluster, certificates.authority) as client:
        sent = [client.frame(MetadataRequest([]), 13) for _ in range(100)]
        await client.send_bytes(b"".join(frame for _, frame in sent))
        assert [(await client.receive(MetadataRequest.API_KEY, 13))[0] for _ in sent] == [id for id, _ in sent]


async def test_sasl_within(certificates: Certificates) -> None:
    async with tls_cluster(certificates, "SASL_SSL") as cluster:
        async with connected(cluster, certificates.authority) as client:
            assert (await log_in(client, password="wrong")).error_code != 0
            assert await client.is_closed()
        async with connected(cluster, certificates.authority) as client:
            assert (await log_in(client)).error_code == 0
            assert await serves(client)
        assert figures(cluster, "SASL_SSL") == {"failed-authentication-total": 1, "successful-authentication-total": 1}


def test_the_same_on_uvloop(certificates: Certificates) -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")

    async def run() -> None:
        await test_requests_small_and_large(certificates)
        await test_pipelined_requests_are_answered_in_order(certificates)
        await test_sasl_within(certificates)
        await test_a_stuck_handshake_does_not_keep_a_broker_from_stopping(certificates, b"")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


class TestClientAuth:
    async def test_the_subject_of_a_certificate_is_the_user(
        self, certificates: Certificates, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, "aioproducer.broker.request")
        async with (
            tls_cluster(certificates, ssl__client__auth="required") as cluster,
            connected(cluster, certificates.authority, certificates.client) as client,
        ):
            assert await serves(client)
        said = [record.getMessage() for record in caplog.records]
        (line,) = [json.loads(text.partition(":")[2]) for text in said if text.startswith("Completed")]
        assert line["securityProtocol"] == "SSL"
        assert line["principal"].startswith("User:CN=alice,")
        assert "O=Example\\, Inc." in line["principal"]

    @pytest.mark.parametrize("shows", [None, "stranger"])
    async def test_required(
        self, certificates: Certificates, shows: str | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        """With TLS 1.3 a client hears that it was refused after its own half of the handshake; and why, by an alert."""
        async with tls_cluster(certificates, ssl__client__auth="required") as cluster:
            with pytest.raises(ssl.SSLError, match=r"(?i)alert"):
                async with connected(
                    cluster, certificates.authority, getattr(certificates, shows or "", None)
                ) as client:
                    await serves(client)
            while not figures(cluster, "SSL"):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0)
            assert figures(cluster, "SSL") == {"failed-authentication-total": 1}
        assert "certificate" in caplog.text.lower(), "the log knows the reason, too"

    @pytest.mark.parametrize("shows", [None, "stranger"])
    async def test_a_client_that_does_not_react_loses_its_connection(
        self, certificates: Certificates, shows: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A manual handshake, whose client does not disconnect after the alert."""
        monkeypatch.setattr(tls_handshake, "_TO_READ_IT", 0.05)
        context = ssl.create_default_context(cafile=str(certificates.authority))
        if shows is not None:
            context.load_cert_chain(getattr(certificates, shows))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        async with tls_cluster(certificates, ssl__client__auth="required") as cluster:
            client = RawClient(*await asyncio.open_connection(*cluster.listener(0)))
            done = False
            while not done:
                try:
                    tls.do_handshake()
                    done = True
                except ssl.SSLWantReadError:
                    await client.send_bytes(outgoing.read())
                    data = await client.reader.read(65536)
                    assert data
                    incoming.write(data)
            await client.send_bytes(outgoing.read())
            incoming.write(await client.receive_rest())
            with pytest.raises(ssl.SSLError, match=r"(?i)alert"):
                tls.read(1)
            await client.close()

    @pytest.mark.parametrize("auth", ["requested", "none"])
    async def test_not_required(self, certificates: Certificates, auth: str) -> None:
        async with (
            tls_cluster(certificates, ssl__client__auth=auth) as cluster,
            connected(cluster, certificates.authority) as client,
        ):
            assert await serves(client)


async def test_a_client_that_does_not_believe_the_broker(certificates: Certificates) -> None:
    async with tls_cluster(certificates) as cluster:
        with pytest.raises(ssl.SSLCertVerificationError):
            async with connected(cluster, certificates.other_authority):
                raise AssertionError("it does not come so far")
        async with connected(cluster, certificates.authority) as client:
            assert await serves(client)


@pytest.mark.parametrize("said", [b"", b"\0\0\0\x10not TLS at all...", b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_stuck_handshake_delays_no_other_client_and_times_out(certificates: Certificates, said: bytes) -> None:
    configs: dict[str, Any] = {"socket__request__receive__timeout__ms": 500, "num__network__threads": 1}
    async with tls_cluster(certificates, **configs) as cluster:
        host, port = cluster.listener(0)
        silent = RawClient(*await asyncio.open_connection(host, port))
        await silent.send_bytes(said)
        async with connected(cluster, certificates.authority) as client:
            assert await serves(client)
        await silent.receive_rest()  # until it is closed
        await silent.close()


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01"])
async def test_a_stuck_handshake_does_not_keep_a_broker_from_stopping(certificates: Certificates, said: bytes) -> None:
    async with asyncio.timeout(20):  # a handshake may take 60 s
        async with tls_cluster(certificates, num__network__threads=1) as cluster:
            silent = RawClient(*await asyncio.open_connection(*cluster.listener(0)))
            await silent.send_bytes(said)
            async with connected(cluster, certificates.authority) as client:
                assert await serves(client)  # the silent one came before
        await silent.receive_rest()
        await silent.close()


class TestForeign:
    @pytest.fixture
    async def cluster(self, certificates: Certificates) -> AsyncIterator[EmbeddedCluster]:
        async with tls_cluster(certificates, "SASL_SSL") as cluster:
            cluster.alter_user_scram_credentials("alice", PASSWORD)
            yield cluster

    async def test_aiokafka(self, cluster: EmbeddedCluster, certificates: Certificates) -> None:
        aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
        context = ssl.create_default_context(cafile=str(certificates.authority))
        producer = aiokafka.AIOKafkaProducer(**alice(cluster, security_protocol="SASL_SSL", ssl_context=context))
        async with producer:
            await asyncio.gather(*[await producer.send("t", value) for value in VALUES])
        assert [record.value for record in cluster.log("t").records()] == VALUES

    async def test_confluent(self, cluster: EmbeddedCluster, certificates: Certificates) -> None:
        confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

        def produce() -> int:
            producer = confluent.Producer(
                {
                    "bootstrap.servers": cluster.bootstrap_servers,
                    "security.protocol": "sasl_ssl",
                    "ssl.ca.location": str(certificates.authority),
                    "sasl.mechanism": "SCRAM-SHA-256",
                    "sasl.username": "alice",
                    "sasl.password": PASSWORD,
                }
            )
            for value in VALUES:
                producer.produce("t", value)
            left: int = producer.flush(30)
            return left

        assert await asyncio.to_thread(produce) == 0
        assert [record.value for record in cluster.log("t").records()] == VALUES

    @pytest.mark.conformance
    @pytest.mark.timeout(300)
    async def test_kafkas_console_producer(self, cluster: EmbeddedCluster, certificates: Certificates) -> None:
        try:
            libs = fetch_kafka()
        except KafkaUnavailable as missing:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"Kafka's own clients are NOT tested: {missing}")
        configs = java_configs("PLAIN", "alice", ESCAPED) | {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.authority),
        }
        tools = KafkaTools(libs, cluster.bootstrap_servers, configs=configs)
        await tools.console_producer("t", [(None, value.decode()) for value in VALUES])
        assert [record.value for record in cluster.log("t").records()] == VALUES


class TestConfigs:
    async def test_texts_in_place_of_files(self, certificates: Certificates) -> None:
        """Their lines joined, as a ``.properties`` file joins them."""
        from aioproducer.broker.security.listener_security import ListenerSecurity
        from aioproducer.broker.security.scram_credentials import ScramCredentials

        text = " ".join(certificates.broker.read_text().splitlines())
        key, _, chain = text.partition("-----BEGIN CERTIFICATE-----")
        config = BrokerConfig.of(
            {
                "listeners": "SSL://:0",
                "inter.broker.listener.name": "SSL",
                "ssl.keystore.key": key,
                "ssl.keystore.certificate.chain": f"-----BEGIN CERTIFICATE-----{chain}",
                "ssl.truststore.certificates": " ".join(certificates.authority.read_text().splitlines()),
                "ssl.client.auth": "required",
            }
        )
        assert "PRIVATE" not in repr(config)
        tls = (await ListenerSecurity("SSL", config, ScramCredentials()).transport_options())["ssl"]
        assert tls is not None
        assert tls.verify_mode is ssl.CERT_REQUIRED

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, "'ssl.keystore.location': it is missing"),
            ({"ssl.keystore.location": "/none.pem"}, "'ssl.keystore.location': /none.pem: No such file"),
            (
                {"ssl.keystore.location": "{authority}"},
                "'ssl.keystore.location': .*authority.pem: no certificate and key that can be",
            ),
            ({"ssl.keystore.key": "planted"}, "'ssl.keystore.key': it goes with ssl.keystore.certificate.chain"),
            (
                {"ssl.keystore.key": "planted", "ssl.keystore.certificate.chain": "planted"},
                "'ssl.keystore.key': no PEM that can be used: there is no -----BEGIN",
            ),
            ({"ssl.keystore.location": "x", "ssl.keystore.key": "planted"}, "ssl.keystore.key is there, too"),
            ({"ssl.keystore.location": "{broker}", "ssl.client.auth": "required"}, "needs to know whom to believe"),
            (
                {"ssl.keystore.location": "{broker}", "ssl.truststore.certificates": "planted"},
                "'ssl.truststore.certificates': no PEM",
            ),
            ({"ssl.keystore.type": "JCEKS"}, "'ssl.keystore.type' is 'JCEKS'; it must be one of jks, pkcs12, pem"),
        ],
    )
    async def test_errors_show_no_secret(self, certificates: Certificates, given: dict[str, str], message: str) -> None:
        filled = {name: value.format(**vars(certificates)) for name, value in given.items()}
        configs = {"listeners": "SSL://:0", "inter.broker.listener.name": "SSL", **filled}
        with pytest.raises(ConfigException, match=message) as refused:
            await EmbeddedCluster(configs=configs).start()
        assert "planted" not in str(refused.value)


def certificate(pem: str) -> bytes:
    """The first one of a PEM text."""
    end = "-----END CERTIFICATE-----"
    return ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERTIFICATE-----") : pem.index(end) + len(end)])


async def shown(cluster: EmbeddedCluster, listener: str) -> bytes:
    return certificate(await asyncio.to_thread(ssl.get_server_certificate, cluster.listener(0, listener)))


async def test_a_listener_may_have_its_own_certificate_and_another_while_it_is_open(certificates: Certificates) -> None:
    broker, stranger, renewed = (
        certificate(path.read_text()) for path in (certificates.broker, certificates.stranger, certificates.client)
    )
    configs = {
        "listeners": "SSL://:0,OTHER://:0",
        "listener.security.protocol.map": "SSL:SSL,OTHER:SSL",
        "inter.broker.listener.name": "SSL",
        "ssl.keystore.location": str(certificates.broker),
        "listener.name.other.ssl.keystore.location": str(certificates.stranger),
    }
    own = "listener.name.ssl.ssl.keystore.location"
    async with EmbeddedCluster(configs=configs) as cluster:
        assert [await shown(cluster, name) for name in ("SSL", "OTHER")] == [broker, stranger]
        async with connected(cluster, certificates.authority) as client:
            cluster.alter_broker_configs({own: str(certificates.client)}, node_id=0)
            assert await serves(client), "its connection stays open"
        assert [await shown(cluster, name) for name in ("SSL", "OTHER")] == [renewed, stranger]
        with pytest.raises(InvalidRequestException, match=r"/none\.pem: No such file"):
            cluster.alter_broker_configs({own: "/none.pem"}, node_id=0)
        assert await shown(cluster, "SSL") == renewed
        cluster.alter_broker_configs({own: None}, node_id=0)
        assert await shown(cluster, "SSL") == broker
