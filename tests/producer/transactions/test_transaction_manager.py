"""Errors of coordinators and partitions, and their effect on a transaction and its producer (both protocols)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer import KafkaProducer, TopicPartition
from aioproducer.errors import (
    IllegalStateException,
    KafkaError,
    ProducerFencedException,
    TimeoutException,
    TransactionAbortableException,
    TransactionalIdAuthorizationException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.transactions.state import TransactionState
from aioproducer.protocol.api_key import ApiKey
from tests.support.inside import manager_of, sender_of
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import end_of
from tests.support.scripted_broker import Drop, Exchange, Held, ScriptedCluster, Step, answer, drop, edited, error
from tests.support.transactional import PROTOCOLS, a_cluster, all_stable, committed, set_code, transactional
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


def refused(code: ErrorCode) -> Step:
    """Answers with an error; nothing is done."""

    async def step(exchange: Exchange) -> None:
        request = exchange.request
        response = exchange.handle() if exchange.api is ApiKey.FIND_COORDINATOR else None
        if response is None:
            response = _empty_response(exchange.api, request)
        set_code(response, code)
        exchange.reply(response)

    return step


def _empty_response(api: ApiKey, request: Any) -> Any:
    from aioproducer.protocol.api_keys import APIS
    from aioproducer.protocol.messages.add_partitions_to_txn import (
        AddPartitionsToTxnPartitionResult,
        AddPartitionsToTxnTopicResult,
    )
    from aioproducer.protocol.messages.txn_offset_commit import (
        TxnOffsetCommitResponsePartition,
        TxnOffsetCommitResponseTopic,
    )

    response: Any = APIS[api].response()
    if api is ApiKey.ADD_PARTITIONS_TO_TXN:
        response.results_by_topic_v3_and_below = [
            AddPartitionsToTxnTopicResult(
                topic.name, [AddPartitionsToTxnPartitionResult(index, 0) for index in topic.partitions]
            )
            for topic in request.v3_and_below_topics
        ]
    elif api is ApiKey.TXN_OFFSET_COMMIT:
        response.topics = [
            TxnOffsetCommitResponseTopic(
                topic.name, [TxnOffsetCommitResponsePartition(one.partition_index, 0) for one in topic.partitions]
            )
            for topic in request.topics
        ]
    return response


def state_of(producer: KafkaProducer) -> TransactionState:
    return manager_of(producer).status.state


async def goes_on(cluster: ScriptedCluster, producer: KafkaProducer) -> None:
    """Two more transactions are as they should be."""
    for value in (b"next", b"last"):
        async with producer.transaction():
            _ = producer.send("t", value, partition=0)
    assert committed(cluster)[-2:] == [b"next", b"last"]
    assert all_stable(cluster)


class TestFirstProtocol:
    """Partitions are named to the coordinator, and epochs last for more than one transaction."""

    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.TRANSACTION_ABORTABLE,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.UNKNOWN_PRODUCER_ID,
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ],
        ids=lambda code: code.name,
    )
    async def test_a_transaction_that_the_coordinator_never_heard_of_is_aborted_without_it(
        self, code: ErrorCode
    ) -> None:
        async with a_cluster(1) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            cluster.broker.script(ApiKey.ADD_PARTITIONS_TO_TXN, refused(code))
            with pytest.raises(TransactionAbortableException, match=code.name):
                async with producer.transaction():
                    _ = producer.send("t", b"a", partition=0)
            assert cluster.broker.count(ApiKey.END_TXN) == 0
            await goes_on(cluster, producer)

    @pytest.mark.parametrize("appended", [False, True])
    @virtual
    async def test_an_abort_after_an_answer_that_was_not_final_ends_what_the_coordinator_may_have_begun(
        self, world: World, appended: bool
    ) -> None:
        slow: dict[str, Any] = {"retry_backoff_ms": 2000, "retry_backoff_max_ms": 2000}
        async with a_cluster(1) as cluster, transactional(cluster, **slow) as producer:
            await producer.init_transactions()
            if appended:
                step = edited(lambda response: set_code(response, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            else:
                step = refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            cluster.broker.script(ApiKey.ADD_PARTITIONS_TO_TXN, step)
            await producer.begin_transaction()
            _ = producer.send("t", b"a", partition=0)
            await asyncio.sleep(1)
            await producer.abort_transaction()
            assert cluster.broker.count(ApiKey.END_TXN) == 1
            await goes_on(cluster, producer)

    async def test_offsets_that_were_refused_are_aborted_without_the_coordinator(self) -> None:
        async with a_cluster(1) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            cluster.broker.script(ApiKey.ADD_OFFSETS_TO_TXN, refused(ErrorCode.GROUP_AUTHORIZATION_FAILED))
            with pytest.raises(TransactionAbortableException, match="GROUP_AUTHORIZATION_FAILED"):
                async with producer.transaction():
                    await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")
            assert cluster.broker.count(ApiKey.END_TXN) == 0
            await goes_on(cluster, producer)

    @pytest.mark.parametrize("appended", [False, True])
    async def test_an_abort_without_any_answer_ends_what_the_coordinator_may_have_begun(self, appended: bool) -> None:
        """InitProducerId would end it, too, but Kafka's coordinator would fence the producer by that."""
        async with a_cluster(1) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            cluster.broker.script(ApiKey.ADD_PARTITIONS_TO_TXN, drop(appended=appended))
            await producer.begin_transaction()
            _ = producer.send("t", b"a", partition=0)
            await cluster.broker.received(ApiKey.ADD_PARTITIONS_TO_TXN)
            await producer.abort_transaction()
            ends = (ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID)
            asked = [header.api_key for header, _ in cluster.broker.requests if header.api_key in ends]
            assert asked[1:] == [ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID]  # but for the first id
            await goes_on(cluster, producer)

    async def test_a_batch_given_up_between_two_attempts_leaves_no_partition_stuck(self) -> None:
        slow: dict[str, Any] = {"retry_backoff_ms": 2000, "retry_backoff_max_ms": 2000}
        async with a_cluster(1) as cluster, transactional(cluster, **slow) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
            cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS))
            delivery = producer.send("t", b"b", partition=0)
            await cluster.broker.received(ApiKey.PRODUCE, 2)
            async with asyncio.timeout(5):
                while not producer.metrics()["record-retry-total"]:  # noqa: ASYNC110
                    await asyncio.sleep(0)
            await producer.abort_transaction()
            assert isinstance(await end_of(delivery), KafkaError)
            async with asyncio.timeout(5):
                await goes_on(cluster, producer)

    async def test_an_abort_of_what_was_all_delivered_keeps_the_epoch(self) -> None:
        async with a_cluster(1) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
            await producer.abort_transaction()
            await goes_on(cluster, producer)
            assert cluster.broker.count(ApiKey.INIT_PRODUCER_ID) == 1

    @pytest.mark.parametrize("committed_first", [False, True])
    async def test_an_end_that_arrives_late_does_not_end_the_next_transaction(self, committed_first: bool) -> None:
        late: list[Exchange] = []

        async def lost(exchange: Exchange) -> None:
            late.append(exchange)
            raise Drop

        async with a_cluster(1) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
            cluster.broker.script(ApiKey.END_TXN, lost)
            await (producer.commit_transaction() if committed_first else producer.abort_transaction())
            await producer.begin_transaction()
            await producer.send("t", b"b", partition=0)
            assert late.pop().handle().error_code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
            await producer.send("t", b"c", partition=1)
            await (producer.abort_transaction() if committed_first else producer.commit_transaction())
            assert sorted(filter(None, committed(cluster))) == ([b"a"] if committed_first else [b"b", b"c"])
            assert all_stable(cluster)

    async def test_a_batch_that_arrives_late_does_not_come_before_the_next_transaction(self) -> None:
        async with a_cluster(1) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            cluster.broker.script(ApiKey.PRODUCE, drop())
            async with producer.transaction():
                _ = producer.send("t", b"a", partition=0)
            assert cluster.broker.count(ApiKey.INIT_PRODUCER_ID) == 2
            await goes_on(cluster, producer)
            assert cluster.broker.count(ApiKey.INIT_PRODUCER_ID) == 2

    async def test_the_first_partition_of_a_transaction_waits_but_little_for_the_end_of_the_last(self) -> None:
        slow: dict[str, Any] = {"retry_backoff_ms": 60_000, "retry_backoff_max_ms": 60_000}
        async with a_cluster(1) as cluster, transactional(cluster, **slow) as producer:
            await producer.init_transactions()
            cluster.broker.script(ApiKey.ADD_PARTITIONS_TO_TXN, *[refused(ErrorCode.CONCURRENT_TRANSACTIONS)] * 3)
            async with producer.transaction():
                _ = producer.send("t", b"a", partition=0)
            assert committed(cluster) == [b"a"]

    async def test_offsets_under_way_are_answered_before_the_transaction_is_ended(self) -> None:
        async with a_cluster(1) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            held = Held()
            cluster.broker.script(ApiKey.TXN_OFFSET_COMMIT, held)
            offsets = asyncio.create_task(producer.send_offsets_to_transaction({TopicPartition("t", 0): 7}, "g"))
            await cluster.broker.received(ApiKey.TXN_OFFSET_COMMIT)
            abort = asyncio.create_task(producer.abort_transaction())
            for _ in range(20):
                await asyncio.sleep(0)
            assert cluster.broker.count(ApiKey.END_TXN) == 0
            held.release()
            await abort
            await offsets
            assert cluster._transactions.offsets.committed("g") == {}


@PROTOCOLS
class TestFailures:
    @virtual
    async def test_a_second_failure_changes_nothing(self, world: World, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster, max_block_ms=300) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            held = Held()
            cluster.broker.script(ApiKey.TXN_OFFSET_COMMIT, held)
            offsets = asyncio.create_task(producer.send_offsets_to_transaction({TopicPartition("t", 0): 7}, "g"))
            await cluster.broker.received(ApiKey.TXN_OFFSET_COMMIT)
            await end_of(producer.send("t", bytes(2_000_000), partition=0))
            assert state_of(producer) is TransactionState.ABORTABLE_ERROR
            (exchange,) = held.exchanges
            response = exchange.handle()
            set_code(response, ErrorCode.ILLEGAL_GENERATION)
            exchange.reply(response)
            exchange.broker.held.clear()
            with pytest.raises(TransactionAbortableException, match=r"max\.request\.size"):
                await offsets
            await producer.abort_transaction()
            await goes_on(cluster, producer)

    async def test_a_failure_while_the_transaction_is_aborted_does_not_matter(self, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            held = Held()
            cluster.broker.script(ApiKey.PRODUCE, held)
            delivery = producer.send("t", b"a", partition=0)
            await cluster.broker.received(ApiKey.PRODUCE)
            abort = asyncio.create_task(producer.abort_transaction())
            await asyncio.sleep(0)
            assert state_of(producer) is TransactionState.ABORTING
            (exchange,) = held.exchanges
            exchange.broker.held.clear()
            await error(ErrorCode.INVALID_TXN_STATE)(exchange)
            await abort
            assert isinstance(await end_of(delivery), KafkaError)
            await goes_on(cluster, producer)

    @pytest.mark.parametrize(
        "code", [ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.UNKNOWN_PRODUCER_ID]
    )
    async def test_a_batch_that_is_refused_fails_the_transaction(self, protocol: int, code: ErrorCode) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            cluster.broker.script(ApiKey.PRODUCE, answer, error(code))
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
            assert isinstance(await end_of(producer.send("t", b"b", partition=0)), KafkaError)
            with pytest.raises(TransactionAbortableException, match=code.name):
                await producer.commit_transaction()
            await producer.abort_transaction()
            await goes_on(cluster, producer)

    async def test_a_producer_id_that_the_coordinator_forgot_is_replaced(self, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                _ = producer.send("t", b"a", partition=0)
            cluster._transactions._transactions.clear()
            with pytest.raises(TransactionAbortableException, match="INVALID_PRODUCER_ID_MAPPING"):
                async with producer.transaction():
                    _ = producer.send("t", b"b", partition=0)
            await goes_on(cluster, producer)

    async def test_no_error_advises_aborting_a_transaction_that_may_be_committed(self, protocol: int) -> None:
        """A commit is not answered, and then another producer has the transactional id, with another producer id."""
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            cluster.broker.script(ApiKey.END_TXN, drop(), refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
            with pytest.raises(KafkaError, match="INVALID_PRODUCER_ID_MAPPING") as told:
                await producer.commit_transaction()
            assert not told.value.abortable
            with pytest.raises(KafkaError):
                await producer.abort_transaction()
            assert state_of(producer) is TransactionState.FATAL_ERROR

    async def test_an_abort_under_a_producer_id_that_was_forgotten(self, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
            cluster.broker.script(ApiKey.END_TXN, refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
            await producer.abort_transaction()
            await goes_on(cluster, producer)

    async def test_a_transaction_that_cannot_be_aborted_ends_the_producer(self, protocol: int) -> None:
        """Nobody is told to abort what was answered that it has to be aborted."""
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
            cluster.broker.script(ApiKey.END_TXN, refused(ErrorCode.TRANSACTION_ABORTABLE))
            for call in (producer.abort_transaction, producer.abort_transaction, producer.begin_transaction):
                with pytest.raises(KafkaError, match=r"cannot be aborted.*TRANSACTION_ABORTABLE") as told:
                    await call()
                assert not told.value.abortable
                assert isinstance(told.value.__cause__, TransactionAbortableException)
            assert state_of(producer) is TransactionState.FATAL_ERROR

    async def test_an_end_that_is_refused_for_good_ends_the_producer(self, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
            cluster.broker.script(ApiKey.END_TXN, refused(ErrorCode.INVALID_TXN_STATE))
            with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
                await producer.commit_transaction()
            assert state_of(producer) is TransactionState.FATAL_ERROR
            with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
                await producer.abort_transaction()

    @virtual
    async def test_an_expired_batch_fails_the_transaction(self, world: World, protocol: int) -> None:
        async with a_cluster(protocol) as cluster:
            config: dict[str, Any] = {"delivery_timeout_ms": 200, "request_timeout_ms": 150}
            async with transactional(cluster, **config) as producer:
                await producer.init_transactions()
                await producer.begin_transaction()
                await producer.send("t", b"a", partition=0)
                held = Held()
                cluster.broker.always(ApiKey.PRODUCE, held)
                late = [producer.send("t", b"late", partition=partition) for partition in range(3)]
                with pytest.raises(TransactionAbortableException, match=r"delivery\.timeout\.ms"):
                    await producer.commit_transaction()
                for delivery in late:
                    assert isinstance(await end_of(delivery), KafkaError)
                assert cluster.broker.count(ApiKey.END_TXN) == 0
                cluster.broker.always(ApiKey.PRODUCE, None)
                cluster.broker.held.clear()
                await producer.abort_transaction()
                await goes_on(cluster, producer)

    async def test_a_producer_that_fails_leaves_nobody_waiting(self, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
            cluster.broker.always(ApiKey.END_TXN, Held())
            commit = asyncio.create_task(producer.commit_transaction())
            await cluster.broker.received(ApiKey.END_TXN)
            sender_of(producer).crashed(ZeroDivisionError("a bug"))
            with pytest.raises(KafkaError, match="a bug"):
                await commit
            with pytest.raises(KafkaError, match="a bug"):
                await producer.begin_transaction()


ASKED = {
    1: [ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT],
    2: [ApiKey.INIT_PRODUCER_ID, ApiKey.TXN_OFFSET_COMMIT],
}


@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
@pytest.mark.parametrize(
    ("protocol", "api"),
    [(protocol, api) for protocol, asked in ASKED.items() for api in (*asked, ApiKey.END_TXN)],
    ids=lambda one: one.name if isinstance(one, ApiKey) else f"v{one}",
)
async def test_a_fenced_producer_gets_ProducerFenced(protocol: int, api: ApiKey, code: ErrorCode) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        cluster.broker.script(api, refused(code))

        async def work() -> None:
            await producer.init_transactions()
            async with producer.transaction():
                _ = producer.send("t", b"a", partition=0)
                await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")

        with pytest.raises(ProducerFencedException):
            await work()
        assert state_of(producer) is TransactionState.FATAL_ERROR
        with pytest.raises(ProducerFencedException):
            await producer.begin_transaction()


async def test_the_protocol_follows_what_the_cluster_finalizes() -> None:
    async with a_cluster(1) as cluster, transactional(cluster) as producer:

        async def finalize(version: int) -> None:
            cluster.broker.apis._api_versions._transaction_version = version
            cluster.broker.drop_connections()
            await cluster.broker.until(lambda broker: not broker.connections)

        def versions(api: ApiKey) -> list[int]:
            return [header.api_version for header, _ in cluster.broker.requests if header.api_key == api]

        await producer.init_transactions()
        await goes_on(cluster, producer)
        await producer.begin_transaction()
        await producer.send("t", b"begun with the first", partition=0)
        await finalize(2)
        await producer.send("t", b"and ended with it", partition=0)
        await producer.commit_transaction()
        assert set(versions(ApiKey.END_TXN)) == {4}
        assert cluster.broker.count(ApiKey.INIT_PRODUCER_ID) == 2  # an epoch that the first never had
        await goes_on(cluster, producer)
        assert versions(ApiKey.END_TXN)[-2:] == [5, 5]
        assert versions(ApiKey.PRODUCE)[-1] > 11
        await finalize(1)
        async with producer.transaction():
            await producer.send("t", b"ended with the second", partition=0)
        await goes_on(cluster, producer)
        assert versions(ApiKey.END_TXN)[-3:] == [5, 4, 4]
        assert versions(ApiKey.PRODUCE)[-1] == 11
        assert cluster.broker.count(ApiKey.INIT_PRODUCER_ID) == 2


async def test_a_broker_before_epochs_were_bumped_on_demand() -> None:
    async with (
        a_cluster(1, newest_versions={ApiKey.INIT_PRODUCER_ID: 2}) as cluster,
        transactional(cluster) as producer,
    ):
        await producer.init_transactions()
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.INVALID_RECORD))
        with pytest.raises(TransactionAbortableException, match="INVALID_RECORD"):
            async with producer.transaction():
                _ = producer.send("t", b"bad", partition=0)
        await goes_on(cluster, producer)


@virtual
async def test_offsets_wait_no_longer_than_allowed_for_those_before_them(world: World) -> None:
    loop = asyncio.get_running_loop()
    async with a_cluster() as cluster, transactional(cluster, max_block_ms=20_000) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        cluster.broker.always(ApiKey.TXN_OFFSET_COMMIT, refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))

        async def send_offsets() -> float:
            began = loop.time()
            with pytest.raises(TimeoutException, match="send_offsets_to_transaction has not ended"):
                await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")
            return loop.time() - began

        first, second = await asyncio.gather(send_offsets(), send_offsets())
        assert first == pytest.approx(20, abs=0.1)
        assert second == pytest.approx(20, abs=0.1)


class TestInitialization:
    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ErrorCode.TRANSACTION_ABORTABLE,
        ],
        ids=lambda code: code.name,
    )
    async def test_a_refused_request_may_be_repeated(self, code: ErrorCode) -> None:
        """Rights may be given while the producer lives."""
        async with a_cluster() as cluster, transactional(cluster) as producer:
            cluster.broker.script(ApiKey.INIT_PRODUCER_ID, refused(code))
            with pytest.raises(KafkaError, match=code.name):
                await producer.init_transactions()
            assert state_of(producer) is TransactionState.UNINITIALIZED
            with pytest.raises(IllegalStateException, match=r"init_transactions\(\) was not called"):
                await producer.begin_transaction()
            await producer.init_transactions()
            await goes_on(cluster, producer)

    async def test_an_unauthorized_coordinator_lookup_may_be_repeated(self) -> None:
        async with a_cluster() as cluster, transactional(cluster) as producer:

            async def refuse(exchange: Exchange) -> None:
                response = exchange.handle()
                response.coordinators[0].error_code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                exchange.reply(response)

            cluster.broker.script(ApiKey.FIND_COORDINATOR, refuse)
            with pytest.raises(TransactionalIdAuthorizationException):
                await producer.init_transactions()
            await producer.init_transactions()
            await goes_on(cluster, producer)

    async def test_an_authorization_lost_at_an_epoch_change_is_retried(self) -> None:
        async with a_cluster(1) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.INVALID_RECORD))
            cluster.broker.script(ApiKey.INIT_PRODUCER_ID, refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            await producer.begin_transaction()
            await end_of(producer.send("t", b"a", partition=0))
            await producer.abort_transaction()
            assert state_of(producer) is TransactionState.UNINITIALIZED
            with pytest.raises(IllegalStateException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
                await producer.begin_transaction()
            await producer.init_transactions()
            await goes_on(cluster, producer)

    @virtual
    async def test_after_a_time_out_only_the_same_call_is_possible(self, world: World) -> None:
        async with a_cluster() as cluster, transactional(cluster, max_block_ms=500) as producer:
            held = Held()
            cluster.broker.always(ApiKey.INIT_PRODUCER_ID, held)
            with pytest.raises(TimeoutException, match="init_transactions has not ended"):
                await producer.init_transactions()
            for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
                with pytest.raises(IllegalStateException, match="init_transactions has not ended"):
                    await call()
            cluster.broker.always(ApiKey.INIT_PRODUCER_ID, None)
            held.release()
            await producer.init_transactions()
            await goes_on(cluster, producer)
            with pytest.raises(IllegalStateException, match="init_transactions"):
                await producer.init_transactions()

    async def test_two_tasks_wait_for_the_same_end(self) -> None:
        async with a_cluster() as cluster, transactional(cluster) as producer:
            await asyncio.gather(producer.init_transactions(), producer.init_transactions())
            assert cluster.broker.count(ApiKey.INIT_PRODUCER_ID) == 1
            await producer.begin_transaction()
            _ = producer.send("t", b"a", partition=0)
            await asyncio.gather(producer.commit_transaction(), producer.commit_transaction())
            assert cluster.broker.count(ApiKey.END_TXN) == 1
            await goes_on(cluster, producer)


class TestTheBlock:
    async def test_cancelled_again_while_it_aborts(self) -> None:
        async with a_cluster() as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            held = Held()
            cluster.broker.always(ApiKey.END_TXN, held)

            async def work() -> None:
                async with producer.transaction():
                    await producer.send("t", b"a", partition=0)
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await cluster.broker.received(ApiKey.PRODUCE)
            task.cancel()
            await cluster.broker.received(ApiKey.END_TXN)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [request.committed for request in cluster.broker.sent(ApiKey.END_TXN)] == [False]
            cluster.broker.always(ApiKey.END_TXN, None)
            held.release()
            await producer.abort_transaction()
            await goes_on(cluster, producer)

    @virtual
    async def test_a_cancellation_is_not_lost_to_an_abort_that_takes_too_long(self, world: World) -> None:
        async with a_cluster() as cluster, transactional(cluster, max_block_ms=500) as producer:
            await producer.init_transactions()
            held = Held()
            cluster.broker.always(ApiKey.END_TXN, held)

            async def work() -> None:
                async with producer.transaction():
                    await producer.send("t", b"a", partition=0)
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await cluster.broker.received(ApiKey.PRODUCE)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as told:
                await task
            assert "abort_transaction has not ended" in told.value.__notes__[0]
            cluster.broker.always(ApiKey.END_TXN, None)
            held.release()
            await producer.abort_transaction()
            await goes_on(cluster, producer)

    @pytest.mark.parametrize("turns", range(8))
    async def test_cancelled_at_any_turn_it_either_commits_or_aborts(self, turns: int) -> None:
        async with a_cluster() as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            delivered = asyncio.Event()

            async def work() -> None:
                async with producer.transaction():
                    await producer.send("t", b"a", partition=0)
                    delivered.set()

            task = asyncio.create_task(work())
            await delivered.wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            ends = [request.committed for request in cluster.broker.sent(ApiKey.END_TXN)]
            assert len(ends) <= 1
            if state_of(producer) is TransactionState.COMMITTING:
                await producer.commit_transaction()
                assert committed(cluster) == [b"a"]
            else:
                assert state_of(producer) is TransactionState.READY
                assert committed(cluster) == [b"a"] * ends[0]
            await goes_on(cluster, producer)


class TestClose:
    """In every state: nobody is left waiting, and what was asked for is carried through if there is time."""

    @PROTOCOLS
    async def test_a_commit_that_nobody_waits_for_is_carried_through(self, protocol: int) -> None:
        async with a_cluster(protocol) as cluster:
            held = Held()
            async with transactional(cluster) as producer:
                await producer.init_transactions()
                await producer.begin_transaction()
                _ = producer.send("t", b"a", partition=0)
                cluster.broker.script(ApiKey.END_TXN, held)
                commit = asyncio.create_task(producer.commit_transaction())
                await cluster.broker.received(ApiKey.END_TXN)
                commit.cancel()
                asyncio.get_running_loop().call_later(0.01, held.release)
            assert committed(cluster) == [b"a"]
            assert all_stable(cluster)

    async def test_an_abort_that_nobody_waits_for_is_carried_through(self) -> None:
        async with a_cluster() as cluster:
            held = Held()
            async with transactional(cluster) as producer:
                await producer.init_transactions()
                await producer.begin_transaction()
                await producer.send("t", b"a", partition=0)
                cluster.broker.script(ApiKey.END_TXN, held)
                abort = asyncio.create_task(producer.abort_transaction())
                await cluster.broker.received(ApiKey.END_TXN)
                abort.cancel()
                asyncio.get_running_loop().call_later(0.01, held.release)
            assert committed(cluster) == []
            assert all_stable(cluster)

    async def test_a_commit_that_fails_is_aborted(self) -> None:
        async with a_cluster() as cluster:
            async with transactional(cluster) as producer:
                await producer.init_transactions()
                await producer.begin_transaction()
                await producer.send("t", b"a", partition=0)
                held = Held()
                cluster.broker.script(ApiKey.PRODUCE, held)
                bad = producer.send("t", b"b", partition=0)
                commit = asyncio.create_task(producer.commit_transaction())
                await cluster.broker.received(ApiKey.PRODUCE, 2)
                commit.cancel()
                (exchange,) = held.exchanges
                exchange.broker.held.clear()
                asyncio.get_running_loop().call_later(0.01, lambda: asyncio.ensure_future(refuse(exchange)))
            assert isinstance(await end_of(bad), KafkaError)
            assert committed(cluster) == []
            assert all_stable(cluster)

    async def test_within_a_block(self) -> None:
        async with a_cluster() as cluster:
            producer = transactional(cluster)
            await producer.start()
            await producer.init_transactions()
            cluster.broker.always(ApiKey.END_TXN, Held())

            async def work() -> None:
                async with producer.transaction():
                    await producer.send("t", b"a", partition=0)
                    await producer.close(0)

            with pytest.raises(IllegalStateException, match="the producer is closed"):
                await work()
            with pytest.raises(IllegalStateException, match="the producer is closed"):
                await producer.begin_transaction()

    @pytest.mark.parametrize("timeout", [0, 0.02])
    @pytest.mark.parametrize("stuck", [None, ApiKey.INIT_PRODUCER_ID, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN])
    async def test_while_the_coordinator_says_nothing(self, stuck: ApiKey | None, timeout: float) -> None:
        async with a_cluster() as cluster:
            producer = transactional(cluster)
            await producer.start()
            if stuck is not None:
                cluster.broker.always(stuck, Held())

            async def work() -> None:
                await producer.init_transactions()
                await producer.begin_transaction()
                await producer.send("t", b"a", partition=0)
                await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")
                if stuck is not None:
                    await producer.commit_transaction()

            task = asyncio.create_task(work())
            if stuck is None:
                await task
            else:
                await cluster.broker.received(stuck)
            async with asyncio.timeout(5):
                await producer.close(timeout)
                if stuck is not None:
                    with pytest.raises(KafkaError):
                        await task


async def refuse(exchange: Exchange) -> None:
    await error(ErrorCode.INVALID_RECORD)(exchange)
