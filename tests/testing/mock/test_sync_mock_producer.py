"""The mock for threads: MockProducer's behaviour (test_mock_producer.py) behind the calls of aioproducer.sync."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from aioproducer import ProducerRecord
from aioproducer.errors import (
    BufferExhaustedException,
    NotEnoughReplicasException,
    ProducerFencedException,
    TimeoutException,
)
from aioproducer.sync import KafkaProducer
from aioproducer.testing import SyncMockProducer


def values(records: list[ProducerRecord]) -> list[Any]:
    return [record.value for record in records]


def test_serializers_may_be_coroutines() -> None:
    async def encode(data: int) -> bytes:
        return b"%d" % data

    with SyncMockProducer(value_serializer=encode) as producer:
        assert producer.send("t", 1).result(timeout=5).offset == 0
        assert producer.send_many("t", [2, 3]).delivered == 2
        assert values(producer.history) == [1, 2, 3]


def test_records_of_every_call_and_thread_are_written_down() -> None:
    with SyncMockProducer(topics={"t": 1}, value_serializer=lambda value: str(value).encode()) as producer:
        assert isinstance(producer, KafkaProducer)
        threads = [threading.Thread(target=producer.send, args=("t", number)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(values(producer.history)) == list(range(10))
        assert producer.send("t", 10, key=b"k").result(timeout=5).offset == 10
        assert producer.send_many("t", [11, 12]).delivered == 2
        assert producer.ask(lambda mock: mock.flushed)
    assert len(producer.history) == 13
    assert producer.ask(lambda mock: mock.closed)


def test_by_hand_and_with_errors() -> None:
    with SyncMockProducer(auto_complete=False) as producer:
        first, second = producer.send("t", b"1"), producer.send("t", b"2")
        assert producer.complete_next()
        assert producer.error_next(NotEnoughReplicasException("too few"))
        assert not producer.complete_next()
        assert first.result(timeout=5).offset == 0
        with pytest.raises(NotEnoughReplicasException):
            second.result(timeout=5)
        producer.errors.send = BufferExhaustedException("full")
        with pytest.raises(BufferExhaustedException):
            producer.send("t", b"3")
        producer.errors.flush = TimeoutException("as set")
        with pytest.raises(TimeoutException, match="as set"):
            producer.flush()
        producer.clear()
        assert producer.history == []


def test_transactions() -> None:
    with SyncMockProducer(transactional_id="x") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("t", b"1").result(timeout=5)
            assert producer.history == []
            assert values(producer.ask(lambda mock: mock.uncommitted_records)) == [b"1"]
        assert values(producer.history) == [b"1"]
        assert producer.ask(lambda mock: mock.commit_count) == 1
        producer.fence_producer()
        with pytest.raises(ProducerFencedException):
            producer.begin_transaction()
