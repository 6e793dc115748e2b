from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from aioproducer import Explanation, KafkaProducer, Reason
from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import (
    BufferExhaustedException,
    IllegalArgumentException,
    IllegalStateException,
    KafkaError,
    NetworkException,
    TimeoutException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics import ProducerMetrics
from aioproducer.net.broker_link import LinkState
from aioproducer.net.connection.node_api_versions import NodeApiVersions
from aioproducer.producer.accumulator.incomplete_batches import IncompleteBatches
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.scheduling.pipeline import Pipeline
from aioproducer.producer.scheduling.wait_history import WaitHistory
from aioproducer.producer.sender.obstacles import Situation, explain, link_reason, no_metadata, why_no_metadata
from aioproducer.producer.windows.node_line import NodeLines
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from aioproducer.types import ProducerRecord
from tests.producer.simulations.standing_loop import Accumulation, make_ids
from tests.support.inside import parts_of
from tests.support.producing import end_of, make_producer
from tests.support.scripted_broker import ScriptedCluster, error, never
from tests.support.virtual_time import World, virtual


class Link:
    """As much of a BrokerLink as is looked at."""

    def __init__(self, **more: Any) -> None:
        self.node_id = 1
        self.state = LinkState.READY
        self.last_error: KafkaError | None = None
        self.throttled_until = 0.0
        self.max_in_flight = 5
        self.changed_at = 90.0
        self.backoff_until = 0.0
        self.requests = 0
        self.reads = True
        self.produce_version = 14
        self.__dict__.update(more)

    def __str__(self) -> str:
        return "b:9092 (node 1)"

    def ready(self) -> bool:
        return self.state is LinkState.READY

    def writable(self) -> bool:
        return self.reads

    def in_flight(self) -> int:
        return self.requests

    @property
    def api_versions(self) -> NodeApiVersions:
        return NodeApiVersions("b", ApiVersionsResponse(api_keys=[ApiVersion(ApiKey.PRODUCE, 0, self.produce_version)]))


class Client:
    """As much of a KafkaClient as is looked at."""

    def __init__(self, link: Link) -> None:
        self.links = {1: link}
        self.metadata = SimpleNamespace(failures={})
        self.metadata_error: KafkaError | None = None
        self.trouble = ""

    def unreachable(self) -> str:
        return self.trouble


class Scene(Accumulation):
    """A topic of one partition at 100 s, its leader node 1, and everything that may stand in its way."""

    def __init__(self, link: Link | None = None) -> None:
        super().__init__(memory=4000, batch_size=1000)
        self.config = producer_config({"bootstrap.servers": "b:1", "linger.ms": 50})
        self.ids = make_ids()
        self.ids.current = ProducerIdAndEpoch(7, 0)
        self.sequences = PartitionSequences(self.ids)
        self.sequences.known_id = 7
        (self.queue,) = self.add_topic("t", 1, sequences=lambda: self.sequences)
        self.incomplete = IncompleteBatches()
        self.lot = self.parking_lot(10**6, FailureLog(), ProducerMetrics())
        self.lot.open()
        self.client: Any = Client(Link() if link is None else link)
        self.pipeline: Pipeline | None = None
        self.lines = NodeLines(self.config)
        self.source: Any = SimpleNamespace(missing=lambda: self.ids.current is None, last_error=None)

    def batch_opened(self, queue: Any, batch: Any) -> None:
        super().batch_opened(queue, batch)
        self.incomplete.add(batch, queue)
        queue.close_at = batch.created + self.config.linger_ms / 1000

    def full(self, records: int = 1) -> Any:
        for _ in range(records):
            self.append()
        self.accumulator.close_batch(self.queue)
        return self.opened[-1]

    def drained(self) -> Any:
        """A batch that was sent once and is back."""
        batch = self.full()
        self.queue.batches.remove(batch)
        batch.drain_order, batch.attempts, batch.sent_at, batch.sent_to = 1, 1, self.loop.now, 1
        self.sequences.stamp(batch, 0.0, 0)
        return batch

    def park(self, topic: str, partition: int | None = None) -> None:
        record = ParkedRecord(
            self.accumulator.audience,
            ProducerRecord(topic, b"v", partition=partition),
            70,
            now=self.loop.now,
            max_block=60.0,
        )
        self.lot.park(record)

    def explain(self, topic: str = "t", partition: int = 0, fatal: KafkaError | None = None) -> Explanation:
        situation = Situation(
            self.config,
            self.client,
            self.accumulator.topics,
            self.incomplete,
            self.lot,
            self.source,
            pipeline=self.pipeline,
            lines=self.lines,
        )
        return explain(situation, topic, partition, self.loop.now, fatal)


def test_nothing_to_send() -> None:
    explained = Scene().explain()
    assert explained.reason is Reason.NOTHING
    assert str(explained) == "t-0: nothing is waiting to be sent"
    assert str(Scene().explain(partition=3)) == "t-3: nothing is waiting to be sent; topic 't' has 1 partition"
    assert Scene().explain("nosuch").reason is Reason.NOTHING


def test_linger() -> None:
    here = Scene()
    here.append(value=bytes(100))
    here.append(value=bytes(100))
    here.loop.now += 0.02
    explained = here.explain()
    assert explained.reason is Reason.LINGER
    assert explained.next_event_ms == pytest.approx(30)
    assert (explained.batches, explained.records, explained.attempts) == (1, 2, 0)
    assert explained.age_ms == pytest.approx(20)
    assert str(explained) == (
        "t-0: its batch is not full and lingers for another 30 ms (linger.ms); 2 records in 1 batch, "
        f"{explained.bytes} bytes, the head for 20 ms"
    )
    here.pipeline = Pipeline(1.0, 5, 16384)
    here.pipeline.sent(1, 10, 1000, 99.0)
    here.pipeline.answered(1, 0.15)
    assert "for another 30 ms (pipeline=auto, with 150 ms to an answer)" in str(here.explain())


def test_a_full_batch_without_an_obstacle_is_ready() -> None:
    here = Scene()
    here.full()
    assert here.explain().reason is Reason.READY
    assert "next turn of the loop" in str(here.explain())


def test_no_leader() -> None:
    here = Scene()
    here.full()
    here.queue.leader = -1
    assert here.explain().reason is Reason.NO_LEADER
    here.queue.leader = 4
    explained = here.explain()
    assert explained.reason is Reason.LEADER_UNKNOWN
    assert "node 4, is not among the brokers" in str(explained)


@pytest.mark.parametrize(
    ("link", "said", "next_event"),
    [
        (Link(state=LinkState.CONNECTING), "connecting for 10 s", None),
        (
            Link(state=LinkState.BACKOFF, backoff_until=100.42, last_error=NetworkException("refused")),
            "it is tried again in 420 ms (reconnect.backoff.ms): refused",
            420,
        ),
        (Link(state=LinkState.IDLE), "it is tried at once", None),
    ],
)
def test_the_leader_is_not_connected(link: Link, said: str, next_event: float | None) -> None:
    here = Scene(link)
    here.full()
    explained = here.explain()
    assert explained.reason is Reason.NOT_CONNECTED
    assert f"its leader b:9092 (node 1) is not connected, {said}" in str(explained)
    assert explained.next_event_ms == (None if next_event is None else pytest.approx(next_event))


def test_throttled() -> None:
    here = Scene(Link(throttled_until=103.4))
    here.full()
    explained = here.explain()
    assert explained.reason is Reason.THROTTLED
    assert explained.next_event_ms == pytest.approx(3400)
    assert "b:9092 (node 1) throttles this client for another 3.4 s" in str(explained)


def test_the_connection_is_full() -> None:
    here = Scene(Link(requests=5))
    here.full()
    assert here.explain().reason is Reason.CONNECTION_WINDOW
    assert "has 5 requests that it has not answered yet" in str(here.explain())
    here.client.links[1] = Link(reads=False)
    assert here.explain().reason is Reason.SOCKET
    assert "does not read" in str(here.explain())


def test_a_small_batch_grows_while_the_broker_is_at_work() -> None:
    here = Scene(Link(requests=1))
    here.full()
    window = here.lines.of(1).window
    window.connected(0.001)
    window.sent(200, 200, here.loop.now)
    window.answered(0.02, 200, work=200)
    window.sent(200, 200, here.loop.now)
    assert here.explain().reason is Reason.CONNECTION_WINDOW
    assert "takes 20 ms for an answer, of which 1 ms are for the way" in str(here.explain())
    here.loop.now += 0.05
    assert here.explain().reason is Reason.READY


def test_more_requests_would_not_be_answered_in_time() -> None:
    here = Scene(Link(requests=1))
    here.full()
    assert here.explain().reason is Reason.READY
    here.lines.of(1).timely.timed_out()
    assert here.explain().reason is Reason.CONNECTION_WINDOW
    assert "has 1 request that it has not answered yet; as its answers took long" in str(here.explain())
    assert "within request.timeout.ms=" in str(here.explain())


def test_a_batch_too_large_for_its_line_lets_smaller_ones_go_first() -> None:
    here = Scene()
    here.full()
    here.lines.of(here.queue.leader).limit.timed_out(60, 70.0, 100.0)
    explained = here.explain()
    assert explained.reason is Reason.SLOW_LINE
    assert "have at most 30 since one was not answered within" in str(explained)


def test_a_retry_waits_for_its_back_off() -> None:
    here = Scene()
    batch = here.drained()
    batch.retry_at, batch.last_error = 100.25, "NOT_ENOUGH_REPLICAS"
    here.queue.insert_retry(batch)
    explained = here.explain()
    assert explained.reason is Reason.BACKOFF
    assert explained.next_event_ms == pytest.approx(250)
    assert (explained.attempts, explained.last_error) == (1, "NOT_ENOUGH_REPLICAS")
    assert "it is tried again in 250 ms (retry.backoff.ms), after 1 attempt: NOT_ENOUGH_REPLICAS" in str(explained)


def test_in_flight() -> None:
    here = Scene()
    batch = here.drained()
    batch.in_flight = True
    here.queue.in_flight = 1
    here.loop.now += 3
    explained = here.explain()
    assert (explained.reason, explained.batches, explained.in_flight) == (Reason.IN_FLIGHT, 1, 1)
    assert explained.next_event_ms == pytest.approx(27_000)
    assert "not been answered by b:9092 (node 1) for 3.0 s" in str(explained)
    batch.sent_to = 9  # a node that has left the cluster since
    assert "not been answered by node 9" in str(here.explain())


def test_the_windows() -> None:
    here = Scene()
    here.sequences.window = 1
    first = here.drained()
    first.in_flight = True
    here.queue.in_flight = 1
    here.full()
    explained = here.explain()
    assert (explained.reason, explained.batches, explained.in_flight) == (Reason.WINDOW, 2, 1)
    assert "window of 1 batches is full: 1 of them are not resolved" in str(explained)
    here.sequences.known_id = -1
    assert "first batch under this producer id must be in the log" in str(here.explain())
    here.sequences.break_off()
    assert here.explain().reason is Reason.RECOVERY
    assert "1 batch has to end" in str(here.explain())
    here.config = producer_config({"bootstrap.servers": "b:1", "max.in.flight.requests.per.connection": 1})
    assert here.explain().reason is Reason.ORDER


@pytest.mark.parametrize(
    ("window", "link", "why"),
    [
        (20, {}, "announced by node 1"),
        (5, {}, "the default until node 1 announces another"),
        (5, {"produce_version": 13}, "as node 1 is a broker before KIP-1269"),
        (5, {"state": LinkState.IDLE, "produce_version": -1}, "the default until node 1 announces another"),
    ],
)
def test_an_explanation_says_where_the_in_flight_window_comes_from(window: int, link: dict[str, Any], why: str) -> None:
    here = Scene(Link(**link))
    here.config = producer_config({"bootstrap.servers": "b:1", "max.in.flight.requests.per.connection": 30})
    here.sequences.window = window
    here.drained()
    explained = here.explain()
    assert (explained.unresolved, explained.window, explained.window_source) == (1, window, why)
    assert f"in-flight window 1/{window} ({why})" in str(explained)


def test_a_window_beyond_what_a_connection_may_have() -> None:
    here = Scene()
    here.sequences.window = 20
    here.config = producer_config({"bootstrap.servers": "b:1", "max.in.flight.requests.per.connection": 7})
    assert here.explain().window_source == "announced by node 1, but max.in.flight.requests.per.connection=7"


def test_no_producer_id() -> None:
    here = Scene()
    here.full()
    here.ids.current = None
    assert here.explain().reason is Reason.PRODUCER_ID
    assert "it has been asked for" in str(here.explain())
    here.client.trouble = "no broker can be reached: refused"
    assert "no broker can be reached: refused" in str(here.explain())
    here.source.last_error = KafkaError("not allowed")
    assert here.explain().obstacles[0].last_error == "not allowed"


def test_the_first_obstacle_is_named_first() -> None:
    here = Scene(Link(state=LinkState.CONNECTING))
    here.append()
    here.ids.current = None
    reasons = [obstacle.reason for obstacle in here.explain().obstacles]
    assert reasons == [Reason.LINGER, Reason.NOT_CONNECTED, Reason.PRODUCER_ID]
    assert "(then: its leader b:9092" in str(here.explain())
    here.queue.due = True
    reasons = [obstacle.reason for obstacle in here.explain().obstacles]
    assert reasons == [Reason.NOT_CONNECTED, Reason.PRODUCER_ID]


def test_records_that_wait_for_metadata() -> None:
    here = Scene()
    here.park("new")
    here.loop.now += 5
    here.park("new", 3)
    here.park("other")
    explained = here.explain("new")
    assert (explained.reason, explained.parked, explained.parked_bytes) == (Reason.METADATA, 1, 70)
    assert (explained.parked_ms, explained.next_event_ms) == (5000, 55_000)
    assert "1 record of 70 bytes waits for metadata of topic 'new', the oldest for 5.0 s" in str(explained)
    assert here.explain("new", 3).parked == 2


def test_records_that_wait_for_a_partition() -> None:
    here = Scene()
    here.park("t", 3)
    explained = here.explain("t", 3)
    assert explained.reason is Reason.PARTITION
    assert "the topic has 1" in str(explained)


def test_records_that_wait_for_memory() -> None:
    here = Scene()
    here.full()
    here.full()
    here.park("t")
    explained = here.explain()
    assert [obstacle.reason for obstacle in explained.obstacles] == [Reason.READY, Reason.MEMORY]
    assert "of buffer.memory=4000 bytes hold records" in str(explained)


def test_a_producer_that_has_failed() -> None:
    explained = Scene().explain(fatal=KafkaError("broken"))
    assert explained.reason is Reason.FAILED
    assert "the producer has failed: broken" in str(explained)


# Metadata


@pytest.mark.parametrize(
    ("trouble", "failures", "last_error", "said"),
    [
        ("no broker can be reached: refused", {}, None, "no broker can be reached: refused"),
        ("", {}, None, "the brokers have not answered yet"),
        ("", {}, NetworkException("cut off"), "metadata cannot be had: cut off"),
        ("", {"t": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 3)}, None, "3 times that it does not exist"),
        ("", {"t": (ErrorCode.LEADER_NOT_AVAILABLE, 2)}, None, "answered LEADER_NOT_AVAILABLE 2 times"),
    ],
)
def test_a_missing_topic_is_explained_by_the_clients_state(
    trouble: str, failures: Any, last_error: KafkaError | None, said: str
) -> None:
    client: Any = Client(Link())
    client.trouble, client.metadata.failures, client.metadata_error = trouble, failures, last_error
    assert said in why_no_metadata(client, "t")
    late = no_metadata(client, WaitHistory(), "t", 10.0, 70.0)
    assert "no metadata for topic 't' within max.block.ms (60000 ms)" in str(late)
    assert said in str(late)
    assert sum(entry.seconds for entry in late.ledger) == 60


# In a producer


@asynccontextmanager
async def running(partitions: int = 1, **config: Any) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer]]:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", partitions)
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            yield cluster, producer
            await producer.close(timeout=0)


def shares(late: Any) -> dict[str, float]:
    assert isinstance(late, TimeoutException)
    return {entry.cause: entry.seconds for entry in late.ledger}


@virtual
async def test_a_links_reason_is_why_it_takes_nothing(world: World) -> None:
    async with running(max_in_flight_requests_per_connection=2, partitions=3) as (cluster, producer):
        _ = await producer.send("t", b"v")
        client = parts_of(producer).client
        link = client.links.get(0)
        assert link is not None
        seen = set()

        def look() -> None:
            now = asyncio.get_running_loop().time()
            reason = link_reason(link, now)
            assert (reason is None) is link.can_send(now)
            seen.add(reason)

        look()
        cluster.broker.always(ApiKey.PRODUCE, never())
        for partition in range(3):
            _ = producer.send("t", b"v", partition=partition)
            await asyncio.sleep(0.1)
            look()
        link.throttle(1000)
        look()
        link.disconnect(NetworkException("test"))
        look()
        assert seen == {None, Reason.CONNECTION_WINDOW, Reason.THROTTLED, Reason.NOT_CONNECTED}


@virtual
async def test_explaining_a_producer(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        producer = make_producer(cluster.bootstrap_servers, linger_ms=1000)
        with pytest.raises(IllegalStateException):
            producer.explain("t", 0)
        async with producer:
            delivery = producer.send("t", b"v")
            assert producer.explain("t", 0).reason is Reason.METADATA
            await producer.partitions_for("t")
            await asyncio.sleep(0.1)
            assert producer.explain("t", 0).reason is Reason.LINGER
            cluster.broker.script(ApiKey.PRODUCE, never())
            await cluster.broker.received(ApiKey.PRODUCE)
            assert producer.explain("t", 0).reason is Reason.IN_FLIGHT
            _ = await delivery
            assert producer.explain("t", 0).reason is Reason.NOTHING
            for topic, partition in (("", 0), ("t", -1), ("t", "0")):
                with pytest.raises(IllegalArgumentException):
                    producer.explain(topic, partition)  # type: ignore[arg-type]
        assert producer.explain("t", 0).reason is Reason.NOTHING


@virtual
async def test_a_time_out_tells_what_its_time_was_spent_on(world: World) -> None:
    async with running(linger_ms=1000, delivery_timeout_ms=100_000) as (cluster, producer):
        _ = await producer.send("t", b"before")
        cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS))
        delivery = producer.send("t", b"v")
        await asyncio.sleep(11)
        await cluster.stop_node(0)
        await asyncio.sleep(30)
        await cluster.start_node(0)
        late = await end_of(delivery)
        spent = shares(late)
        assert sum(spent.values()) == pytest.approx(100, abs=0.01)
        assert spent["linger"] == pytest.approx(1, abs=0.01)
        assert spent["leader not connected"] == pytest.approx(30, abs=0.5)
        assert spent["NOT_ENOUGH_REPLICAS"] == pytest.approx(69, abs=1)
        assert "1.0 s linger, " in str(late)
        assert " NOT_ENOUGH_REPLICAS x" in str(late)


@virtual
async def test_batches_behind_one_that_is_not_answered(world: World) -> None:
    async with running(
        delivery_timeout_ms=100_000,
        request_timeout_ms=90_000,
        max_in_flight_requests_per_connection=2,
        batch_size=1,
    ) as (cluster, producer):
        _ = await producer.send("t", b"before")
        cluster.broker.always(ApiKey.PRODUCE, never())
        deliveries = [producer.send("t", b"%d" % n) for n in range(3)]
        first, _, third = [await end_of(delivery) for delivery in deliveries]
        assert shares(first)["NETWORK_EXCEPTION"] == pytest.approx(90, abs=1)
        assert shares(third)["connection's window full"] == pytest.approx(100, abs=1)


@virtual
async def test_no_metadata_and_no_memory_tell_their_time_too(world: World) -> None:
    async with running(max_block_ms=60_000, delivery_timeout_ms=600_000, buffer_memory=3000, batch_size=1000) as (
        cluster,
        producer,
    ):
        parked = producer.send("nosuch", b"v")
        cluster.broker.always(ApiKey.METADATA, error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        spent = shares(await end_of(parked))
        assert spent["UNKNOWN_TOPIC_OR_PARTITION"] == pytest.approx(60, abs=1)
        assert sum(spent.values()) == pytest.approx(60, abs=0.01)
        with pytest.raises(TimeoutException) as raised:
            await producer.partitions_for("nosuch")
        assert sum(shares(raised.value).values()) == pytest.approx(60, abs=0.01)
        cluster.broker.always(ApiKey.METADATA, None)
        _ = await producer.send("t", b"before")
        cluster.broker.always(ApiKey.PRODUCE, never())
        _ = producer.send("t", b"holds it all")
        await cluster.broker.received(ApiKey.PRODUCE, 2)
        full = await end_of(producer.send("t", b"v"))
        assert isinstance(full, BufferExhaustedException)
        assert shares(full) == {"no memory": pytest.approx(60, abs=0.01)}
