"""Transactions of the producer, against the embedded broker, in both protocols."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from aioproducer import DeliveryError, KafkaProducer, TopicPartition, wait_all
from aioproducer.errors import (
    ConfigException,
    IllegalStateException,
    InvalidProducerEpochException,
    InvalidTxnStateException,
    InvalidTxnTimeoutException,
    ProducerFencedException,
    TimeoutException,
    TransactionAbortableException,
    TransactionAbortedException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from tests.support.fencing import NEWER, WAYS, Way, check_fenced
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, end_of, make_producer
from tests.support.scripted_broker import Held, ScriptedCluster, drop, edited, error
from tests.support.transactional import PROTOCOLS, a_cluster, all_stable, committed, set_code, transactional
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


async def test_transaction_calls_are_timed_as_kafka_does() -> None:
    async with a_cluster() as cluster, transactional(cluster) as producer:
        with pytest.raises(IllegalStateException):
            await producer.commit_transaction()
        names = [f"txn-{call}-time-ns-total" for call in ("init", "begin", "send-offsets", "commit", "abort")]
        assert [producer.metrics()[name] for name in names] == [0.0] * 5, "what fails is not counted"
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "group")
        await producer.begin_transaction()
        await producer.abort_transaction()
        assert all(producer.metrics()[name] > 0 for name in names)


@PROTOCOLS
async def test_a_record_that_waits_for_a_place_taken_by_the_coordinators_answer_goes_out_with_it(protocol: int) -> None:
    """Nobody but the answer can tell that there is room: otherwise it would wait until its time is over."""
    one: dict[str, Any] = {"max_in_flight_requests_per_connection": 1, "linger_ms": 0}
    async with a_cluster(protocol) as cluster, transactional(cluster, **one) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            _ = await producer.send("t", b"first", partition=0)
            held = Held()
            cluster.broker.script(ApiKey.TXN_OFFSET_COMMIT, held)
            offsets = asyncio.create_task(producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g"))
            await cluster.broker.received(ApiKey.TXN_OFFSET_COMMIT)
            second = producer.send("t", b"second", partition=0)
            await asyncio.sleep(0.01)
            held.release()
            await offsets
            assert (await second).offset == 1


@PROTOCOLS
async def test_committed_and_aborted_transactions(protocol: int) -> None:
    async with a_cluster(protocol) as cluster:
        async with transactional(cluster) as producer:
            await producer.init_transactions()
            for number in range(9):
                await producer.begin_transaction()
                deliveries = [producer.send("t", b"%d %d" % (number, i), partition=i % 3) for i in range(6)]
                if number % 3:
                    await producer.commit_transaction()
                    assert all(delivery.done() for delivery in deliveries)
                else:
                    await wait_all(deliveries[:3])
                    await producer.abort_transaction()
            assert all_memory_free(producer)
        expected = [b"%d %d" % (number, i) for number in (1, 2, 4, 5, 7, 8) for i in range(6)]
        assert sorted(value or b"" for value in committed(cluster)) == sorted(expected)
        assert all_stable(cluster)


@PROTOCOLS
async def test_the_block_commits(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        for number in range(3):
            async with producer.transaction() as same:
                assert same is producer
                _ = producer.send("t", b"%d" % number, partition=0)
        assert committed(cluster) == [b"0", b"1", b"2"]


@PROTOCOLS
async def test_the_block_aborts_when_it_raises(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()

        async def fail() -> None:
            async with producer.transaction():
                await producer.send("t", b"sent", partition=0)
                raise LookupError("of the user")

        with pytest.raises(LookupError, match="of the user"):
            await fail()
        async with producer.transaction():
            _ = producer.send("t", b"kept", partition=0)
        assert committed(cluster) == [b"kept"]
        assert cluster.values("t") == [b"sent", b"kept"]


async def test_a_transaction_begins_when_an_abort_that_nobody_waits_for_has_ended() -> None:
    async with a_cluster() as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        held = Held()
        cluster.broker.script(ApiKey.END_TXN, held)

        with anyio.CancelScope() as scope:
            async with producer.transaction():
                await producer.send("t", b"aborted", partition=0)
                scope.cancel()
                await anyio.sleep_forever()
        assert scope.cancelled_caught
        impatient = asyncio.create_task(producer.begin_transaction())
        await cluster.broker.received(ApiKey.END_TXN)
        impatient.cancel()
        await asyncio.wait([impatient])
        assert impatient.cancelled()
        beginning = asyncio.create_task(producer.begin_transaction())
        await asyncio.sleep(0.01)
        assert not beginning.done()
        with pytest.raises(IllegalStateException, match="abort_transaction has not ended"):
            await producer.commit_transaction()
        held.release()
        await beginning
        await producer.send("t", b"committed", partition=0)
        await producer.commit_transaction()
        assert committed(cluster) == [b"committed"]
        assert all_stable(cluster)


async def test_an_abort_that_takes_too_long_keeps_the_next_transaction_from_beginning() -> None:
    async with a_cluster() as cluster, transactional(cluster, max_block_ms=500) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("t", b"aborted", partition=0)
        held = Held()
        cluster.broker.script(ApiKey.END_TXN, held)
        with pytest.raises(TimeoutException, match="abort_transaction has not ended"):
            await producer.abort_transaction()
        with pytest.raises(TimeoutException, match="abort_transaction has not ended"):
            await producer.begin_transaction()
        held.release()
        async with producer.transaction():
            await producer.send("t", b"committed", partition=0)
        assert committed(cluster) == [b"committed"]


async def test_a_cancelled_block_aborts() -> None:
    async with a_cluster() as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        sent = asyncio.Event()

        async def work() -> None:
            async with producer.transaction():
                await producer.send("t", b"sent", partition=0)
                sent.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await sent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert all_stable(cluster)
        assert committed(cluster) == []
        assert [request.committed for request in cluster.broker.sent(ApiKey.END_TXN)] == [False]


@PROTOCOLS
async def test_a_commit_that_was_asked_for_is_never_followed_by_an_abort(protocol: int) -> None:
    """Whoever awaits is cancelled while EndTxn has no answer yet (KAFKA-17754)."""
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        held = Held()
        cluster.broker.always(ApiKey.END_TXN, held)

        async def work() -> None:
            async with producer.transaction():
                _ = producer.send("t", b"a", partition=0)

        task = asyncio.create_task(work())
        await cluster.broker.received(ApiKey.END_TXN)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(IllegalStateException, match="commit_transaction has not ended"):
            await producer.begin_transaction()
        cluster.broker.always(ApiKey.END_TXN, None)
        held.release()
        await producer.commit_transaction()  # waits for the end of the same one
        async with producer.transaction():
            _ = producer.send("t", b"b", partition=0)
        assert committed(cluster) == [b"a", b"b"]


@virtual
async def test_a_commit_that_takes_too_long_goes_on(world: World) -> None:
    async with a_cluster() as cluster, transactional(cluster, max_block_ms=100) as producer:
        await producer.init_transactions()
        held = Held()
        cluster.broker.always(ApiKey.END_TXN, held)
        await producer.begin_transaction()
        _ = producer.send("t", b"a", partition=0)
        with pytest.raises(TimeoutException, match=r"commit_transaction has not ended within max\.block\.ms=100"):
            await producer.commit_transaction()
        held.release()
        cluster.broker.always(ApiKey.END_TXN, None)
        await producer.commit_transaction()
        assert committed(cluster) == [b"a"]


@PROTOCOLS
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_the_older_of_two_producers_is_fenced(way: Way, protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as older, transactional(cluster) as newer:
        await check_fenced(way, older, newer, "t")
        assert committed(cluster) == [NEWER]
        assert all_stable(cluster)


@PROTOCOLS
@virtual
async def test_a_transaction_of_which_a_record_failed_must_be_aborted(world: World, protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster, max_block_ms=300) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        lost = producer.send("t", b"no such partition", partition=7)
        fine = producer.send("t", b"fine", partition=0)
        assert isinstance(await end_of(lost), DeliveryError)
        with pytest.raises(IllegalStateException, match="must be aborted"):
            _ = producer.send("t", b"more", partition=0)
        with pytest.raises(TransactionAbortableException, match="partition 7"):
            await producer.commit_transaction()
        await producer.abort_transaction()
        await end_of(fine)
        async with producer.transaction():
            _ = producer.send("t", b"next", partition=0)
        assert committed(cluster) == [b"next"]


@PROTOCOLS
async def test_a_batch_refused_for_good_fails_the_transaction_and_not_the_producer(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.INVALID_RECORD))
        with pytest.raises(TransactionAbortableException, match="INVALID_RECORD"):
            async with producer.transaction():
                _ = producer.send("t", b"bad", partition=0)
        async with producer.transaction():
            _ = producer.send("t", b"good", partition=0)
        assert committed(cluster) == [b"good"]


async def test_unsent_records_fail_when_their_transaction_is_aborted() -> None:
    async with a_cluster() as cluster, transactional(cluster, linger_ms=2000) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        delivery = producer.send("t", b"lingers", partition=0)
        await producer.abort_transaction()
        failed = await end_of(delivery)
        assert isinstance(failed, DeliveryError)
        assert isinstance(failed, TransactionAbortedException)
        assert failed.outcome.value == "not_sent"
        assert cluster.values("t") == []


async def test_a_commit_overrides_linger() -> None:
    async with a_cluster() as cluster, transactional(cluster, linger_ms=5000) as producer:
        await producer.init_transactions()
        async with asyncio.timeout(4):
            async with producer.transaction():
                _ = producer.send("t", b"a", partition=0)
        assert committed(cluster) == [b"a"]


@PROTOCOLS
async def test_a_batch_that_is_too_large_is_split_within_its_transaction(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster, linger_ms=50) as producer:
        cluster.create_topic("small", 1, configs={"max.message.bytes": 1000})
        await producer.init_transactions()
        values = [b"%d" % number + bytes(300) for number in range(20)]
        for _ in range(2):
            async with producer.transaction():
                for value in values:
                    _ = producer.send("small", value)
        assert committed(cluster, "small") == values * 2


@PROTOCOLS
async def test_a_record_that_is_too_large_fails_its_transaction(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster, max_request_size=1000) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        assert isinstance(await end_of(producer.send("t", bytes(2000))), DeliveryError)
        with pytest.raises(TransactionAbortableException, match=r"max\.request\.size"):
            await producer.commit_transaction()
        await producer.abort_transaction()


TROUBLES = {
    "dropped before": drop(),
    "dropped after": drop(appended=True),
    "not the coordinator": edited(lambda response: set_code(response, ErrorCode.NOT_COORDINATOR)),
    "being loaded": edited(lambda response: set_code(response, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)),
    "still busy": edited(lambda response: set_code(response, ErrorCode.CONCURRENT_TRANSACTIONS)),
}


@PROTOCOLS
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize(
    "api",
    [
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.END_TXN,
        ApiKey.FIND_COORDINATOR,
    ],
    ids=lambda api: api.name,
)
async def test_a_passing_trouble_of_the_coordinator(protocol: int, trouble: str, api: ApiKey) -> None:
    async with a_cluster(protocol) as cluster:
        if api is not ApiKey.FIND_COORDINATOR or trouble.startswith("dropped"):
            cluster.broker.script(api, TROUBLES[trouble])
        async with transactional(cluster) as producer:
            await producer.init_transactions()
            for number in range(3):
                async with producer.transaction():
                    _ = producer.send("t", b"%d" % number, partition=0)
                    await producer.send_offsets_to_transaction({TopicPartition("t", 1): number}, "g")
        assert committed(cluster) == [b"0", b"1", b"2"]
        assert all_stable(cluster)


@PROTOCOLS
async def test_offsets_are_committed_with_the_transaction(protocol: int) -> None:
    async with a_cluster(protocol, nodes=3) as cluster, transactional(cluster) as producer:
        offsets = cluster._transactions.offsets
        await producer.init_transactions()
        async with producer.transaction():
            await producer.send_offsets_to_transaction({TopicPartition("t", 1): 5}, "g")
            assert offsets.committed("g") == {}
        assert offsets.committed("g")["t", 1].offset == 5
        await producer.begin_transaction()
        await producer.send_offsets_to_transaction({TopicPartition("t", 1): 9}, "g")
        await producer.abort_transaction()
        assert offsets.committed("g")["t", 1].offset == 5


@PROTOCOLS
async def test_offsets_of_several_tasks_are_all_committed(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await asyncio.gather(
                *(
                    producer.send_offsets_to_transaction({TopicPartition("t", partition): 10 + partition}, "g")
                    for partition in range(3)
                )
            )
        found = cluster._transactions.offsets.committed("g")
        assert [found["t", partition].offset for partition in range(3)] == [10, 11, 12]


async def test_close_ends_waiting_calls_with_an_error() -> None:
    async with a_cluster() as cluster:
        producer = transactional(cluster)
        await producer.start()
        await producer.init_transactions()
        await producer.begin_transaction()
        _ = producer.send("t", b"a", partition=0)
        cluster.broker.always(ApiKey.END_TXN, Held())
        waiting = asyncio.create_task(producer.commit_transaction())
        await cluster.broker.received(ApiKey.END_TXN)
        await producer.close(0.05)
        with pytest.raises(IllegalStateException, match="commit_transaction was given up"):
            await waiting


@virtual
async def test_an_abort_does_not_wait_for_offsets_that_nobody_takes(world: World) -> None:
    async with a_cluster() as cluster, transactional(cluster, max_block_ms=500) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        with pytest.raises(TimeoutException, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await producer.send_offsets_to_transaction({TopicPartition("unknown", 0): 1}, "g")
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")
        assert cluster._transactions.offsets.committed("g")["t", 0].offset == 1


@PROTOCOLS
async def test_an_empty_transaction_costs_the_coordinator_nothing(protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            pass
        await producer.begin_transaction()
        await producer.abort_transaction()
        assert cluster.broker.count(ApiKey.END_TXN) == 0


@PROTOCOLS
async def test_nodes_stop_and_come_back(protocol: int) -> None:
    async with a_cluster(protocol, nodes=3) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        for number in range(12):
            if number % 3 == 0:
                await cluster.stop_node(number // 3 % 3)
            async with producer.transaction():
                for partition in range(3):
                    _ = producer.send("t", b"%d" % number, partition=partition)
            if number % 3 == 0:
                await cluster.start_node(number // 3 % 3)
        assert committed(cluster) == [b"%d" % number for number in range(12)] * 3


@pytest.mark.parametrize(("protocol", "named"), [(1, 3), (2, 0)])
async def test_the_first_protocol_names_partitions_and_the_second_does_not(protocol: int, named: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            for i in range(30):
                _ = producer.send("t", b"%d" % i, partition=i % 3)
        sent = cluster.broker.sent(ApiKey.ADD_PARTITIONS_TO_TXN)
        assert sum(len(topic.partitions) for request in sent for topic in request.v3_and_below_topics) == named


class TestMisuse:
    async def test_records_outside_a_transaction(self) -> None:
        async with a_cluster() as cluster, transactional(cluster) as producer:
            with pytest.raises(IllegalStateException, match=r"init_transactions\(\) was not called"):
                _ = producer.send("t", b"a")
            await producer.init_transactions()
            with pytest.raises(IllegalStateException, match="no transaction has begun"):
                _ = await producer.enqueue("t", b"a")
            await producer.begin_transaction()
            with pytest.raises(IllegalStateException, match="a transaction is open"):
                await producer.begin_transaction()
            await producer.abort_transaction()
            with pytest.raises(IllegalStateException, match="no transaction has begun"):
                await producer.commit_transaction()

    async def test_without_a_transactional_id(self) -> None:
        async with a_cluster() as cluster, make_producer(cluster.bootstrap_servers) as producer:
            with pytest.raises(IllegalStateException, match=r"needs a transactional\.id"):
                await producer.init_transactions()

    @pytest.mark.parametrize(
        "config", [{"enable_idempotence": False}, {"acks": "1"}, {"retries": 0}, {"transactional_id": ""}]
    )
    def test_configs_that_transactions_need(self, config: dict[str, Any]) -> None:
        with pytest.raises(ConfigException, match=r"transactional\.id"):
            KafkaProducer(bootstrap_servers="localhost:1", **{"transactional_id": "x", **config})

    @pytest.mark.parametrize("timeout_ms", [0, -5])
    def test_a_timeout_that_no_broker_allows(self, timeout_ms: int) -> None:
        with pytest.raises(ConfigException, match=r"transaction\.timeout\.ms.* at least 1"):
            KafkaProducer(bootstrap_servers="localhost:1", transactional_id="x", transaction_timeout_ms=timeout_ms)

    async def test_more_than_five_requests_in_flight(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers="localhost:1", transactional_id="x", max_in_flight_requests_per_connection=20
        )
        assert producer.config.max_in_flight_requests_per_connection == 20

    async def test_a_timeout_that_the_broker_does_not_allow(self) -> None:
        async with a_cluster() as cluster, transactional(cluster, transaction_timeout_ms=900_001) as producer:
            with pytest.raises(InvalidTxnTimeoutException):
                await producer.init_transactions()


class TestATransactionThatIsOpenForTooLong:
    """The coordinator aborts it after transaction.timeout.ms; what comes of that depends on who hears of it first."""

    @PROTOCOLS
    @virtual
    async def test_a_commit_ends_the_producer(self, world: World, protocol: int) -> None:
        fatal = ProducerFencedException if protocol == 1 else InvalidTxnStateException
        async with a_cluster(protocol) as cluster, transactional(cluster, transaction_timeout_ms=50) as producer:
            await self._outlive(cluster, producer)
            for call in (producer.commit_transaction, producer.abort_transaction, producer.begin_transaction):
                with pytest.raises(fatal, match=r"transaction\.timeout\.ms"):
                    await call()
            assert committed(cluster) == []

    @PROTOCOLS
    @virtual
    async def test_offsets_end_the_producer(self, world: World, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster, transaction_timeout_ms=50) as producer:
            await self._outlive(cluster, producer)
            with pytest.raises(ProducerFencedException, match=r"transaction\.timeout\.ms"):
                await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")
            with pytest.raises(ProducerFencedException):
                await producer.abort_transaction()

    @pytest.mark.parametrize("record", [False, True])
    @virtual
    async def test_an_abort_gets_over_it_with_the_second_protocol(self, world: World, record: bool) -> None:
        async with a_cluster() as cluster, transactional(cluster, transaction_timeout_ms=50) as producer:
            await self._outlive(cluster, producer)
            if record:
                assert isinstance(await end_of(producer.send("t", b"late", partition=0)), InvalidProducerEpochException)
                with pytest.raises(TransactionAbortableException, match=r"longer than transaction\.timeout\.ms"):
                    await producer.commit_transaction()
            await producer.abort_transaction()
            async with producer.transaction():
                _ = producer.send("t", b"next", partition=0)
            assert committed(cluster) == [b"next"]

    @pytest.mark.parametrize("record", [False, True])
    @virtual
    async def test_an_abort_ends_the_producer_with_the_first_protocol(self, world: World, record: bool) -> None:
        async with a_cluster(1) as cluster, transactional(cluster, transaction_timeout_ms=50) as producer:
            await self._outlive(cluster, producer)
            if record:
                assert isinstance(await end_of(producer.send("t", b"late", partition=0)), InvalidProducerEpochException)
                with pytest.raises(TransactionAbortableException):
                    await producer.commit_transaction()
            with pytest.raises(ProducerFencedException, match=r"transaction\.timeout\.ms"):
                await producer.abort_transaction()

    async def _outlive(self, cluster: ScriptedCluster, producer: KafkaProducer) -> None:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("t", b"aborted", partition=0)
        await asyncio.sleep(1)
        assert all_stable(cluster)


async def test_close_aborts_what_is_open() -> None:
    async with a_cluster() as cluster:
        async with transactional(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
        assert all_stable(cluster)
        assert committed(cluster) == []


async def test_close_does_not_wait_for_a_coordinator_that_is_gone() -> None:
    async with a_cluster() as cluster:
        producer = transactional(cluster)
        await producer.start()
        await producer.init_transactions()
        await producer.begin_transaction()
        delivery = producer.send("t", b"a", partition=0)
        await cluster.stop_node(0)
        await producer.close(0.1)
        assert delivery.done()


@PROTOCOLS
@pytest.mark.parametrize("asked", [None, "commit_transaction", "abort_transaction"])
@virtual
async def test_close_waits_max_block_ms_for_a_coordinator_that_is_gone(
    world: World, asked: str | None, protocol: int
) -> None:
    """Without a time-out of its own it would wait for ever; what it leaves open the coordinator aborts."""
    async with a_cluster(protocol) as cluster:
        producer = transactional(cluster, max_block_ms=2000)
        await producer.start()
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("t", b"a", partition=0)
        await cluster.stop_node(0)
        waiting = None if asked is None else asyncio.create_task(getattr(producer, asked)())
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(60):
            await producer.close()
        assert 2 <= asyncio.get_running_loop().time() - began < 3
        if waiting is not None:
            with pytest.raises(TimeoutException, match="has not ended within max"):
                await waiting


async def test_closing_while_a_commit_that_has_failed_still_waits_for_a_record() -> None:
    async with a_cluster(nodes=2) as cluster, transactional(cluster) as producer:
        first, second = (cluster.brokers[cluster.leader("t", partition)] for partition in (0, 1))
        await producer.init_transactions()
        await producer.begin_transaction()
        held = Held()
        first.script(ApiKey.PRODUCE, held)
        second.script(ApiKey.PRODUCE, error(ErrorCode.INVALID_RECORD))
        slow = producer.send("t", b"slow", partition=0)
        await first.received(ApiKey.PRODUCE)
        lost = producer.send("t", b"lost", partition=1)
        commit = asyncio.create_task(producer.commit_transaction())
        await end_of(lost)
        closing = asyncio.create_task(producer.close())
        await asyncio.sleep(0)
        held.release()
        await closing
        with pytest.raises(TransactionAbortableException, match="INVALID_RECORD"):
            await commit
        assert slow.done()
        assert committed(cluster) == []
        assert all_stable(cluster)


async def test_a_record_whose_failure_ends_the_producer_is_counted_once() -> None:
    async with a_cluster() as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.PRODUCER_FENCED))
        assert isinstance(await end_of(producer.send("t", b"a", partition=0)), ProducerFencedException)
        assert producer.metrics()["record-error-total"] == 1
