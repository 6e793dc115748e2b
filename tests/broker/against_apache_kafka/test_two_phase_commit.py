"""InitProducerId 6 (KIP-939) on the embedded broker and on Apache Kafka 4.3.1, request by request.

They differ in what Kafka 4.3.1 does not have yet: it answers ``UNSUPPORTED_VERSION`` to ``keepPreparedTxn``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.broker.raw_clients.raw_client import RawClient

from .kafka_comparison import TRANSACTION, ComparedBroker, same
from .test_transactions import Transactional

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]

VERSION = 6
UNSTABLE = {"unstable.api.versions.enable": True}
ALLOWED = {"transaction.two.phase.commit.enable": True, **UNSTABLE}


@pytest.fixture(scope="module", params=[ALLOWED, UNSTABLE], ids=["allowed", "not allowed"])
def unstable(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    with running_kafka("4.3.1", configs=request.param) as kafka:
        yield kafka


@pytest.fixture
async def pair(
    unstable: ApacheKafka, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[ComparedBroker, ComparedBroker]]:
    configs = request.node.callspec.params["unstable"]
    async with EmbeddedCluster(old_nodes=[0], configs=configs) as cluster:
        brokers = (cluster.bootstrap_servers, unstable.bootstrap_servers)
        compared = [ComparedBroker(await RawClient.connect(servers)) for servers in brokers]
        yield compared[0], compared[1]
        for broker in compared:
            await broker.client.close()


class TwoPhases(Transactional):
    """A producer of two-phase commits."""

    async def init_two_phases(self, timeout_ms: int = 60_000, *, keep: bool = False, two_phases: bool = True) -> Any:
        request = InitProducerIdRequest(self.id, timeout_ms, enable2_pc=two_phases, keep_prepared_txn=keep)
        answer = await self.broker.settled(request, VERSION, lambda response: int(response.error_code))
        if not answer.error_code:
            self.identity = answer.producer_id, answer.producer_epoch
        return (
            ErrorCode(answer.error_code).name,
            self.alias(answer.producer_id),
            answer.producer_epoch,
            self.alias(answer.ongoing_txn_producer_id),
            answer.ongoing_txn_producer_epoch,
        )


async def began(broker: ComparedBroker, transactional_id: str) -> TwoPhases:
    """Once the coordinator has loaded what it knows: InitProducerId 6 may be refused before that."""
    await broker.find_coordinator(transactional_id, TRANSACTION)
    one = TwoPhases(broker, transactional_id)
    await one.init()
    return one


async def test_the_version_is_offered(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> list[Any]:
        response = await broker.client.request(ApiVersionsRequest("a", "1"), 3)
        return [one for one in response.api_keys if one.api_key == ApiKey.INIT_PRODUCER_ID]

    await same(pair, case)


async def test_producers_of_two_phase_commits(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    """What they are given, whatever time-out they ask for, and what becomes of their transactions."""

    async def case(broker: ComparedBroker) -> list[Any]:
        await broker.create("two-phases")
        one = await began(broker, "two-phases")
        answers: list[Any] = [
            (timeout_ms, await one.init_two_phases(timeout_ms), await one.described())
            for timeout_ms in (-1, 0, 1, 900_000, 900_001, 2**31 - 1)
        ]
        for commit in (True, False):
            answers.append(await one.add(("two-phases", [0])))
            answers.append(await one.described())
            answers.append(await one.end(commit=commit))
            answers.append(await one.described())
        answers.append(await one.add(("two-phases", [0])))
        answers.append(("aborts what is open", await one.init_two_phases(), await one.described()))
        answers.append(("without", await one.init_two_phases(two_phases=False), await one.described()))
        answers.append(("too long", await one.init_two_phases(900_001, two_phases=False), await one.described()))
        one.id = ""
        answers.append(("no name", await one.init_two_phases(), await one.init_two_phases(keep=True)))
        return answers

    await same(pair, case)


async def test_kafka_keeps_no_transaction(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    """If two-phase commits are not allowed, they are equal: that is found first."""

    async def case(broker: ComparedBroker) -> list[Any]:
        await broker.create("kept")
        one = await began(broker, "kept")
        init = await one.init_two_phases()
        added = await one.add(("kept", [0])) if init[0] == "NONE" else None
        return [init, added, await one.init_two_phases(keep=True), await one.described()]

    embedded, real = pair
    ours, theirs = await case(embedded), await case(real)
    assert ours[:2] == theirs[:2]
    if ours[0][0] == "NONE":
        assert (ours[2], theirs[2]) == (("NONE", "id 0", 2, "id 0", 1), ("UNSUPPORTED_VERSION", "-1", -1, "-1", -1))
    else:
        assert ours[2] == theirs[2]
    assert ours[3] == theirs[3]
