from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from aioproducer.error_code import ErrorCode
from aioproducer.errors import NetworkException
from aioproducer.producer.partition_queue import PartitionQueue
from aioproducer.producer.why import why_no_metadata, why_not_delivered
from tests.producer.parts import Loop, make_batch


def client(
    *, unreachable: str = "", failures: dict[str, Any] | None = None, error: Any = None, link: Any = None
) -> Any:
    made = Mock()
    made.unreachable.return_value = unreachable
    made.metadata.failures = failures or {}
    made.metadata_error = error
    made.link.return_value = link
    return made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"unreachable": "no broker can be reached: refused"}, "no broker can be reached: refused"),
        ({}, "the brokers have not answered yet"),
        ({"error": NetworkException("cut off")}, "metadata cannot be had: cut off"),
        ({"failures": {"t": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 3)}}, "3 times that it does not exist"),
        ({"failures": {"t": (ErrorCode.LEADER_NOT_AVAILABLE, 2)}}, "answered LEADER_NOT_AVAILABLE 2 times"),
    ],
)
def test_why_there_is_no_metadata(given: dict[str, Any], said: str) -> None:
    assert said in why_no_metadata(client(**given), "t")


def why(made: Any, *, in_flight: bool = False, leader: int = 1, id_missing: bool = False, due: bool = True) -> str:
    queue = PartitionQueue("t", 0, None)
    queue.leader = leader
    batch = make_batch(Loop(), records=1)
    batch.in_flight = in_flight
    queue.open = batch
    queue.due = due
    return why_not_delivered(made, queue, batch, 0.0, keep_order=False, id_missing=id_missing)


def test_why_a_batch_is_not_delivered() -> None:
    ready = Mock(last_error=None)
    ready.ready.return_value = True
    ready.why_busy.return_value = "5 requests are unanswered"
    lost = Mock(last_error=NetworkException("refused"))
    lost.ready.return_value = False
    assert "has not been answered" in why(client(link=ready), in_flight=True)
    assert "no leader" in why(client(link=ready), leader=-1)
    assert "node 1, is not among the brokers" in why(client(link=None))
    assert "is not connected: refused" in why(client(link=lost))
    assert "no producer id" in why(client(link=ready), id_missing=True)
    assert "has not lingered" in why(client(link=ready), due=False)
    assert why(client(link=ready)) == "5 requests are unanswered"
