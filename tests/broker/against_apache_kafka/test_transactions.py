"""Transactions on the embedded broker and on Apache Kafka, request by request (see ``kafka_comparison.py``)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from aioproducer.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from aioproducer.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from aioproducer.protocol.messages.describe_transactions import DescribeTransactionsRequest
from aioproducer.protocol.messages.end_txn import EndTxnRequest
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.list_transactions import ListTransactionsRequest
from aioproducer.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.broker.raw_clients.batches import make_batch

from .kafka_comparison import GROUP, TRANSACTION, ComparedBroker, same

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]

Identity = tuple[int, int]
NOBODY: Identity = (-1, -1)
READ_COMMITTED = 1
NOW_MS = time.time_ns() // 1_000_000


class Transactional:
    """The requests of a producer with a transactional id. Producer ids are named in the order of their appearance."""

    def __init__(self, broker: ComparedBroker, transactional_id: str) -> None:
        self.broker = broker
        self.id = transactional_id
        self.identity = NOBODY
        self._ids: dict[int, str] = {}

    def alias(self, producer_id: int) -> str:
        return str(producer_id) if producer_id < 0 else self._ids.setdefault(producer_id, f"id {len(self._ids)}")

    async def init(self, timeout_ms: int = 60_000, had: Identity = NOBODY, version: int = 5) -> Any:
        request = InitProducerIdRequest(self.id, timeout_ms, *had)
        answer = await self.broker.settled(request, version, lambda response: int(response.error_code))
        if not answer.error_code:
            self.identity = answer.producer_id, answer.producer_epoch
        return ErrorCode(answer.error_code).name, self.alias(answer.producer_id), answer.producer_epoch

    async def add(self, *topics: tuple[str, list[int]], version: int = 3, identity: Identity | None = None) -> Any:
        named = [AddPartitionsToTxnTopic(*topic) for topic in topics]
        request = AddPartitionsToTxnRequest([], self.id, *(identity or self.identity), named)

        def worst(response: Any) -> int:
            codes = [
                one.partition_error_code
                for of in response.results_by_topic_v3_and_below
                for one in of.results_by_partition
            ]
            return max(codes, default=0)

        answer = await self.broker.settled(request, version, worst)
        return sorted(
            (
                of.name,
                sorted(
                    (one.partition_index, ErrorCode(one.partition_error_code).name) for one in of.results_by_partition
                ),
            )
            for of in answer.results_by_topic_v3_and_below
        )

    async def add_group(self, group: str, version: int = 4, identity: Identity | None = None) -> str:
        request = AddOffsetsToTxnRequest(self.id, *(identity or self.identity), group)
        answer = await self.broker.settled(request, version, lambda response: int(response.error_code))
        return ErrorCode(answer.error_code).name

    async def commit_offset(
        self, topic: str, index: int, offset: int, version: int = 5, identity: Identity | None = None, **more: Any
    ) -> str:
        group = more.pop("group", self.id)
        metadata = more.pop("metadata", "m")
        partition = TxnOffsetCommitRequestPartition(index, offset, 7, metadata)
        topics = [TxnOffsetCommitRequestTopic(topic, [partition])]
        request = TxnOffsetCommitRequest(self.id, group, *(identity or self.identity), topics=topics, **more)
        answer = await self.broker.settled(
            request, version, lambda response: int(response.topics[0].partitions[0].error_code)
        )
        return ErrorCode(answer.topics[0].partitions[0].error_code).name

    async def committed(self, topic: str, index: int = 0, *, stable: bool = True) -> Any:
        wanted = OffsetFetchRequestGroup(self.id, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[index])])
        request = OffsetFetchRequest(groups=[wanted], require_stable=stable)
        answer = await self.broker.settled(request, 9, lambda response: int(response.groups[0].error_code))
        (one,) = answer.groups[0].topics[0].partitions
        return ErrorCode(one.error_code).name, one.committed_offset, one.committed_leader_epoch, one.metadata

    async def end(self, *, commit: bool = True, version: int = 5, identity: Identity | None = None) -> Any:
        request = EndTxnRequest(self.id, *(identity or self.identity), commit)
        answer = await self.broker.settled(request, version, lambda response: int(response.error_code))
        if version >= 5 and not answer.error_code:
            self.identity = answer.producer_id, answer.producer_epoch
        return ErrorCode(answer.error_code).name, self.alias(answer.producer_id), answer.producer_epoch

    async def write(
        self,
        topic: str,
        *values: bytes,
        sequence: int = 0,
        version: int = 12,
        identity: Identity | None = None,
        **more: Any,
    ) -> Any:
        producer_id, epoch = identity or self.identity
        header: dict[str, Any] = {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "base_sequence": sequence,
            "transactional": more.pop("transactional", True),
            # Markers are of today: after a batch a week older they would begin another segment.
            "base_timestamp": NOW_MS,
            "max_timestamp": NOW_MS + len(values) - 1,
        }
        more.setdefault("transactional_id", self.id)
        batch = make_batch(*values, **header)
        return await self.broker.produce(topic, batch, version, **more)

    async def described(self) -> Any:
        """Its transaction, when its markers are written."""
        while True:
            answer = await self.broker.client.request(DescribeTransactionsRequest([self.id]), 0)
            (found,) = answer.transaction_states
            if not found.transaction_state.startswith("Prepare"):
                break
        # Ours has no internal topics.
        topics = sorted((one.topic, sorted(one.partitions)) for one in found.topics if not one.topic.startswith("__"))
        began = found.transaction_start_time_ms > 0
        identity = self.alias(found.producer_id), found.producer_epoch
        return (
            ErrorCode(found.error_code).name,
            found.transaction_state,
            found.transaction_timeout_ms,
            began,
            identity,
            topics,
        )

    async def producers(self, topic: str, index: int = 0) -> Any:
        answer = await self.broker.client.request(DescribeProducersRequest([TopicRequest(topic, [index])]), 0)
        (found,) = answer.topics[0].partitions
        return ErrorCode(found.error_code).name, sorted(
            (
                self.alias(one.producer_id),
                one.producer_epoch,
                one.last_sequence,
                one.last_timestamp > 0 or one.last_sequence < 0,  # ours does not keep that of a marker
                one.coordinator_epoch,
                one.current_txn_start_offset,
            )
            for one in found.active_producers
        )

    async def read(self, topic: str, offset: int = 0) -> Any:
        """The end of the partition for readers of committed records, and what they get."""
        await self.described()
        code, high, stable, start, aborted, _, _, records = await self.broker.fetch(
            topic, offset, isolation_level=READ_COMMITTED
        )
        gone = sorted((self.alias(one.producer_id), one.first_offset) for one in aborted)
        values = [(record.offset, record.value) for record in records]
        end = await self.broker.list_offset(topic, -1, isolation=READ_COMMITTED)
        return code, high, stable, start, gone, values, end


async def began(broker: ComparedBroker, transactional_id: str) -> Transactional:
    await broker.find_coordinator(transactional_id, TRANSACTION)
    return Transactional(broker, transactional_id)


async def test_producer_ids_of_a_transactional_id(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        answers: list[Any] = []
        for name, timeout_ms, had, version in (
            (None, 1000, (-1, -1), 5),
            (None, 0, (-1, -1), 5),
            (None, 1000, (5, 3), 5),
            (None, 1000, (5, -1), 5),
            (None, 1000, (-1, 3), 5),
            ("", 1000, (-1, -1), 5),
            ("", 0, (-1, -1), 5),
            ("ids", 0, (-1, -1), 5),
            ("ids", -1, (-1, -1), 5),
            ("ids", 900_001, (-1, -1), 5),
            ("ids", 900_000, (-1, 3), 5),
            ("ids", 900_000, (5, -1), 5),
        ):
            await broker.find_coordinator(name or "ids", TRANSACTION)
            request = InitProducerIdRequest(name, timeout_ms, *had)
            answer = await broker.settled(request, version, lambda response: int(response.error_code))
            answers.append((name, timeout_ms, had, answer.error_code, answer.producer_id >= 0, answer.producer_epoch))
        one = await began(broker, "ids")
        answers += [(version, await one.init(version=version)) for version in range(6)]
        first = one.identity
        answers.append(("current", await one.init(had=one.identity)))
        answers.append(("previous", await one.init(had=first)))
        answers.append(("current", await one.init(had=one.identity)))
        answers.append(("long ago", await one.init(had=first)))
        answers.append(("long ago", await one.init(had=first, version=3)))
        answers.append(("to come", await one.init(had=(one.identity[0], one.identity[1] + 1))))
        answers.append(("somebody", await one.init(had=(one.identity[0] + 100_000, 0))))
        answers.append(("nobody", await one.init()))
        other = await began(broker, "ids-expected")
        answers.append(("never seen", await other.init(had=(100_000, 3))))
        answers.append(("described", await other.described()))
        return answers

    await same(pair, case)


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_a_producer_id_for_an_open_transaction(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    topic = f"open-{version}"

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic)
        answers: list[Any] = []
        for why, change in (("none", None), ("same", 0), ("older", -1), ("newer", 1), ("other", 100_000)):
            one = await began(broker, f"{topic}-{why}")
            await one.init()
            await one.init()
            producer_id, epoch = old = one.identity
            answers.append(await one.add((topic, [0])))
            had = NOBODY
            if change is not None:
                had = (producer_id + change, 0) if why == "other" else (producer_id, epoch + change)
            request = InitProducerIdRequest(one.id, 60_000, *had)
            answer = await broker.client.request(request, version)
            answers.append((why, ErrorCode(answer.error_code).name, answer.producer_epoch, await one.described()))
            if why == "same":  # until the next request the older one may still learn how its transaction ended
                answers += [await one.end(commit=commit, identity=old) for commit in (True, False)]
            answers.append((why, await one.init(had=had, version=version), await one.described()))
            answers += [await one.end(commit=commit, identity=old) for commit in (True, False)]
            answers.append((why, await one.init(), await one.described()))
        return answers

    await same(pair, case)


@pytest.mark.parametrize("version", [2, 4, 5])
async def test_the_end_of_a_transaction(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    topic = f"ends-{version}"

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic)
        one = await began(broker, topic)
        answers: list[Any] = []

        async def end(why: str, *, commit: bool, identity: Identity | None = None) -> None:
            answers.append((why, commit, await one.end(commit=commit, version=version, identity=identity)))
            answers.append(await one.described())

        for commit in (True, False):
            await one.init()
            await end("empty", commit=commit)
        for first in (True, False):
            for second in (True, False):
                await one.init()
                answers.append(await one.add((topic, [0])))
                before = one.identity
                await end("under way", commit=first)
                await end("again", commit=second)
                await end("again, as before", commit=first, identity=before)
                await end("again, as before, the other way", commit=not first, identity=before)
        producer_id, epoch = one.identity
        for why, identity in (
            ("id", (producer_id + 100_000, 0)),
            ("older", (producer_id, 0)),
            ("newer", (producer_id, epoch + 1)),
        ):
            await end(why, commit=True, identity=identity)
        one.id = ""
        answers.append(("no name", await one.end(version=version)))
        one.id = "nobody"
        await broker.find_coordinator(one.id, TRANSACTION)
        answers.append(("unknown", await one.end(version=version)))
        return answers

    await same(pair, case)


@pytest.mark.parametrize("version", range(4))
async def test_partitions_of_a_transaction(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    topic = f"added-{version}"

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic, 2)
        one = await began(broker, topic)
        await one.init()
        producer_id, epoch = one.identity

        async def add(*topics: tuple[str, list[int]], identity: Identity | None = None) -> Any:
            return await one.add(*topics, version=version, identity=identity)

        answers: list[Any] = [
            await add((topic, [0])),
            await add((topic, [0, 1])),
            await add((topic, [1, 1])),
            await add((topic, [])),
            await add(),
            await add((topic, [0, 5])),
            await add((topic, [0]), ("not-there", [0])),
            await add(("", [0])),
            await add((topic, [-1])),
            await add((topic, [0]), identity=(producer_id + 100_000, epoch)),
            await add((topic, [0]), identity=(producer_id, epoch - 1)),
            await add((topic, [0]), identity=(producer_id, epoch + 1)),
            await add((topic, [0, 9]), identity=(producer_id, epoch + 1)),
            await one.described(),
        ]
        one.id = ""
        answers.append(await add((topic, [0])))
        one.id = "nobody"
        await broker.find_coordinator(one.id, TRANSACTION)
        answers.append(await add((topic, [0])))
        return answers

    await same(pair, case)


@pytest.mark.parametrize("version", [3, 9, 11, 12])
async def test_writing_in_a_transaction(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    topic = f"written-{version}"

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic, 2)
        one = await began(broker, topic)
        await one.init()
        producer_id, epoch = one.identity
        answers: list[Any] = []

        async def write(why: str, sequence: int = 0, **more: Any) -> None:
            answers.append((why, await one.write(topic, b"a", b"b", sequence=sequence, version=version, **more)))

        await write("not added")
        answers.append(await one.described())
        await one.add((topic, [0]))
        await write("added", 0 if version < 12 else 2)
        await write("next", 2 if version < 12 else 4)
        await write("again", 2 if version < 12 else 4)
        await write("a gap", 40)
        await write("another partition", index=1)
        await write("acks=1", 4 if version < 12 else 6, acks=1)
        await write("without a name", 6 if version < 12 else 8, transactional_id=None)
        await write("not of the transaction", 6 if version < 12 else 8, transactional=False)
        await write("no partition", index=7)
        await write("an older epoch", identity=(producer_id, epoch - 1))
        await write("another id", identity=(producer_id + 100_000, 0))
        await write("a newer epoch", identity=(producer_id, epoch + 1))
        answers.append(await one.described())
        answers.append(await one.producers(topic))
        answers.append(await one.read(topic))
        answers.append(await one.end(version=5 if version >= 12 else 3))
        answers.append(await one.read(topic))
        answers.append(await one.producers(topic))
        return answers

    await same(pair, case)


@pytest.mark.parametrize("protocol", [1, 2])
async def test_records_of_transactions_are_read(pair: tuple[ComparedBroker, ComparedBroker], protocol: int) -> None:
    topic = f"read-{protocol}"
    produce, end = (11, 3) if protocol == 1 else (12, 5)

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic)
        first, second = await began(broker, topic), await began(broker, f"{topic}-2")
        answers: list[Any] = []

        async def write(producer: Transactional, sequence: int) -> None:
            if protocol == 1:
                answers.append(await producer.add((topic, [0])))
            answers.append(await producer.write(topic, b"x", b"y", sequence=sequence, version=produce))
            answers.append(await first.read(topic))

        async def finish(producer: Transactional, *, commit: bool) -> None:
            answers.append(await producer.end(commit=commit, version=end))
            answers.append(await producer.described())
            answers.append(await first.read(topic))
            answers.append(await first.producers(topic))

        await first.init()
        await second.init()
        await write(first, 0)
        await write(second, 0)
        await finish(first, commit=False)
        await write(first, 0 if protocol == 2 else 2)
        await finish(second, commit=True)
        await finish(first, commit=True)
        await write(second, 0 if protocol == 2 else 2)
        old = second.identity
        answers.append(await second.init())
        answers.append(await second.described())
        answers.append(await first.read(topic))
        answers.append(await second.write(topic, b"late", sequence=9, version=produce, identity=old))
        answers.append(await second.add((topic, [0]), identity=old))
        answers.append(await second.end(version=end, identity=old))
        answers.append(await second.write(topic, b"anew", sequence=0, version=produce))
        answers.append(await first.producers(topic))
        answers += [
            await broker.list_offset(topic, timestamp, isolation=READ_COMMITTED) for timestamp in (-1, -2, -4, 0)
        ]
        answers += [await first.read(topic, offset) for offset in (3, 6, 100)]
        return [one for one in answers if one is not None]

    await same(pair, case)


async def test_offsets_of_a_transaction(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    topic = "sources"

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic, 2)
        one = await began(broker, "offsets-in-transactions")
        await broker.find_coordinator(one.id, GROUP)
        await one.init()
        producer_id, epoch = one.identity
        answers: list[Any] = [await one.committed(topic)]
        for version in range(5):
            answers.append((version, "not added", await one.commit_offset(topic, 0, 5, version)))
            answers.append((version, await one.add_group(one.id, version)))
            answers.append((version, await one.commit_offset(topic, 0, 5 + version, version)))
            answers.append(await one.committed(topic))
            answers.append(await one.committed(topic, stable=False))
            answers.append(await one.committed(topic, 1))
            answers.append(await one.end(commit=version != 2, version=3))
            answers.append(await one.described())
            answers.append(await one.committed(topic))
        commits: list[dict[str, Any]] = [
            {},
            {"metadata": None},
            {"metadata": "x" * 4096},
            {"metadata": "x" * 4097},
            {"identity": (producer_id, epoch + 50)},
            {"identity": (producer_id + 100_000, 0)},
            {"member_id": "nobody", "generation_id": 1},
            {"member_id": "nobody"},
            {"generation_id": 1},
            {"group_instance_id": "nobody"},
            {"group": ""},
        ]
        for version in (4, 5):
            if version == 4:
                await one.add_group(one.id)
            for more in commits:
                given = dict(more)
                answers.append((version, [*more], await one.commit_offset(topic, 1, 3, version, **given)))
            for name, index, offset in (
                ("not-there", 0, 1),
                (topic, 7, 1),
                (topic, -1, 1),
                (topic, 0, -1),
                (topic, 0, -5),
            ):
                answers.append((version, name, index, offset, await one.commit_offset(name, index, offset, version)))
            answers.append(await one.described())
            answers.append(await one.end(version=5))
            answers.append(await one.described())
            answers += [await one.committed(topic, index) for index in (0, 1, 7)]
        answers += [
            (why, await one.add_group(one.id, identity=more), await one.add_group(one.id, 1, identity=more))
            for why, more in (("older", (producer_id, 0)), ("id", (producer_id + 100_000, 0)))
        ]
        answers.append(await one.add_group(""))
        return answers

    await same(pair, case)


async def test_transactions_are_described(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("txn-described", 2)
        ids = [f"described-{number}" for number in range(4)]
        each = [await began(broker, name) for name in ids]
        for one in each:
            await one.init()
        await each[1].add(("txn-described", [0, 1]))
        await each[2].add(("txn-described", [0]))
        await each[2].end(version=3)
        await each[3].add(("txn-described", [0]))
        await each[3].end(commit=False, version=3)
        answers: list[Any] = [await one.described() for one in each]
        names = {one.identity[0]: one.id for one in each}
        filters: list[dict[str, Any]] = [
            {"state_filters": ["Ongoing"]},
            {"state_filters": ["ongoing", "Empty", "CompleteAbort"]},
            {"state_filters": ["PrepareCommit", "PrepareAbort", "Dead", "PrepareEpochFence", "Nonsense"]},
            {"producer_id_filters": [each[0].identity[0], 10**9]},
            {"duration_filter": 0, "state_filters": ["Ongoing"]},
            {"duration_filter": 10**9},
            {"duration_filter": -5, "producer_id_filters": [each[2].identity[0]]},
            {"transactional_id_pattern": "described-[12]"},
            {"transactional_id_pattern": "described"},
            {"transactional_id_pattern": ".*old-1"},
            {"transactional_id_pattern": ""},
            {"transactional_id_pattern": "described-(", "state_filters": ["Nonsense"]},
        ]
        for more in filters:
            answer = await broker.client.request(ListTransactionsRequest(**more), 2)
            listed = sorted(
                (one.transactional_id, names[one.producer_id], one.transaction_state)
                for one in answer.transaction_states
                if one.transactional_id in ids
            )
            answers.append((ErrorCode(answer.error_code).name, sorted(answer.unknown_state_filters), listed))
        answer = await broker.client.request(DescribeTransactionsRequest(["", "nobody", "described-0"]), 0)
        answers.append([(one.transactional_id, one.error_code) for one in answer.transaction_states])
        wanted = [TopicRequest("txn-described", [0, 5]), TopicRequest("not-there", [0]), TopicRequest("", [0])]
        answer = await broker.client.request(DescribeProducersRequest(wanted), 0)
        answers.append(
            [(of.name, [(one.partition_index, one.error_code) for one in of.partitions]) for of in answer.topics]
        )
        return answers

    await same(pair, case)
