"""The chain by itself; what a whole producer makes of it is in test_hooks.py."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from aioproducer import ProducerInterceptor, ProducerRecord, RecordMetadata, TopicPartition
from aioproducer.errors import ConfigException, KafkaError
from aioproducer.producer.hooks.interceptors import ProducerInterceptors

RECORD = ProducerRecord("t", "value", "key", 0)
METADATA = RecordMetadata("t", 0, 7, 1_700_000_000_000, False, 3, 5)


class Appending(ProducerInterceptor):
    """Appends to the value; raises when told to; remembers how records end."""

    def __init__(self, text: str, ends: list[Any] | None = None) -> None:
        self.text = text
        self.ends: list[Any] = [] if ends is None else ends
        self.calls = 0
        self.raises: BaseException | None = None

    def _called(self) -> None:
        self.calls += 1
        if self.raises is not None:
            raise self.raises

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self._called()
        return record._replace(value=record.value + self.text)

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Any) -> None:
        self.ends.append((self.text, metadata, error, headers))
        self._called()


def chain(*interceptors: Any) -> ProducerInterceptors:
    return ProducerInterceptors(interceptors, lambda error: pytest.fail(f"not expected: {error!r}"))


# On the way


def test_each_is_given_what_the_one_before_returned() -> None:
    interceptors = chain(Appending(" one"), Appending(" two"), lambda record: record._replace(topic="u"))
    assert interceptors.on_send(RECORD) == ProducerRecord("u", "value one two", "key", 0)
    assert interceptors.on_send(RECORD) == ProducerRecord("u", "value one two", "key", 0)


def test_after_one_that_raises_the_next_is_given_the_last_good_record(caplog: pytest.LogCaptureFixture) -> None:
    one, two, three = Appending(" one"), Appending(" two"), Appending(" three")
    interceptors = chain(one, two, three)
    two.raises = RuntimeError("its own affair")
    assert interceptors.on_send(RECORD).value == "value one three"
    one.raises = three.raises = RuntimeError("its own affair")
    assert interceptors.on_send(RECORD) is RECORD
    assert (one.calls, two.calls, three.calls) == (2, 2, 2)
    assert "Appending.on_send raised, 1 time by now; it was skipped" in caplog.text


@pytest.mark.parametrize("returned", [None, b"bytes", ProducerRecord(None, b"v")])  # type: ignore[arg-type]
def test_an_interceptor_that_returns_no_record_is_passed_over(returned: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert chain(lambda record: returned, Appending("!")).on_send(RECORD).value == "value!"
    assert "on_send must return a ProducerRecord with a topic, not " in caplog.text


def test_a_base_exception_of_an_interceptor_reaches_the_caller() -> None:
    one = Appending(" one")
    one.raises = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        chain(one).on_send(RECORD)


def test_an_interceptor_that_always_raises_is_logged_ever_more_seldom(caplog: pytest.LogCaptureFixture) -> None:
    one = Appending("")
    one.raises = RuntimeError("again")
    interceptors = chain(one)
    for _ in range(1000):
        interceptors.on_send(RECORD)
    assert len(caplog.records) == 10  # the 1st, 2nd, 4th, … 512th time
    assert "512 times by now" in caplog.text
    interceptors.on_acknowledgement(METADATA, None, ())
    assert "Appending.on_acknowledgement raised, 1 time by now" in caplog.text


# At the end


def test_all_callbacks_run_in_order_though_one_raises(caplog: pytest.LogCaptureFixture) -> None:
    ends: list[Any] = []
    one, two = Appending("one", ends), Appending("two", ends)
    one.raises = RuntimeError("its own affair")
    headers = (("h", b"1"),)
    chain(one, lambda record: record, two).on_acknowledgement(METADATA, None, headers)
    assert ends == [("one", METADATA, None, headers), ("two", METADATA, None, headers)]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_a_base_exception_propagates_after_all_callbacks_ran() -> None:
    stopped: list[BaseException] = []
    one, two = Appending("one"), Appending("two")
    one.raises = SystemExit(3)
    ProducerInterceptors([one, two], stopped.append).on_acknowledgement(METADATA, None, ())
    assert stopped == [one.raises]
    assert two.calls == 1


@pytest.mark.parametrize("partition", [0, -1])
def test_without_a_method_of_its_own_an_error_before_the_append_is_an_acknowledgement(partition: int) -> None:
    """As in Kafka: with the topic, the partition if there is one, and -1 for the rest."""

    class Duck:
        def __init__(self) -> None:
            self.ends: list[Any] = []

        def on_acknowledgement(self, *end: Any) -> None:
            self.ends.append(end)

    derived, duck, error = Appending(""), Duck(), KafkaError("too large")
    record = RECORD._replace(headers=(("h", None),))
    chain(derived, duck).on_send_error(record, TopicPartition("t", partition), error)
    metadata = RecordMetadata("t", partition, -1, -1, False, -1, -1)
    assert derived.ends == [("", metadata, error, (("h", None),))]
    assert duck.ends == [(metadata, error, (("h", None),))]
    chain(duck).on_send_error(RECORD, TopicPartition("t", partition), error)
    assert duck.ends[1:] == [(metadata, error, ())]


def test_an_error_before_the_append_has_its_own_method() -> None:
    told: list[Any] = []

    class Telling(Appending):
        def on_send_error(self, *end: Any) -> None:
            told.append(end)

    one, error, where = Telling(""), KafkaError("no memory"), TopicPartition("t", -1)
    chain(one).on_send_error(RECORD, where, error)
    assert told == [(RECORD, where, error)]
    assert one.ends == []


# Which ones there may be


class Waits:
    async def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record


class CalledAsync:
    async def __call__(self, record: ProducerRecord) -> ProducerRecord:
        return record


async def coroutine(record: ProducerRecord) -> ProducerRecord:
    return record


@pytest.mark.parametrize("interceptor", [Waits(), CalledAsync(), coroutine])
def test_an_asynchronous_interceptor_is_refused(interceptor: Any) -> None:
    with pytest.raises(
        ConfigException, match=r"'interceptor\.classes' has .*which is asynchronous \(on_send\)"
    ) as raised:
        chain(interceptor)
    assert raised.value.value is interceptor


def test_an_interceptor_without_hooks_is_refused() -> None:
    with pytest.raises(ConfigException, match="has none of on_send, on_acknowledgement, on_send_error"):
        chain(object())
