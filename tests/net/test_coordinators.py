from __future__ import annotations

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import TransactionalIdAuthorizationException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorResponse
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import make_producer
from tests.support.scripted_broker import ScriptedCluster, edited

pytestmark = pytest.mark.usefixtures("no_leaks")


@pytest.mark.parametrize("newest", [1, 3, 4, 6])
async def test_every_version_finds_the_coordinator(newest: int) -> None:
    async with EmbeddedCluster(3, newest_versions={ApiKey.FIND_COORDINATOR: newest}) as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, transactional_id="x") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                _ = producer.send("t", b"a")
        assert [record.value for record in cluster.log("t").records()] == [b"a"]


async def test_a_coordinator_is_looked_up_once() -> None:
    async with ScriptedCluster(3) as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, transactional_id="x") as producer:
            await producer.init_transactions()
            for _ in range(5):
                async with producer.transaction():
                    _ = producer.send("t", b"a")
        assert sum(broker.count(ApiKey.FIND_COORDINATOR) for broker in cluster.brokers) == 1


async def test_a_refusal_says_what_to_do_though_the_broker_does_not() -> None:
    def refuse(response: FindCoordinatorResponse) -> None:
        response.coordinators[0].error_code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    async with ScriptedCluster(1) as cluster:
        cluster.broker.script(ApiKey.FIND_COORDINATOR, edited(refuse))
        async with make_producer(cluster.bootstrap_servers, transactional_id="x") as producer:
            with pytest.raises(TransactionalIdAuthorizationException, match=r"'x': Not authorized.*WRITE"):
                await producer.init_transactions()
