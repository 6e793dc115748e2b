from __future__ import annotations

import asyncio
import socket
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest

from aioproducer import Delivery, KafkaProducer
from aioproducer.errors import NetworkException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.codec import STEP
from aioproducer.protocol.messages.produce import BatchIndexAndErrorMessage
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Network, NetworkFaults
from aioproducer.testing.simulation.network.transport import FakeSocket
from aioproducer.testing.simulation.trace import Trace
from tests.support.inside import parts_of
from tests.support.producing import all_memory_free, make_producer
from tests.support.scripted_broker import ScriptedCluster, Step, drop, edited, error, raw
from tests.support.turns import Turns
from tests.support.turns import shortest_turns as shortest_turns
from tests.support.virtual_time import World, virtual

PARTITIONS = 12

pytestmark = pytest.mark.usefixtures("shortest_turns")


class Ends:
    """Sends a record to each partition in one request, and notes how each ends, and in which turn of the loop."""

    def __init__(self, producer: KafkaProducer[Any, Any], at_end: Callable[[int], object] = lambda count: None) -> None:
        self.turn: list[int] = []
        self.kinds: Counter[str] = Counter()
        self._turns = Turns()
        self._at_end = at_end
        self.deliveries = [producer.send("t", b"v", partition=partition) for partition in range(PARTITIONS)]
        for delivery in self.deliveries:
            delivery.add_done_callback(self._ended)

    def _ended(self, delivery: Delivery) -> None:
        self.turn.append(self._turns.count)
        problem = delivery.exception()
        self.kinds["" if problem is None else type(problem).__name__] += 1
        self._at_end(len(self.turn))

    async def all(self, producer: KafkaProducer[Any, Any]) -> None:
        await producer.flush()
        self._turns.stop()
        assert len(self.turn) == PARTITIONS


async def one_request(cluster: ScriptedCluster, **config: Any) -> KafkaProducer[Any, Any]:
    """A producer that sends the records in one request."""
    cluster.create_topic("t", PARTITIONS)
    producer = make_producer(cluster.bootstrap_servers, **{"linger_ms": 50, **config})
    await producer.start()
    _ = await producer.partitions_for("t")
    return producer


def refuse(*partitions: int) -> Callable[[Any], object]:
    def edit(response: Any) -> None:
        for topic in response.responses:
            for partition in topic.partition_responses:
                if partition.index in partitions:
                    partition.error_code, partition.base_offset = ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1

    return edit


FAILING: Final[dict[str, tuple[Step, dict[str, Any], str]]] = {
    "refused": (error(ErrorCode.TOPIC_AUTHORIZATION_FAILED), {}, "TopicAuthorizationException"),
    "connection lost": (drop(), {"retries": 0, "enable_idempotence": False}, "NetworkException"),
}
"""What the broker does, configs with which batches fail at once then, and the error."""


@virtual
@pytest.mark.parametrize("how", FAILING)
async def test_the_loop_has_turns_while_batches_fail(world: World, how: str) -> None:
    step, config, kind = FAILING[how]
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster, **config)
        cluster.broker.script(ApiKey.PRODUCE, step)
        ends = Ends(producer)
        await ends.all(producer)
        assert cluster.broker.count(ApiKey.PRODUCE) == 1
        assert len(set(ends.turn)) == PARTITIONS
        assert ends.kinds == {kind: PARTITIONS}
        assert all_memory_free(producer)
        await producer.close()


@virtual
async def test_batches_that_succeed_end_in_one_turn(world: World) -> None:
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster)
        ends = Ends(producer)
        await ends.all(producer)
        assert len(set(ends.turn)) == 1
        cluster.broker.script(ApiKey.PRODUCE, edited(refuse(3, 7)))
        ends = Ends(producer)
        await ends.all(producer)
        assert len(set(ends.turn)) == 3, "a turn ends with a batch that fails"
        await producer.close()


@virtual
async def test_retries_wait_in_order_while_the_loop_has_turns(world: World) -> None:
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster)
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS))
        ends = Ends(producer)
        for number in range(5):
            await asyncio.sleep(0.05)
            for partition in range(PARTITIONS):
                _ = producer.send("t", b"%d" % number, partition=partition)
        await ends.all(producer)
        for partition in range(PARTITIONS):
            assert cluster.values("t", partition) == [b"v", b"0", b"1", b"2", b"3", b"4"]
        await producer.close()


@virtual
async def test_a_connection_that_ends_among_the_batches_of_an_answer_changes_nothing_for_the_rest(world: World) -> None:
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster)
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))

        def disconnect(count: int) -> None:
            if count == 3:
                parts_of(producer).client.links[0].disconnect(NetworkException("in the middle"))

        ends = Ends(producer, disconnect)
        await ends.all(producer)
        assert ends.kinds == {"TopicAuthorizationException": PARTITIONS}
        assert len(set(ends.turn)) == PARTITIONS
        assert cluster.broker.count(ApiKey.PRODUCE) == 1
        assert all_memory_free(producer)
        await producer.close()


@virtual
@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("appended", [True, False])
async def test_the_batches_of_a_lost_connection_are_sent_again_in_order(
    world: World, appended: bool, idempotent: bool
) -> None:
    async with ScriptedCluster() as cluster:
        most = {} if idempotent else {"max_in_flight_requests_per_connection": 1}
        producer = await one_request(cluster, enable_idempotence=idempotent, **most)
        cluster.broker.script(ApiKey.PRODUCE, drop(appended=appended), drop(appended=appended))
        ends = Ends(producer)
        for number in range(5):
            await asyncio.sleep(0.06)
            for partition in range(PARTITIONS):
                _ = producer.send("t", b"%d" % number, partition=partition)
        await ends.all(producer)
        for partition in range(PARTITIONS):
            values = cluster.values("t", partition)
            assert (values if idempotent else list(dict.fromkeys(values))) == [b"v", b"0", b"1", b"2", b"3", b"4"]
        assert all_memory_free(producer)
        await producer.close()


@virtual
@pytest.mark.parametrize("after", range(1, 4))
async def test_what_was_answered_counts_when_the_producer_is_closed_meanwhile(world: World, after: int) -> None:
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster)
        cluster.broker.script(ApiKey.PRODUCE, edited(refuse(*range(0, PARTITIONS, 2))))
        closing: list[asyncio.Task[None]] = []

        def close(count: int) -> None:
            if count == after:
                closing.append(asyncio.get_running_loop().create_task(producer.close(0)))

        ends = Ends(producer, close)
        await ends.all(producer)
        await closing[0]
        assert ends.kinds == {"": PARTITIONS // 2, "TopicAuthorizationException": PARTITIONS // 2}
        assert all_memory_free(producer)


@virtual
@pytest.mark.parametrize("how", FAILING)
async def test_a_producer_that_is_closed_while_batches_fail_ends_each_once(world: World, how: str) -> None:
    step, config, _ = FAILING[how]
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster, **config)
        cluster.broker.script(ApiKey.PRODUCE, step)
        closing: list[asyncio.Task[None]] = []

        def close(count: int) -> None:
            if count == 3:
                closing.append(asyncio.get_running_loop().create_task(producer.close(0)))

        ends = Ends(producer, close)
        await ends.all(producer)
        await closing[0]
        assert all_memory_free(producer)


@virtual
async def test_a_crash_among_the_batches_of_an_answer_leaves_nothing_unended(world: World) -> None:
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster)
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))

        def crash(count: int) -> None:
            if count == 3:
                parts_of(producer).supervisor.crash(ValueError("a bug"))

        ends = Ends(producer, crash)
        await ends.all(producer)
        assert ends.kinds["TopicAuthorizationException"] == 3
        assert ends.kinds["KafkaError"] + ends.kinds["DeliveryError"] == PARTITIONS - 3
        await asyncio.sleep(1)  # the answer is handled to its end
        assert all_memory_free(producer)
        await producer.close()


@virtual
async def test_what_was_answered_together_with_a_fatal_error_counts(world: World) -> None:
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster, transactional_id="x")
        await producer.init_transactions()
        await producer.begin_transaction()

        def fence(response: Any) -> None:
            response.responses[0].partition_responses[3].error_code = ErrorCode.PRODUCER_FENCED

        cluster.broker.script(ApiKey.PRODUCE, edited(fence))
        ends = Ends(producer)
        await ends.all(producer)
        assert ends.kinds == {"ProducerFencedException": 1, "": PARTITIONS - 1}
        await producer.close()


@virtual
async def test_a_large_answer_is_read_in_turns(world: World) -> None:
    """Brokers say something about each record that they refuse."""
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster)

        async def turns_until_refused(times: int) -> int:
            def refuse_all(response: Any) -> None:
                for partition in response.responses[0].partition_responses:
                    partition.error_code, partition.base_offset = ErrorCode.INVALID_RECORD, -1
                    partition.record_errors = [BatchIndexAndErrorMessage(0, "no key, " * 10)] * times

            cluster.broker.script(ApiKey.PRODUCE, edited(refuse_all))
            ends = Ends(producer)
            delivery = ends.deliveries[0]
            await ends.all(producer)
            assert ends.kinds == {"InvalidRecordException": PARTITIONS}
            assert "no key" in str(delivery.exception())
            return min(ends.turn)

        few = await turns_until_refused(1)
        assert await turns_until_refused(500) > few + PARTITIONS * 500 * 80 // STEP, "a turn after each step"
        assert all_memory_free(producer)
        await producer.close()


@virtual
async def test_a_large_answer_that_is_none_ends_the_connection(world: World) -> None:
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster)
        cluster.broker.script(ApiKey.PRODUCE, raw((100_000).to_bytes(4, "big") + b"\0\0\0\x05" + b"\xff" * 99_996))
        ends = Ends(producer)
        await ends.all(producer)
        assert ends.kinds == {"": PARTITIONS}
        assert cluster.broker.count(ApiKey.PRODUCE) == 2
        await producer.close()


@virtual
async def test_a_fatal_error_among_the_batches_of_an_answer_fails_all_of_them(world: World) -> None:
    async with ScriptedCluster() as cluster:
        producer = await one_request(cluster, transactional_id="x")
        await producer.init_transactions()
        await producer.begin_transaction()
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.PRODUCER_FENCED))
        ends = Ends(producer)
        await ends.all(producer)
        assert cluster.broker.count(ApiKey.PRODUCE) == 1
        assert set(ends.kinds) == {"ProducerFencedException"}
        await asyncio.sleep(0.1)  # batches given up under way keep their memory until their request has ended
        assert all_memory_free(producer)
        await producer.close()


async def stream(size: int, **config: Any) -> None:
    """Fills requests for a second or two, over a connection that has carried nothing yet."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 16)
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            for number in range(size // 10_000):
                _ = await producer.enqueue("t", bytes(10_000), partition=number % 16)


@pytest.mark.parametrize(
    ("line", "config", "sizes"),
    [
        (Conditions(bandwidth=1e9, latency=0.0001, window=1 << 20), {}, [262144, 524288]),
        (Conditions(bandwidth=3e7, latency=0.05, window=4 << 20), {}, [262144, 524288]),
        (Conditions(bandwidth=1e6, latency=0.001), {}, []),
        (Conditions(bandwidth=1e9, latency=0.0001), {"acks": 0, "enable_idempotence": False}, []),
        (Conditions(bandwidth=1e9, latency=0.0001), {"send_buffer_bytes": 65536}, []),
        (Conditions(bandwidth=1e9, latency=0.0001), {"send_buffer_bytes": 131072}, []),
        (Conditions(bandwidth=1e9, latency=0.0001), {"send_buffer_bytes": -1}, []),
    ],
    ids=["fast", "long", "slow", "acks=0", "given", "given as in Kafka", "the system's"],
)
def test_a_fast_line_gets_a_larger_send_buffer(
    line: Conditions, config: dict[str, Any], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: defaultdict[FakeSocket, list[object]] = defaultdict(list)

    def setsockopt(self: FakeSocket, level: int, name: int, value: object) -> None:
        if (level, name) == (socket.SOL_SOCKET, socket.SO_SNDBUF):
            seen[self].append(value)

    monkeypatch.setattr(FakeSocket, "setsockopt", setsockopt)
    network = Network(Random(0), line, NetworkFaults(), Trace())
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(Random(0), network)) as runner:
        runner.run(stream(5_000_000, **config))
    first = config.get("send_buffer_bytes", 131072)
    wanted = [first, *sizes] if first >= 0 else []
    assert max(seen.values(), key=len, default=[]) == wanted
    assert all(one == wanted[: len(one)] for one in seen.values()), "it is not given back in between"
