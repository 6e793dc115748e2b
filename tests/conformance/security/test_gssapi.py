"""Producers that authenticate to real Kafka with Kerberos tickets of a real KDC.

Skipped where MIT Kerberos or the library gssapi is missing (``tests/support/security/kdc.py``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.admin import KafkaAdmin
from aioproducer.errors import KafkaError, SaslAuthenticationException, TimeoutException
from aioproducer.reader import PartitionReader
from aioproducer.security.jaas import KERBEROS_LOGIN_MODULE
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.support.security.kdc import REALM, Kdc, running_kdc

LIFE_S = 8
"""Seconds that a ticket of ``shortlived`` is valid."""


@pytest.fixture(scope="module")
def kdc() -> Iterator[Kdc]:
    with running_kdc() as kdc:
        yield kdc


@pytest.fixture(scope="module")
def kafka(kdc: Kdc) -> Iterator[ApacheKafka]:
    keytab = kdc.keytab("kafka/127.0.0.1")
    jaas = f'{KERBEROS_LOGIN_MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{{}}";'
    configs: dict[str, str | int] = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "connections.max.reauth.ms": 2000,
        "listener.name.kerberos.gssapi.sasl.jaas.config": jaas.format(f"kafka/127.0.0.1@{REALM}"),
    }
    with pytest.MonkeyPatch.context() as patch:
        # Java reads the same krb5.conf as the clients.
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kdc.krb5_conf}")
        with running_kafka("4.3.1", configs=configs, listeners={"KERBEROS": "SASL_PLAINTEXT"}) as kafka:
            patch.delenv("JAVA_TOOL_OPTIONS")
            yield kafka


@pytest.fixture(scope="module")
def alice(kdc: Kdc) -> Path:
    return kdc.keytab("alice")


@pytest.fixture(scope="module")
def shortlived(kdc: Kdc) -> Path:
    return kdc.keytab("shortlived", life=f"{LIFE_S}s")


@pytest.fixture(autouse=True)
def environment(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in kdc.environment.items():
        monkeypatch.setenv(name, value)


def by_keytab(kafka: ApacheKafka, keytab: Path, principal: str = "alice", **more: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.bootstrap_servers_of("KERBEROS"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
        "sasl_jaas_config": (
            f'{KERBEROS_LOGIN_MODULE} required useKeyTab=true keyTab="{keytab}" principal="{principal}@{REALM}";'
        ),
        **more,
    }


def by_cache(kafka: ApacheKafka, **more: Any) -> dict[str, Any]:
    configs = by_keytab(kafka, Path())
    del configs["sasl_jaas_config"]
    return {**configs, **more}


async def refused(configs: dict[str, Any], kind: type[KafkaError] = SaslAuthenticationException) -> str:
    async with KafkaProducer(**configs) as producer:
        with pytest.raises(kind) as caught:
            await producer.send("never", b"")
    return "".join(traceback.format_exception(caught.value))


async def test_a_keytab(kafka: ApacheKafka, alice: Path) -> None:
    """The producer transacts, for longer than two sessions; and all other clients."""
    configs = by_keytab(kafka, alice)
    async with KafkaProducer(**configs, transactional_id="by-keytab") as producer:
        await producer.init_transactions()
        for number in range(25):
            async with producer.transaction():
                await producer.send("by-keytab", b"%d" % number)
            await asyncio.sleep(0.2)
        assert producer.metrics()["successful-reauthentication-total"] >= 2
        assert producer.metrics()["failed-authentication-total"] == 0
    async with KafkaAdmin(**configs) as admin:
        assert "by-keytab" in await admin.list_topics()
    servers = configs.pop("bootstrap_servers")
    async with PartitionReader(servers, "by-keytab", 0, isolation_level="read_committed", **configs) as reader:
        assert [record.value async for record in reader.read_to_end()] == [b"%d" % number for number in range(25)]


async def test_a_cache(kafka: ApacheKafka, kdc: Kdc, alice: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's default, and one that the configs name."""
    cache = kdc.directory / "alice-cache"
    kdc.ticket(alice, "alice", cache)
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    async with KafkaProducer(**by_cache(kafka)) as producer:
        await producer.send("by-cache", b"value")
    monkeypatch.delenv("KRB5CCNAME")
    jaas = f'{KERBEROS_LOGIN_MODULE} required useTicketCache=true ticketCache="{cache}" serviceName="kafka";'
    configs = by_cache(kafka, sasl_jaas_config=jaas)
    del configs["sasl_kerberos_service_name"]
    async with KafkaProducer(**configs) as producer:
        await producer.send("by-cache", b"value")


async def test_a_ticket_is_renewed_under_load(
    kafka: ApacheKafka, shortlived: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """For longer than two tickets, with a session every two seconds; no record is late or lost."""
    configs = by_keytab(kafka, shortlived, "shortlived", sasl_kerberos_min_time_before_relogin=0)
    async with KafkaProducer(**configs) as producer:
        offsets = []
        for number in range(int(2.5 * LIFE_S / 0.1)):
            offsets.append((await producer.send("renewed", b"%d" % number)).offset)
            await asyncio.sleep(0.1)
        assert producer.metrics()["failed-authentication-total"] == 0
        assert producer.metrics()["failed-reauthentication-total"] == 0
        assert producer.metrics()["successful-reauthentication-total"] >= LIFE_S
    assert offsets == list(range(len(offsets)))
    assert not caplog.records


async def test_the_kdc_is_down(
    kafka: ApacheKafka, kdc: Kdc, alice: Path, shortlived: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a ticket records wait, and succeed when it is back; with one, sending goes on and the log tells."""
    waiting = by_keytab(kafka, alice, sasl_login_retry_backoff_max_ms=500)
    configs = by_keytab(kafka, shortlived, "shortlived", sasl_kerberos_min_time_before_relogin=0)
    async with KafkaProducer(**configs) as producer, KafkaProducer(**waiting) as late:
        await producer.send("down", b"before")
        kdc.stop()
        told = await refused({**waiting, "max_block_ms": 1500}, TimeoutException)
        assert "no Kerberos ticket of alice@EXAMPLE.TEST: Cannot contact any KDC for realm" in told
        sent = late.send("down", b"late")
        await asyncio.sleep(0.1)
        with caplog.at_level(logging.WARNING, "aioproducer.security.expiring_login"):
            while "the ticket could not be renewed" not in caplog.text:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.1)
        await producer.send("down", b"meanwhile")
        kdc.start()
        await sent
        await producer.send("down", b"after")


async def test_a_missing_ticket_or_wrong_service_is_named(
    kafka: ApacheKafka, kdc: Kdc, alice: Path, tmp_path: Path
) -> None:
    assert "there is no ticket: get one with kinit, or name a keytab" in await refused(by_cache(kafka))
    told = await refused(by_keytab(kafka, alice, sasl_kerberos_service_name="kafak"))
    assert "kafak/127.0.0.1" in told
    assert "does sasl.kerberos.service.name have the first part of the broker's principal" in told
    told = await refused(by_keytab(kafka, tmp_path / "none.keytab"))
    assert "none.keytab cannot be read: No such file" in told
    assert "or has no key of this principal" in await refused(by_keytab(kafka, alice, "mallory"))
    broken = tmp_path / "broken.keytab"
    broken.write_bytes(b"no keytab at all")
    assert "broken.keytab is no keytab, or has no key" in await refused(by_keytab(kafka, broken))


async def test_an_old_keytab_and_an_unknown_principal(kafka: ApacheKafka, kdc: Kdc) -> None:
    bob = kdc.keytab("bob")
    kdc.run("kadmin.local", "-r", REALM, "-q", "cpw -randkey bob")
    assert "the keytab is old" in await refused(by_keytab(kafka, bob, "bob"))
    kdc.run("kadmin.local", "-r", REALM, "-q", "delprinc -force bob")
    assert "the KDC does not know this principal" in await refused(by_keytab(kafka, bob, "bob"))


async def test_a_ticket_that_has_expired(kafka: ApacheKafka, kdc: Kdc, alice: Path) -> None:
    cache = kdc.directory / "expired"
    kdc.ticket(alice, "alice", cache, "1s")
    await asyncio.sleep(1.5)
    jaas = f'{KERBEROS_LOGIN_MODULE} required useTicketCache=true ticketCache="{cache}";'
    told = await refused(by_cache(kafka, sasl_jaas_config=jaas))
    assert "the ticket has expired: get another one with kinit" in told


async def test_a_service_whose_key_is_not_the_brokers(kafka: ApacheKafka, kdc: Kdc, alice: Path) -> None:
    """The broker cannot read the ticket. Its own words say nothing about the reason, in Kafka."""
    kdc.keytab("other/127.0.0.1")
    told = await refused(by_keytab(kafka, alice, sasl_kerberos_service_name="other"))
    assert f"did not accept the ticket of alice@{REALM}, valid for another" in told
    assert "the broker's keytab may have an old key, or the clocks" in told


async def test_the_loop_is_not_held_up(kafka: ApacheKafka, alice: Path) -> None:
    """Whatever asks the KDC runs in a thread."""
    asked = set[str]()
    gssapi = pytest.importorskip("gssapi")
    step = gssapi.SecurityContext.step

    def watched(self: Any, *arguments: Any) -> Any:
        asked.add(threading.current_thread().name)
        return step(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gssapi.SecurityContext, "step", watched)
        async with KafkaProducer(**by_keytab(kafka, alice)) as producer:
            await producer.send("by-keytab", b"")
    assert asked
    assert threading.main_thread().name not in asked
    assert os.environ["KRB5_CONFIG"]
