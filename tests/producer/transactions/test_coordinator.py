"""The coordinator by itself, without a network; ``exactly_once/test_transactions.py`` has it with brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import KafkaError, NetworkException, ProducerFencedException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.transactions.coordinator import TransactionCoordinator
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.end_txn import EndTxnResponse
from aioproducer.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from aioproducer.protocol.messages.init_producer_id import InitProducerIdResponse
from tests.producer.simulations.standing_loop import make_ids
from tests.support.virtual_time import World, virtual

MINE = ProducerIdAndEpoch(7, 3)
NEXT = ProducerIdAndEpoch(7, 4)


def ask_again(api: ApiKey, error: KafkaError) -> None:
    return None


def raise_all(api: ApiKey, error: KafkaError) -> KafkaError:
    return error.fresh()


class Scene:
    """A coordinator on node 1, with its answers from a list, and what it was asked, by API."""

    def __init__(
        self,
        *answers: Any,
        final: Callable[[ApiKey, KafkaError], KafkaError | None] = ask_again,
        transaction_version: int = 1,
        newest_init: int = 5,
        **config: Any,
    ) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[ApiKey, Any, int | None]] = []
        self.ids = make_ids()
        self._transaction_version = transaction_version
        self._newest_init = newest_init
        client: Any = self
        self.coordinator = TransactionCoordinator(
            producer_config({"bootstrap_servers": "b:1", "transactional_id": "x", **config}),
            client,
            self.ids,
            Random(1),
            final=final,
        )

    async def request(self, request: Any, response_class: Any, *, node_id: int = -1, at_most: int | None = None) -> Any:
        self.asked.append((request.API_KEY, request, at_most))
        if request.API_KEY is ApiKey.FIND_COORDINATOR:
            return FindCoordinatorResponse(coordinators=[Coordinator(request.coordinator_keys[0], 1, "b", 1)])
        assert node_id == 1
        answer = self.answers.pop(0)
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def add_node(self, node: Any) -> None:
        assert node.node_id == 1

    def transaction_version(self, node_id: int | None) -> int | None:
        return None if node_id is None else self._transaction_version

    def speaks(self, node_id: int | None, api: ApiKey, version: int) -> bool:
        assert api is ApiKey.INIT_PRODUCER_ID
        return version <= self._newest_init

    def requests(self, api: ApiKey) -> list[Any]:
        return [request for asked, request, _ in self.asked if asked is api]


def given(identity: ProducerIdAndEpoch, code: ErrorCode = ErrorCode.NONE) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=identity.producer_id, producer_epoch=identity.epoch)


@virtual
async def test_the_coordinator_is_asked_until_it_answers_and_found_again_when_it_moves(world: World) -> None:
    scene = Scene(
        given(MINE, ErrorCode.NOT_COORDINATOR), given(MINE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), given(MINE)
    )
    await scene.coordinator.take_identity()
    assert scene.coordinator.identity == MINE
    assert scene.coordinator.last_error is None
    assert len(scene.requests(ApiKey.FIND_COORDINATOR)) == 2
    assert len(scene.requests(ApiKey.INIT_PRODUCER_ID)) == 3


@virtual
async def test_an_answer_that_is_final_is_raised_with_its_cause(world: World) -> None:
    scene = Scene(given(MINE, ErrorCode.INVALID_PRODUCER_EPOCH), final=raise_all)
    with pytest.raises(KafkaError, match=r"INIT_PRODUCER_ID for transactional\.id 'x'") as told:
        await scene.coordinator.take_identity()
    assert told.value.__cause__ is scene.coordinator.last_error
    assert scene.answers == []


@virtual
async def test_back_offs_grow_but_not_for_one_that_completes_the_last_transaction(world: World) -> None:
    loop = asyncio.get_running_loop()
    busy = EndTxnResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS)
    waits = []
    for knows in (True, False):
        scene = Scene(*[busy] * 5, EndTxnResponse(), retry_backoff_ms=1000, retry_backoff_max_ms=60_000)
        scene.ids.given(MINE)
        scene.coordinator.begun()
        if knows:
            scene.coordinator.started()
        began = loop.time()
        await scene.coordinator.end(committed=True)
        waits.append(loop.time() - began)
    assert waits[0] > 20
    assert waits[1] < 0.2


@virtual
async def test_the_next_epoch_is_requested_with_the_previous_one_where_brokers_support_it(world: World) -> None:
    for newest, second in ((5, MINE), (2, ProducerIdAndEpoch(-1, -1))):
        scene = Scene(given(MINE), given(NEXT), newest_init=newest)
        await scene.coordinator.take_identity()
        await scene.coordinator.take_identity()
        asked = scene.requests(ApiKey.INIT_PRODUCER_ID)
        assert [(one.producer_id, one.producer_epoch) for one in asked] == [(-1, -1), second]
        assert scene.coordinator.identity == NEXT


@virtual
async def test_an_end_brings_the_next_epoch_with_the_second_protocol(world: World) -> None:
    for version, at_most in ((1, 4), (2, None)):
        scene = Scene(given(MINE), EndTxnResponse(producer_id=7, producer_epoch=4), transaction_version=version)
        await scene.coordinator.take_identity()
        await scene.coordinator.end(committed=True)
        api, request, newest = scene.asked[-1]
        assert (api, request.producer_epoch, newest) == (ApiKey.END_TXN, 3, at_most)
        assert scene.coordinator.identity == NEXT


@virtual
@pytest.mark.parametrize("committed", [True, False])
async def test_an_abort_of_what_it_has_forgotten_needs_but_another_id(world: World, committed: bool) -> None:
    scene = Scene(EndTxnResponse(error_code=ErrorCode.UNKNOWN_PRODUCER_ID), final=raise_all)
    scene.ids.given(MINE)
    if committed:
        with pytest.raises(KafkaError, match="UNKNOWN_PRODUCER_ID"):
            await scene.coordinator.end(committed=True)
    else:
        await scene.coordinator.end(committed=False)
    assert scene.ids.in_doubt is not committed


@virtual
async def test_every_other_failure_of_an_abort_is_raised(world: World) -> None:
    scene = Scene(NetworkException("gone"), final=lambda api, error: ProducerFencedException("by another"))
    scene.ids.given(MINE)
    with pytest.raises(ProducerFencedException):
        await scene.coordinator.end(committed=False)
    assert not scene.ids.in_doubt
