"""The user's code that a whole producer calls: interceptors, serializers, callbacks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import (
    Delivery,
    DeliveryError,
    KafkaProducer,
    Outcome,
    ProducerInterceptor,
    ProducerRecord,
    RecordMetadata,
    TopicPartition,
)
from aioproducer.errors import (
    BufferExhaustedException,
    ConfigException,
    IllegalArgumentException,
    IllegalStateException,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
    TopicAuthorizationException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.parking.parked_record import PARKED_COST
from aioproducer.producer.parking.parking_lot import TRIAL
from aioproducer.protocol.api_key import ApiKey
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, end_of, make_producer, turns
from tests.support.scripted_broker import ScriptedCluster, after, answer, drop, error, never
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


@asynccontextmanager
async def running(
    *interceptors: Any, known: bool = True, **config: Any
) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer[Any, Any]]]:
    """A producer with these interceptors that knows the topic ``t``."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, interceptor_classes=interceptors, **config) as producer:
            if known:
                await producer.partitions_for("t")
            yield cluster, producer


class Book(ProducerInterceptor):
    """Gives each record a number as a header, and notes how it ends. Its notes may be shared."""

    def __init__(self, notes: list[Any] | None = None) -> None:
        self.notes: list[Any] = [] if notes is None else notes
        self.sent = 0
        self.ended: dict[int, Any] = {}
        self.closed = 0

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.sent += 1
        number = ("number", b"%d" % self.sent)
        return record._replace(headers=(*(record.headers or ()), number))

    def _end(self, headers: Any, end: Any) -> None:
        number = int(dict(headers)["number"])
        assert number not in self.ended, "a record ended twice"
        self.ended[number] = end

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Any) -> None:
        self._end(headers, error or metadata)
        self.notes.append(("acknowledged", metadata, error))

    def on_send_error(self, record: ProducerRecord, topic_partition: TopicPartition, error: BaseException) -> None:
        self._end(record.headers, error)
        self.notes.append(("not sent", record, topic_partition, error))

    def close(self) -> None:
        self.closed += 1

    def balanced(self) -> bool:
        """Every record that was seen has ended."""
        return set(self.ended) == set(range(1, self.sent + 1))


# On the way


async def test_interceptors_come_before_everything_else() -> None:
    """Before serializers, and whatever they make of topic, partition, timestamp and headers holds."""

    def first(record: ProducerRecord) -> ProducerRecord:
        assert record == ProducerRecord("elsewhere", 20, "k", None, None, None)
        return record._replace(topic="t", value=record.value + 1, partition=0)

    def second(record: ProducerRecord) -> ProducerRecord:
        return record._replace(value=record.value * 2, timestamp_ms=5, headers=[("h", b"1")])

    async with running(
        first, second, key_serializer=str.encode, value_serializer=lambda value: str(value).encode()
    ) as (cluster, producer):
        _ = await producer.send("elsewhere", 20, key="k")
        _ = await (await producer.enqueue(ProducerRecord("elsewhere", 20, "k")))
        records = list(cluster.log("t").records())
        assert [(r.key, r.value, r.timestamp_ms, r.headers) for r in records] == [(b"k", b"42", 5, (("h", b"1"),))] * 2


async def test_serializers_see_topic_and_headers_and_may_add_to_them() -> None:
    class Schema:
        closed = 0

        def serialize(self, topic: str, headers: list[tuple[str, bytes | None]], data: Any) -> bytes:
            headers.append(("schema", topic.encode()))
            return repr(data).encode()

        def close(self) -> None:
            self.closed += 1

    schema, book = Schema(), Book()
    async with running(book, key_serializer=schema, value_serializer=schema) as (cluster, producer):
        mine = [("mine", None)]
        _ = await producer.send("t", 1, key=None, headers=mine)
        assert mine == [("mine", None)]
        [record] = cluster.log("t").records()
        assert (record.key, record.value) == (b"None", b"1")
        assert record.headers == (("mine", None), ("number", b"1"), ("schema", b"t"), ("schema", b"t"))
        with pytest.raises(SerializationException, match="the headers are of type int"):
            _ = producer.send("t", 1, headers=5)  # type: ignore[call-overload]
    assert schema.closed == 1
    assert book.closed == 1


async def test_without_interceptors_a_serializer_sees_headers_too() -> None:
    class Reads:
        def serialize(self, topic: str, headers: list[tuple[str, bytes | None]], data: Any) -> bytes | None:
            return dict(headers).get("copy", data)

    async with running(value_serializer=Reads()) as (cluster, producer):
        _ = await producer.send("t", b"v", headers=(("copy", b"c"),))
        _ = await producer.send("t", b"v")
        with pytest.raises(SerializationException, match="the headers are of type int"):
            _ = producer.send("t", 1, headers=5)  # type: ignore[call-overload]
        assert cluster.values("t") == [b"c", b"v"]


# Ends


async def test_interceptors_see_acknowledgements_in_record_order_and_first() -> None:
    notes: list[Any] = []
    async with running(Book(notes), linger_ms=5) as (_, producer):
        deliveries = [producer.send("t", b"%d" % n, timestamp_ms=n) for n in range(3)]
        for delivery in reversed(deliveries):
            delivery.add_done_callback(lambda done: notes.append(("callback", done.result())))
        waiter = asyncio.create_task(end_of(deliveries[0]))
        waiter.add_done_callback(lambda done: notes.append(("awaited", done.result())))
        await producer.flush()
        await asyncio.wait([waiter])
        await asyncio.sleep(0)
        metadata = [delivery.result() for delivery in deliveries]
        assert [(m.offset, m.timestamp_ms, m.serialized_value_size) for m in metadata] == [
            (0, 0, 1),
            (1, 1, 1),
            (2, 2, 1),
        ]
        assert notes == [
            *(("acknowledged", one, None) for one in metadata),
            *(("callback", one) for one in metadata),
            ("awaited", metadata[0]),
        ]


async def test_a_batch_that_fails_is_acknowledged_with_its_error() -> None:
    book = Book()
    async with running(book, linger_ms=5) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        for _ in range(2):
            _ = producer.send("t", b"v")
        await producer.flush()
        ((_, metadata, first), (_, _, second)) = book.notes
        assert metadata == RecordMetadata("t", 0, -1, -1, False, -1, -1)
        assert isinstance(first, TopicAuthorizationException)
        assert isinstance(first, DeliveryError)
        assert first.outcome is Outcome.NOT_SENT
        assert first is not second, "one object for all would collect everybody's traceback"


async def test_an_interceptor_does_not_count_as_a_waiter(caplog: pytest.LogCaptureFixture) -> None:
    """A failure that only an interceptor heard of still has its line in the log."""
    async with running(Book()) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        _ = producer.send("t", b"v")
        await producer.flush()
    assert "1 record was not delivered" in caplog.text


async def test_on_send_error_gets_errors_that_send_raises() -> None:
    book = Book()
    async with running(book, value_serializer=lambda value: value.encode()) as (_, producer):
        for misuse, cause in (
            ({"value": 5}, SerializationException),
            ({"value": "v", "key": "not bytes"}, SerializationException),
            ({"value": "v", "partition": -1}, IllegalArgumentException),
            ({"value": "v", "timestamp_ms": -1}, IllegalArgumentException),
            ({"value": "v", "topic": ""}, IllegalArgumentException),
        ):
            arguments: dict[str, Any] = {"topic": "t", **misuse}
            with pytest.raises(cause):
                _ = producer.send(**arguments)
            with pytest.raises(cause) as raised:
                _ = await producer.enqueue(**arguments)
            assert book.notes[-1][3] is raised.value
        partition = [one[2].partition for one in book.notes]
        assert partition == [-1, -1, -1, -1, -1, -1, -1, -1, -1, -1]
        assert {one[0] for one in book.notes} == {"not sent"}
        assert book.balanced()


async def test_a_record_that_is_too_large_is_a_send_error() -> None:
    book = Book()
    async with running(book, max_request_size=100) as (_, producer):
        delivery = producer.send("t", bytes(200), partition=0)
        assert book.notes[0][2] == TopicPartition("t", 0)
        assert isinstance(book.notes[0][3], RecordTooLargeException)
        assert isinstance(await end_of(delivery), RecordTooLargeException)
        with pytest.raises(RecordTooLargeException):
            _ = await producer.enqueue("t", bytes(200))
        assert book.balanced()


@virtual
async def test_on_send_error_gets_records_that_never_get_metadata(world: World) -> None:
    book = Book()
    async with running(book, max_block_ms=30) as (_, producer):
        delivery = producer.send("t", b"v", partition=99)
        with pytest.raises(TimeoutException):
            _ = await producer.enqueue("t", b"v", partition=99)
        assert isinstance(await end_of(delivery), TimeoutException)
        assert [one[0] for one in book.notes] == ["not sent"] * 2
        assert {one[2] for one in book.notes} == {TopicPartition("t", 99)}
        assert all(one[3].outcome is Outcome.NOT_SENT for one in book.notes)


@virtual
async def test_on_send_error_gets_records_that_find_no_memory(world: World) -> None:
    book = Book()
    memory: dict[str, Any] = {
        "buffer_memory": 1000,
        "batch_size": 1000,
        "max_request_size": 1000,
        "parked_memory": 900 + PARKED_COST,
    }
    async with running(book, max_block_ms=30, **memory) as (cluster, producer):
        cluster.broker.always(ApiKey.PRODUCE, never())
        _ = producer.send("t", bytes(800))
        parked = producer.send("t", bytes(800))
        refused = producer.send("t", bytes(800))
        await turns(TRIAL)
        assert refused.done()
        assert [one[0] for one in book.notes] == ["not sent"]
        assert isinstance(await end_of(parked), BufferExhaustedException)
        assert [one[0] for one in book.notes] == ["not sent"] * 2
        await producer.close(timeout=0)
        assert book.notes[2][0] == "acknowledged"
        assert book.notes[2][2].outcome is Outcome.UNKNOWN
        assert book.balanced()


async def test_a_parked_record_that_is_placed_is_acknowledged() -> None:
    book = Book()
    async with running(book, known=False) as (_, producer):
        deliveries = [producer.send("t", b"v") for _ in range(3)]
        deliveries.append(await producer.enqueue("t", b"v"))
        await producer.flush()
        assert [one[1] for one in book.notes] == [delivery.result() for delivery in deliveries]
        assert [one[1].offset for one in book.notes] == [0, 1, 2, 3]


async def test_the_records_of_a_batch_that_is_split_are_acknowledged_in_order() -> None:
    book = Book()
    async with running(book, linger_ms=5, batch_size=100_000) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.MESSAGE_TOO_LARGE))
        deliveries = [producer.send("t", bytes(9000)) for _ in range(8)]
        called: list[Delivery] = []
        for delivery in deliveries:
            delivery.add_done_callback(called.append)
        await producer.flush()
        assert cluster.broker.count(ApiKey.PRODUCE) > 2
        assert called == deliveries
        assert [one[1] for one in book.notes] == [delivery.result() for delivery in deliveries]
        assert [one[1].offset for one in book.notes] == list(range(8))
        assert book.balanced()


async def test_a_record_that_is_withdrawn_is_a_send_error() -> None:
    book = Book()
    async with running(book) as (_, producer):
        task = asyncio.create_task(producer.enqueue("t", b"v", partition=99))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            _ = await task
        [(kind, _, _, cause)] = book.notes
        assert kind == "not sent"
        assert "withdrawn" in str(cause)


async def test_a_base_exception_of_a_serializer_is_a_send_error_too() -> None:
    def interrupted(value: Any) -> bytes:
        raise KeyboardInterrupt

    book = Book()
    async with running(book, value_serializer=interrupted) as (_, producer):
        with pytest.raises(KeyboardInterrupt):
            _ = producer.send("t", b"v")
        assert isinstance(book.ended[1], KeyboardInterrupt)


class Stop(BaseException):
    """Not an Exception, as KeyboardInterrupt is none."""


async def test_a_base_exception_at_a_records_end_reaches_the_loop_and_spoils_no_delivery() -> None:
    class Stopping(ProducerInterceptor):
        def on_acknowledgement(self, *end: Any) -> None:
            raise Stop

    book = Book()
    async with running(Stopping(), book, linger_ms=5) as (_, producer):
        reported: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))
        deliveries = [producer.send("t", b"v") for _ in range(3)]
        await producer.flush()
        await asyncio.sleep(0)
        assert [delivery.result().offset for delivery in deliveries] == [0, 1, 2]
        assert [type(one) for one in reported] == [Stop] * 3
        assert len(book.ended) == 3


# Life


async def test_interceptors_are_closed_once_with_the_producer_and_after_every_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Closing(Book):
        def close(self) -> None:
            super().close()
            self.balanced_at_close = self.balanced()
            raise RuntimeError("cannot be closed")

    first, last = Closing(), Book()
    async with running(first, last, linger_ms=1000) as (_, producer):
        _ = producer.send("t", b"v")
        await producer.close()
        await producer.close()
        with pytest.raises(IllegalStateException, match="closed"):
            _ = producer.send("t", b"v")
        assert first.balanced_at_close
        assert (first.closed, last.closed) == (1, 1)
        assert last.sent == 1, "an interceptor hears nothing after it was closed"
    assert "cannot be closed" in caplog.text


@pytest.mark.parametrize("tick", range(12))
async def test_interceptors_are_closed_whenever_a_close_is_cut_short(tick: int) -> None:
    book = Book()
    async with running(book) as (_, producer):
        _ = producer.send("t", b"v")
        closing = [asyncio.create_task(producer.close()) for _ in range(2)]
        for _ in range(tick):
            await asyncio.sleep(0)
        closing[0].cancel()
        await producer.close(timeout=0)
        await asyncio.wait(closing)
        assert book.closed == 1
        assert book.balanced()


@virtual
async def test_on_send_error_gets_records_sent_while_the_producer_closes(world: World) -> None:
    book = Book()
    async with running(book, request_timeout_ms=50, delivery_timeout_ms=100) as (cluster, producer):
        cluster.broker.always(ApiKey.PRODUCE, never())
        _ = producer.send("t", b"v")
        closing = asyncio.create_task(producer.close())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(IllegalStateException, match="closed") as raised:
            _ = producer.send("t", b"late")
        assert book.ended == {2: raised.value}
        await closing
        assert book.balanced()


async def test_an_interceptor_class_is_made_for_each_producer() -> None:
    made: list[Any] = []

    class Counted(Book):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    async with running(Counted) as (_, one), running(Counted, lambda record: record) as (_, other):
        _ = await one.send("t", b"v")
        _ = await other.send("t", b"v")
    assert [book.sent for book in made] == [1, 1]
    assert [book.closed for book in made] == [1, 1]


def test_interceptors_are_closed_when_one_cannot_be_made() -> None:
    class Broken(Book):
        def __init__(self) -> None:
            raise RuntimeError("no such schema registry")

    book = Book()
    with pytest.raises(ConfigException, match="no such schema registry"):
        KafkaProducer(bootstrap_servers="b:1", interceptor_classes=[book, Broken])
    assert book.closed == 1


def test_a_close_that_would_have_to_be_awaited_is_refused() -> None:
    class Asynchronous(ProducerInterceptor):
        async def close(self) -> None:  # type: ignore[override]
            pass

    with pytest.raises(ConfigException, match=r"close\(\) is asynchronous"):
        KafkaProducer(bootstrap_servers="b:1", interceptor_classes=Asynchronous())


def test_interceptors_by_their_import_path() -> None:
    path = "aioproducer.producer.hooks.interceptors.ProducerInterceptor"
    producer = KafkaProducer.from_config(f"bootstrap.servers=b:1\ninterceptor.classes={path},{path}")
    assert producer.config.interceptor_classes == (ProducerInterceptor, ProducerInterceptor)


# Calls from within


PLACES = ["on_send", "on_acknowledgement", "on_send_error", "key_serializer", "value_serializer", "callback"]


async def call_within(place: str, do: Callable[[KafkaProducer], Any]) -> list[Any]:
    """What ``do(producer)`` returned or raised, called in that place, once for each of three records."""
    found: list[Any] = []

    def called(*arguments: Any) -> Any:
        try:
            found.append(do(producer))
        except Exception as raised:
            found.append(raised)
        return arguments[0]

    given: dict[str, Any] = {}
    if place.endswith("serializer"):
        given[place] = called
    elif place != "callback":
        given["interceptor_classes"] = type("Calling", (), {place: staticmethod(called)})
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, **given) as producer:
            await producer.partitions_for("t")
            size = 10_000_000 if place == "on_send_error" else 10
            deliveries = [producer.send("t", bytes(size), key=b"k") for _ in range(3)]
            if place == "callback":
                for delivery in deliveries:
                    delivery.add_done_callback(called)
            for delivery in deliveries:
                await end_of(delivery)
        assert all_memory_free(producer)
    return found


@pytest.mark.parametrize("place", PLACES)
async def test_flush_from_within_raises_at_the_call(place: str) -> None:
    found = await call_within(place, lambda producer: producer.flush())
    assert len(found) == 3
    for one in found:
        assert isinstance(one, IllegalStateException)
        assert "flush() was called in an interceptor, serializer, partitioner or delivery callback" in str(one)


@pytest.mark.parametrize("place", PLACES)
async def test_close_from_within_stops_at_once_and_does_not_wait_for_itself(place: str) -> None:
    """Though there are records for which the broker has no answer, and delivery.timeout.ms is 10 seconds."""
    closing: list[asyncio.Task[None]] = []
    given: dict[str, Any] = {}

    def close(*arguments: Any) -> Any:
        if not closing:
            closing.append(asyncio.create_task(producer.close(timeout=1000)))
        return arguments[0]

    if place.endswith("serializer"):
        given[place] = close
    elif place != "callback":
        given["interceptor_classes"] = type("Closing", (), {place: staticmethod(close)})
    async with ScriptedCluster() as cluster, asyncio.timeout(5):
        cluster.create_topic("t", 1)
        release = asyncio.Event()
        cluster.broker.script(ApiKey.PRODUCE, after(release))
        cluster.broker.always(ApiKey.PRODUCE, never())
        async with make_producer(cluster.bootstrap_servers, **given) as producer:
            await producer.partitions_for("t")
            deliveries = [producer.send("t", b"v", key=b"k")]
            if place == "callback":
                deliveries[0].add_done_callback(close)
            if place in ("callback", "on_acknowledgement"):
                await cluster.broker.received(ApiKey.PRODUCE)
                deliveries.append(producer.send("t", b"v", key=b"k"))
                release.set()
            elif place == "on_send_error":
                deliveries.append(producer.send("t", bytes(10_000_000), key=b"k"))
            for delivery in deliveries:
                await end_of(delivery)
            await closing[0]
            with pytest.raises(IllegalStateException, match="closed"):
                _ = producer.send("t", b"v")
        assert [delivery.outcome for delivery in deliveries] != [None] * len(deliveries)


@pytest.mark.parametrize("place", PLACES)
async def test_flushing_another_producer_is_allowed(place: str) -> None:
    async with running() as (_, other):
        tasks: list[asyncio.Task[None]] = []

        def flush(_: KafkaProducer) -> None:
            tasks.append(asyncio.create_task(other.flush()))

        assert await call_within(place, flush) == [None] * 3
        await asyncio.gather(*tasks)


async def test_a_task_made_in_a_callback_may_flush_and_close() -> None:
    async with running() as (cluster, producer):
        tasks: list[asyncio.Task[None]] = []

        async def shut() -> None:
            _ = producer.send("t", b"second")
            await producer.flush()
            await producer.close()

        producer.send("t", b"first").add_done_callback(lambda done: tasks.append(asyncio.create_task(shut())))
        await producer.flush()
        await asyncio.gather(*tasks)
        assert cluster.values("t") == [b"first", b"second"]


@pytest.mark.parametrize("place", ["on_send", "on_acknowledgement", "on_send_error"])
async def test_a_record_sent_by_an_interceptor_is_not_intercepted(place: str) -> None:
    """Else each record would bring another one, without end."""
    sent: list[Delivery] = []
    await call_within(place, lambda producer: sent.append(producer.send("t", b"about it")))
    assert len(sent) == 3
    assert all(delivery.done() for delivery in sent)


async def test_a_callback_may_send_and_that_is_intercepted() -> None:
    book = Book()
    async with running(book) as (cluster, producer):
        producer.send("t", b"first").add_done_callback(lambda done: producer.send("t", b"second"))
        await producer.flush()
        await producer.flush()
        assert cluster.values("t") == [b"first", b"second"]
        assert len(book.ended) == 2


# Exactly one end


@pytest.mark.parametrize("seed", range(20))
async def test_however_send_and_close_meet_every_record_ends_once_for_interceptors_too(seed: int) -> None:
    """The interceptor, the delivery and the log tell the same story of each record."""
    chance = random.Random(seed)
    for _ in range(5):
        book = Book()

        def sometimes(value: bytes, chance: random.Random = chance) -> bytes:
            if chance.random() < 0.05:
                raise ValueError("not this one")
            return value

        async with running(
            book,
            known=chance.random() < 0.5,
            value_serializer=sometimes,
            linger_ms=chance.choice([0, 1]),
            buffer_memory=chance.choice([2000, 1 << 20]),
            batch_size=500,
            max_request_size=1500,
            parked_memory=10_000,
        ) as (cluster, producer):
            steps = [answer, drop(), drop(appended=True), error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
            cluster.broker.script(ApiKey.PRODUCE, *[chance.choice(steps) for _ in range(4)])
            deliveries: dict[int, Delivery] = {}
            raised: dict[int, BaseException] = {}

            async def work(
                name: int,
                producer: KafkaProducer = producer,
                book: Book = book,
                deliveries: dict[int, Delivery] = deliveries,
                raised: dict[int, BaseException] = raised,
            ) -> None:
                for _ in range(20):
                    number = book.sent + 1
                    size = chance.choice([10, 10, 10, 400, 3000])
                    try:
                        if name % 2:
                            deliveries[number] = producer.send("t", bytes(size), partition=chance.choice([0, None, 9]))
                        else:
                            deliveries[number] = await producer.enqueue("t", bytes(size), partition=0)
                    except (DeliveryError, SerializationException, RecordTooLargeException, IllegalStateException) as e:
                        raised[number] = e
                    for _ in range(chance.randrange(3)):
                        await asyncio.sleep(0)

            workers = [asyncio.create_task(work(name)) for name in range(4)]
            for _ in range(chance.randrange(60)):
                await asyncio.sleep(0)
            if chance.random() < 0.3:
                await asyncio.sleep(0.003)
            await producer.close(
                timeout=chance.choice([None, 0, 0.001]) if producer.config.max_block_ms < 100 else 0.01
            )
            await asyncio.gather(*workers)
            assert book.balanced()
            assert book.closed == 1
            log = {int(dict(record.headers)["number"] or b"") for record in cluster.log("t").records()}
            for number, end in book.ended.items():
                if isinstance(end, RecordMetadata):
                    assert deliveries[number].result() == end
                    assert number in log
                elif number in deliveries:
                    told = deliveries[number].exception()
                    assert type(told).__name__ == type(end).__name__
                    assert told is not None
                    assert number not in log or told.outcome is Outcome.UNKNOWN
                else:
                    assert number not in log
