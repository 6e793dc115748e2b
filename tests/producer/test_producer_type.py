"""Mocks made after the producer's class are awaited where a producer is, and take what it takes."""

from __future__ import annotations

import inspect
from typing import Any
from unittest.mock import create_autospec, patch

import pytest

from aioproducer import KafkaProducer, PreparedTxnState
from aioproducer.errors import IllegalStateException
from aioproducer.testing import MockProducer
from tests.support.producing import make_producer

AWAITED: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "start": ((), {}),
    "send": (("t",), {"value": b"v", "key": b"k"}),
    "enqueue": (("t", b"v"), {"partition": 1}),
    "send_many": (("t", [b"v"]), {}),
    "send_table": (("t", None), {"value": "column"}),
    "partitions_for": (("t",), {}),
    "client_instance_id": ((1.0,), {}),
    "init_transactions": ((), {}),
    "begin_transaction": ((), {}),
    "send_offsets_to_transaction": (({}, "group"), {}),
    "prepare_transaction": ((), {}),
    "complete_transaction": ((PreparedTxnState(1, 2),), {}),
    "commit_transaction": ((), {}),
    "abort_transaction": ((), {}),
    "flush": ((), {}),
    "close": ((), {"timeout": 1}),
}


@pytest.mark.parametrize("of", [KafkaProducer, MockProducer])
@pytest.mark.parametrize("instance", [False, True])
async def test_a_mock_is_awaited_where_a_producer_is(of: Any, instance: bool) -> None:
    made = create_autospec(of, instance=instance)
    mock = made if instance else made(bootstrap_servers="b:1")
    for name, (arguments, more) in AWAITED.items():
        await getattr(mock, name)(*arguments, **more)
        getattr(mock, name).assert_awaited_once_with(*arguments, **more)
    async with mock, mock.transaction():
        pass
    assert not inspect.isawaitable(mock.metrics())


@pytest.mark.parametrize("of", [KafkaProducer, MockProducer])
def test_a_mock_takes_what_a_producer_takes(of: Any) -> None:
    mock = create_autospec(of, instance=True)
    for call in (mock.send, mock.enqueue):
        for wrong in ({}, {"topic": "t", "offset": 5}):
            with pytest.raises(TypeError):
                call(**wrong)
        with pytest.raises(TypeError):
            call("t", b"v", b"too many")
    with pytest.raises(TypeError):
        mock.close(within=5)
    with pytest.raises(AttributeError):
        mock.no_such_call  # noqa: B018


def test_every_call_that_is_awaited_is_listed_here() -> None:
    calls = {name: inspect.unwrap(getattr(KafkaProducer, name)) for name in dir(KafkaProducer) if name[0] != "_"}
    coroutines = {name for name, call in calls.items() if inspect.iscoroutinefunction(call)}
    assert coroutines | {"send", "enqueue", "flush", "close"} == set(AWAITED)


async def test_the_methods_of_the_class_are_those_of_its_instances() -> None:
    async with MockProducer() as producer:
        delivery = MockProducer.send(producer, "t", b"1")
        _ = await MockProducer.enqueue(producer, "t", b"2")
        assert [record.value for record in producer.history] == [b"1", b"2"]
        await MockProducer.flush(producer)
        assert delivery.done()
    for name in ("send", "enqueue", "flush", "close"):
        method = getattr(producer, name)
        assert not inspect.iscoroutinefunction(method)
        assert getattr(MockProducer, name).__doc__ == method.__doc__
        assert "self" not in inspect.signature(method).parameters


async def test_the_class_can_be_patched() -> None:
    producer = make_producer("b:1")
    with patch.object(KafkaProducer, "send") as mock:
        await producer.send("t", b"v")
    mock.assert_awaited_once_with("t", b"v")
    with pytest.raises(IllegalStateException, match="not started"):
        _ = producer.send("t", b"v")


def test_a_method_that_a_subclass_overrides_is_its_own() -> None:
    class Own(KafkaProducer):
        def close(self, timeout: float | None = None) -> Any:
            return f"closed within {timeout}"

    own = Own(bootstrap_servers="b:1")
    assert Own.close(own, 5) == own.close(5) == "closed within 5"
    mock = create_autospec(Own, instance=True)
    closing = mock.close(timeout=5)
    assert inspect.iscoroutine(closing)
    closing.close()
