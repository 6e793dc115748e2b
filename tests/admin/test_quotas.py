from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from aioproducer.admin import ClientQuotaEntity, EntityName, KafkaAdmin
from aioproducer.admin.quotas import conditions
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import InvalidRequestException, KafkaError, UnsupportedVersionException
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.describe_client_quotas import ComponentData, EntityData

DEFAULT: Final = EntityName.DEFAULT
ANY: Final = EntityName.ANY

SLOW = ClientQuotaEntity(client_id="slow")
OTHERS = ClientQuotaEntity(client_id=DEFAULT)
BOTH = ClientQuotaEntity("alice", "slow")
ADDRESS = ClientQuotaEntity(ip="127.0.0.9")

QUOTAS = {
    SLOW: {"producer_byte_rate": 1000.0, "request_percentage": 12.5},
    OTHERS: {"consumer_byte_rate": 5000.0},
    BOTH: {"producer_byte_rate": 1.0},
    ADDRESS: {"connection_creation_rate": 7.0},
}


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(nodes=2) as cluster:
        yield cluster


@pytest.fixture
async def admin(cluster: EmbeddedCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        yield admin


async def test_quotas_that_are_set_are_described(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    assert await admin.describe_client_quotas() == {}
    assert await admin.alter_all_client_quotas(QUOTAS) == dict.fromkeys(QUOTAS)
    assert await admin.describe_client_quotas() == QUOTAS
    assert ({"client-id": None}, {"consumer_byte_rate": 5000.0}) in cluster.client_quotas()
    await admin.alter_client_quotas(SLOW, {"producer_byte_rate": 2000, "request_percentage": None})
    assert (await admin.describe_client_quotas(client_id="slow"))[SLOW] == {"producer_byte_rate": 2000.0}
    await admin.alter_client_quotas(ADDRESS, {"connection_creation_rate": None})
    assert ADDRESS not in await admin.describe_client_quotas()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"client_id": "slow"}, {SLOW, BOTH}),
        ({"client_id": "slow", "strict": True}, {SLOW}),
        ({"client_id": DEFAULT}, {OTHERS}),
        ({"client_id": ANY}, {SLOW, OTHERS, BOTH}),
        ({"user": "alice", "client_id": ANY, "strict": True}, {BOTH}),
        ({"ip": ANY}, {ADDRESS}),
        ({"user": DEFAULT}, set()),
    ],
)
async def test_filters(admin: KafkaAdmin, wanted: Any, found: set[ClientQuotaEntity]) -> None:
    await admin.alter_all_client_quotas(QUOTAS)
    assert set(await admin.describe_client_quotas(**wanted)) == found


async def test_each_has_its_own_error(admin: KafkaAdmin) -> None:
    results = await admin.alter_all_client_quotas(
        {SLOW: {"producer_byte_rate": 0}, ClientQuotaEntity(): {"producer_byte_rate": 1}, ADDRESS: QUOTAS[ADDRESS]}
    )
    assert [type(error) for error in results.values()] == [InvalidRequestException] * 2 + [type(None)]
    assert "quotas of client-id 'slow'" in str(results[SLOW])
    assert await admin.describe_client_quotas() == {ADDRESS: QUOTAS[ADDRESS]}
    with pytest.raises(InvalidRequestException, match="connection_creation_rate"):
        await admin.alter_client_quotas(SLOW, {"connection_creation_rate": 1})
    with pytest.raises(InvalidRequestException, match="ip"):
        await admin.describe_client_quotas(ip="127.0.0.1", user="alice")


async def test_only_checked(admin: KafkaAdmin) -> None:
    await admin.alter_client_quotas(SLOW, QUOTAS[SLOW], validate_only=True)
    assert await admin.describe_client_quotas() == {}
    with pytest.raises(InvalidRequestException):
        await admin.alter_client_quotas(SLOW, {"producer_byte_rate": -1}, validate_only=True)


async def test_a_broker_that_is_too_old() -> None:
    old: dict[int, int] = {ApiKey.DESCRIBE_CLIENT_QUOTAS: -1, ApiKey.ALTER_CLIENT_QUOTAS: -1}
    async with (
        EmbeddedCluster(newest_versions=old) as cluster,
        KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin,
    ):
        with pytest.raises(UnsupportedVersionException):
            await admin.describe_client_quotas()
        with pytest.raises(UnsupportedVersionException):
            await admin.alter_client_quotas(SLOW, QUOTAS[SLOW])


def test_its_words() -> None:
    assert str(BOTH) == "user 'alice' and client-id 'slow'"
    assert str(OTHERS) == "client-id (default)"
    assert ClientQuotaEntity.of(BOTH.parts()) == BOTH
    assert ClientQuotaEntity.of(OTHERS.parts()) == OTHERS
    with pytest.raises(KafkaError, match="quotas of planet"):
        ClientQuotaEntity.of([EntityData("planet", "earth")])
    assert conditions("a", DEFAULT, ANY) == [
        ComponentData("user", 0, "a"),
        ComponentData("client-id", 1, None),
        ComponentData("ip", 2, None),
    ]
