"""The producer id's source by itself; ``test_sender.py`` has it against brokers."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import ClusterAuthorizationException, InvalidRequestException, KafkaError, NetworkException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.sender.producer_id import ProducerIdSource
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.tasks.supervisor import Supervisor
from tests.producer.simulations.standing_loop import make_ids

GIVEN = InitProducerIdResponse(producer_id=7, producer_epoch=3)


def refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code)


class Scene:
    """A source whose questions are answered from a list; ``told`` is what it called."""

    def __init__(self, *answers: InitProducerIdResponse | KafkaError, **config: Any) -> None:
        self.answers = list(answers)
        self.requests: list[InitProducerIdRequest] = []
        self.told: list[Any] = []
        self.done = asyncio.Event()
        quick = {"bootstrap_servers": "b:1", "retry_backoff_ms": 1, "retry_backoff_max_ms": 1}
        client: Any = self
        self.source = ProducerIdSource(
            producer_config({**quick, **config}),
            client,
            make_ids(),
            Supervisor(self.told.append),
            Random(1),
            on_id=lambda: self.tell("id"),
            on_refused=self.told.append,
            on_fatal=self.tell,
        )

    def tell(self, what: Any) -> None:
        self.told.append(what)
        self.done.set()

    async def request(self, request: InitProducerIdRequest, response_class: type) -> InitProducerIdResponse:
        assert response_class is InitProducerIdResponse
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, KafkaError):
            raise answer
        return answer


async def test_the_producer_id_of_an_idempotent_producer_is_requested_once() -> None:
    scene = Scene(GIVEN)
    assert scene.source.missing()
    for _ in range(3):
        scene.source.ask_if_missing(work=False)
    await scene.done.wait()
    assert scene.source.ids.current == ProducerIdAndEpoch(7, 3)
    assert [request.transactional_id for request in scene.requests] == [None]
    scene.source.ask_if_missing(work=True)
    assert scene.told == ["id"]


async def test_transient_errors_are_retried() -> None:
    scene = Scene(refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), NetworkException("lost"), GIVEN)
    scene.source.ask_if_missing(work=True)
    await scene.done.wait()
    assert scene.told == ["id"]
    assert len(scene.requests) == 3


async def test_a_permanent_error_is_reported_as_fatal() -> None:
    scene = Scene(refusal(ErrorCode.INVALID_REQUEST))
    scene.source.ask_if_missing(work=True)
    await scene.done.wait()
    assert [type(told) for told in scene.told] == [InvalidRequestException]
    assert scene.source.missing()


async def test_after_a_refusal_only_work_asks_again() -> None:
    scene = Scene(refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), GIVEN)
    scene.source.ask_if_missing(work=True)
    await scene.done.wait()
    assert isinstance(scene.told[0], ClusterAuthorizationException)
    scene.source.ask_if_missing(work=False)
    assert len(scene.requests) == 1
    scene.done.clear()
    scene.source.ask_if_missing(work=True)
    await scene.done.wait()
    assert scene.source.ids.current == ProducerIdAndEpoch(7, 3)


@pytest.mark.parametrize("config", [{"enable_idempotence": False}, {"acks": "1"}])
async def test_without_idempotence_none_is_needed(config: dict[str, Any]) -> None:
    scene = Scene(**config)
    assert not scene.source.missing()
    scene.source.ask_if_missing(work=True)
    assert scene.requests == []
