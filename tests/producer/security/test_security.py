"""Producers that say who they are, and encrypt what they say."""

from __future__ import annotations

import asyncio
import logging
import ssl
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import (
    AuthenticationException,
    SaslAuthenticationException,
    SslAuthenticationException,
    TimeoutException,
    UnsupportedSaslMechanismException,
)
from aioproducer.security.jaas import SCRAM_LOGIN_MODULE
from aioproducer.testing.simulation.listening import listen_on_network
from aioproducer.timing.clock import SystemClock
from tests.broker.raw_clients.sasl import CONFIGS, ESCAPED, MECHANISMS, PASSWORD, alice, figures, sasl_cluster
from tests.broker.raw_clients.tls import tls_cluster
from tests.support.security.certificates import Certificates, make_certificates
from tests.support.virtual_time import World, virtual

pytest.importorskip("scramp", reason="scramp is not installed")


class LoopsClock(SystemClock):
    """Durations are those of the loop, which are virtual; records are stamped as their producer does."""

    def __init__(self) -> None:
        self.monotonic = asyncio.get_running_loop().time


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with sasl_cluster(nodes=2) as cluster:
        yield cluster


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_by_each_mechanism(cluster: EmbeddedCluster, mechanism: str) -> None:
    async with KafkaProducer(**alice(cluster, mechanism)) as producer:
        await asyncio.gather(*[producer.send("t", b"%d" % number) for number in range(100)])
    assert len(list(cluster.log("t").records())) == 100


async def test_by_a_properties_file_of_kafkas(cluster: EmbeddedCluster) -> None:
    properties = f"""
        bootstrap.servers={cluster.bootstrap_servers}
        security.protocol=SASL_PLAINTEXT
        sasl.mechanism=SCRAM-SHA-512
        sasl.jaas.config={SCRAM_LOGIN_MODULE} required \\
            username="alice" \\
            password="{ESCAPED.replace(chr(92), chr(92) * 2)}";
    """
    async with KafkaProducer.from_config(properties) as producer:
        _ = await producer.send("t", b"value")


class TestNotBelieved:
    @pytest.mark.parametrize("mechanism", MECHANISMS)
    async def test_send_fails_at_once_and_says_why(
        self, cluster: EmbeddedCluster, mechanism: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with KafkaProducer(**alice(cluster, mechanism, sasl_plain_password="planted too")) as producer:
            with pytest.raises(
                SaslAuthenticationException, match=f"did not accept user 'alice' by {mechanism}"
            ) as told:
                await producer.send("t", b"value")
            with pytest.raises(SaslAuthenticationException):
                _ = await producer.enqueue("t", b"value")
            with pytest.raises(SaslAuthenticationException):
                await producer.partitions_for("t")
            assert "did not accept user 'alice'" in str(producer.explain("t", 0))
        shown = caplog.text + "".join(traceback.format_exception(told.value)) + repr(vars(producer))
        assert "planted" not in shown

    async def test_a_mechanism_that_the_broker_has_not(self) -> None:
        async with (
            sasl_cluster(sasl__enabled__mechanisms="SCRAM-SHA-512") as cluster,
            KafkaProducer(**alice(cluster)) as producer,
        ):
            with pytest.raises(UnsupportedSaslMechanismException, match="refused PLAIN; it has SCRAM-SHA-512"):
                await producer.send("t", b"value")

    async def test_a_broker_that_asks_nobody(self) -> None:
        async with EmbeddedCluster() as cluster, KafkaProducer(**alice(cluster)) as producer:
            with pytest.raises(AuthenticationException, match=r"see security\.protocol"):
                await producer.send("t", b"value")

    @virtual
    async def test_a_sasl_listener_closes_unauthenticated_connections(self, world: World) -> None:
        async with (
            EmbeddedCluster(configs=CONFIGS, listen=listen_on_network, clock=LoopsClock()) as cluster,
            KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, max_block_ms=300) as producer,
        ):
            with pytest.raises(TimeoutException, match=r"closed the connection|reset by peer"):
                await producer.send("t", b"value")

    async def test_the_admin_client_too(self, cluster: EmbeddedCluster) -> None:
        async with KafkaAdmin(**alice(cluster, sasl_plain_password="wrong")) as admin:
            with pytest.raises(SaslAuthenticationException):
                await admin.list_topics()
        async with KafkaAdmin(**alice(cluster)) as admin:
            assert list(await admin.list_topics()) == []

    async def test_a_producer_goes_on_once_its_credentials_are_accepted(self, cluster: EmbeddedCluster) -> None:
        async with KafkaProducer(**alice(cluster, "SCRAM-SHA-256", sasl_plain_username="carol")) as producer:
            with pytest.raises(SaslAuthenticationException):
                await producer.send("t", b"value")
            cluster.alter_user_scram_credentials("carol", PASSWORD)
            async with asyncio.timeout(30):
                while True:
                    try:
                        await producer.send("t", b"value")
                        break
                    except SaslAuthenticationException:
                        pass  # an attempt from before
        assert len(list(cluster.log("t").records())) == 1


@virtual
async def test_records_for_a_leader_that_refuses_the_client_have_their_time(world: World) -> None:
    """Another broker may lead by then; the time-out says what was in the way."""
    async with EmbeddedCluster(configs=CONFIGS, listen=listen_on_network, clock=LoopsClock()) as cluster:
        cluster.create_topic("t")
        cluster.alter_user_scram_credentials("carol", PASSWORD)
        timeouts = {"request_timeout_ms": 2_000, "delivery_timeout_ms": 3_000, "reconnect_backoff_ms": 500}
        as_carol = alice(cluster, "SCRAM-SHA-256", sasl_plain_username="carol", **timeouts)
        async with KafkaProducer(**as_carol) as producer:
            _ = await producer.send("t", b"value")
            cluster.alter_user_scram_credentials("carol", "another password")
            await cluster.stop_node(0)
            await cluster.start_node(0)
            began = asyncio.get_running_loop().time()
            with pytest.raises(TimeoutException, match="did not accept user 'carol'"):
                await producer.send("t", b"value")
            assert asyncio.get_running_loop().time() - began == pytest.approx(3, abs=0.1)


@virtual
async def test_a_producer_reauthenticates_before_its_session_ends(world: World) -> None:
    configs = {**CONFIGS, "connections.max.reauth.ms": 10_000}
    async with (
        EmbeddedCluster(configs=configs, listen=listen_on_network, clock=LoopsClock()) as cluster,
        KafkaProducer(**alice(cluster)) as producer,
    ):
        cluster.create_topic("t")
        for number in range(600):
            _ = await producer.send("t", b"%d" % number)
            await asyncio.sleep(0.1)
        counted = figures(cluster)
        told = producer.metrics()
        for name in ("successful-authentication-total", "successful-reauthentication-total"):
            assert told[name] == counted[name]
        assert told["reauthentication-latency-max"] > 0
        assert told["failed-authentication-total"] == told["failed-reauthentication-total"] == 0
        # One a connection, of which there are a bootstrap one and that of the node.
        assert counted["successful-authentication-total"] <= 2
        assert counted["successful-reauthentication-total"] >= 6
        assert "expired-connections-killed-count" not in counted
        assert [record.value for record in cluster.log("t").records()] == [b"%d" % number for number in range(600)]


@virtual
async def test_no_request_goes_out_while_it_is_said_again(world: World) -> None:
    """Hundreds of requests are under way when it is: the broker would close the connection for any in between."""
    configs = {**CONFIGS, "connections.max.reauth.ms": 2_000}
    async with (
        EmbeddedCluster(configs=configs, listen=listen_on_network, clock=LoopsClock()) as cluster,
        KafkaProducer(**alice(cluster, "SCRAM-SHA-256", sasl_plain_password="other", linger_ms=0)) as producer,
    ):
        cluster.alter_user_scram_credentials("alice", "other")
        cluster.create_topic("t")
        deliveries = []
        for number in range(3000):
            deliveries.append(await producer.enqueue("t", b"%d" % number))
            await asyncio.sleep(0.003)
        await asyncio.gather(*deliveries)
        counted = figures(cluster)
        assert counted["successful-authentication-total"] <= 2
        assert counted["successful-reauthentication-total"] >= 3
        assert [record.value for record in cluster.log("t").records()] == [b"%d" % number for number in range(3000)]


@virtual
async def test_a_session_that_ends_before_it_may_be_renewed(world: World) -> None:
    """Brokers renew no session twice within a second, and a transactional producer would not survive being refused."""
    configs = {**CONFIGS, "connections.max.reauth.ms": 400}
    async with (
        EmbeddedCluster(configs=configs, listen=listen_on_network, clock=LoopsClock()) as cluster,
        KafkaProducer(**alice(cluster, transactional_id="t")) as producer,
    ):
        cluster.create_topic("t")
        await producer.init_transactions()
        for number in range(100):
            async with producer.transaction():
                _ = await producer.send("t", b"%d" % number)
            await asyncio.sleep(0.1)
        counted = figures(cluster)
        assert counted["successful-reauthentication-total"] >= 5
        assert "failed-reauthentication-total" not in counted
        assert "expired-connections-killed-count" not in counted
        batches = [batch for batch in cluster.log("t").batches() if not batch.is_control]
        assert [record.value for batch in batches for record in batch.records()] == [b"%d" % n for n in range(100)]


class TestTls:
    @pytest.fixture(scope="class")
    @classmethod
    def certificates(cls, tmp_path_factory: pytest.TempPathFactory) -> Certificates:
        return make_certificates(tmp_path_factory.mktemp("certificates"))

    def configs(self, cluster: EmbeddedCluster, certificates: Certificates, **more: Any) -> dict[str, Any]:
        trust = {"ssl_truststore_location": str(certificates.authority)}
        return {"bootstrap_servers": cluster.bootstrap_servers, "security_protocol": "SSL", **trust, **more}

    async def test_with_certificates_on_both_sides(self, certificates: Certificates) -> None:
        async with (
            tls_cluster(certificates, ssl__client__auth="required") as cluster,
            KafkaProducer(
                **self.configs(cluster, certificates, ssl_keystore_location=str(certificates.client))
            ) as producer,
        ):
            sent = [producer.send("t", bytes(100_000)) for _ in range(50)]
            await asyncio.gather(*sent)
            assert len(list(cluster.log("t").records())) == 50

    async def test_with_sasl_and_a_context_of_ones_own(self, certificates: Certificates) -> None:
        async with tls_cluster(certificates, "SASL_SSL") as cluster:
            context = ssl.create_default_context(cafile=str(certificates.authority))
            async with KafkaProducer(**alice(cluster, security_protocol="SASL_SSL", ssl_context=context)) as producer:
                _ = await producer.send("t", b"value")

    async def test_a_broker_that_is_not_believed(self, certificates: Certificates) -> None:
        async with tls_cluster(certificates) as cluster:
            trust = {"ssl_truststore_location": str(certificates.other_authority)}
            async with KafkaProducer(**self.configs(cluster, certificates, **trust)) as producer:
                told = r"TLS with .* failed: self-signed certificate.*; ssl\.truststore\.location must name"
                with pytest.raises(SslAuthenticationException, match=told):
                    await producer.send("t", b"value")

    @pytest.mark.parametrize("shows", ["stranger", None])
    async def test_a_certificate_that_is_refused(self, certificates: Certificates, shows: str | None) -> None:
        async with tls_cluster(certificates, ssl__client__auth="required") as cluster:
            own = {} if shows is None else {"ssl_keystore_location": str(getattr(certificates, shows))}
            async with KafkaProducer(**self.configs(cluster, certificates, **own)) as producer:
                with pytest.raises(
                    SslAuthenticationException, match=r"failed: .*ALERT.*; .* see ssl\.keystore\.location"
                ):
                    await producer.send("t", b"value")
                assert producer.metrics()["failed-authentication-total"] >= 1

    @pytest.mark.parametrize(("algorithm", "believed"), [("https", False), ("", True)])
    async def test_the_name_has_to_be_the_brokers(
        self, certificates: Certificates, algorithm: str, believed: bool
    ) -> None:
        async with tls_cluster(certificates, ssl__keystore__location=str(certificates.client)) as cluster:
            more = {"ssl_endpoint_identification_algorithm": algorithm}
            async with KafkaProducer(**self.configs(cluster, certificates, **more)) as producer:
                if believed:
                    _ = await producer.send("t", b"value")
                else:
                    with pytest.raises(SslAuthenticationException, match=r"IP address mismatch.*; connect by a name"):
                        await producer.send("t", b"value")

    async def test_a_broker_without_tls_is_one_that_cannot_be_reached(
        self, certificates: Certificates, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.ERROR, "aioproducer.broker")
        async with EmbeddedCluster() as cluster:
            more = {"max_block_ms": 300}
            async with KafkaProducer(**self.configs(cluster, certificates, **more)) as producer:
                with pytest.raises(
                    TimeoutException,
                    match=r"cannot connect to .*: \w+; does its listener expect security\.protocol=SSL",
                ):
                    await producer.send("t", b"value")
