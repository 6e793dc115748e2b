"""The transactional half of a producer: its talk with the transaction coordinator, and what it lets the Sender do.

Speaks both protocols, as the cluster has finalized ``transaction.version``: with the first, partitions are named to the
coordinator before anything is written to them; with the second (KIP-890) writing is naming, and each end of a
transaction brings the producer its next epoch. States are in ``transaction_state``, errors in ``transaction_errors``.

What was begun at the coordinator is carried through, whoever gives up waiting for it: a commit that was asked for is
never followed by an abort, and calling the same method again waits for the same end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from random import Random
from typing import Any, TypeVar

from aioproducer.backoff import backoff
from aioproducer.config import ProducerConfig
from aioproducer.error_code import ErrorCode
from aioproducer.errors import (
    IllegalArgumentException,
    IllegalStateException,
    KafkaError,
    TimeoutException,
    TransactionAbortableException,
    TransactionAbortedException,
    error_for,
)
from aioproducer.net.client import KafkaClient
from aioproducer.producer.coordinators import TRANSACTION, Coordinators
from aioproducer.producer.partition_queue import PartitionQueue
from aioproducer.producer.sequences import ProducerIdAndEpoch, ProducerIds
from aioproducer.producer.transaction_errors import FATAL_FOR_BATCHES, Consequence, consequence, named
from aioproducer.producer.transaction_offsets import send_offsets
from aioproducer.producer.transaction_state import TransactionState, check_transition
from aioproducer.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from aioproducer.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.schema import Request, Response
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Response)

S = TransactionState

LAST_FIRST_PROTOCOL_END_TXN = 4
LAST_FIRST_PROTOCOL_PRODUCE = 11
SEND_OFFSETS = "send_offsets_to_transaction"
NEWEST_ADD_PARTITIONS = 3
"""Later versions are for brokers among themselves."""


class TransactionManager:
    """What to do with the records of a transaction is the Sender's part:

    ``gate(open)`` lets records in or not; ``flush()`` returns when all have ended; ``give_up(error)`` fails those that
    are not under way; ``ready(queues)`` says that partitions may be written to now; ``fatal(error)`` ends the producer.
    """

    def __init__(
        self,
        config: ProducerConfig,
        client: KafkaClient,
        ids: ProducerIds,
        random: Random,
        *,
        gate: Callable[[bool], None],
        flush: Callable[[], Awaitable[None]],
        give_up: Callable[[KafkaError], None],
        ready: Callable[[Iterable[PartitionQueue]], None],
        fatal: Callable[[KafkaError], None],
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
    ) -> None:
        assert config.transactional_id is not None
        self.transactional_id = config.transactional_id
        self.state = S.UNINITIALIZED
        self.error: KafkaError | None = None
        """Why the transaction, or the producer, has failed."""
        self.last_error: KafkaError | None = None
        """What the coordinator said last, if it was an error."""
        self._config = config
        self._client = client
        self._ids = ids
        self._random = random
        self._gate = gate
        self._flush = flush
        self._give_up = give_up
        self._ready = ready
        self._fatal = fatal
        self._spawn = spawn
        self._coordinators = Coordinators(client)
        self._operation: asyncio.Task[None] | None = None
        self._started = False
        """The coordinator may know of the transaction: it has to be told of its end."""
        self._second_protocol = False
        self._joining: dict[PartitionQueue, None] = {}
        self._joiner: asyncio.Task[None] | None = None

    # What users call

    async def init(self) -> None:
        await self._operate("init_transactions", self._init, S.UNINITIALIZED)

    def begin(self) -> None:
        self._settle_operation("begin_transaction")
        self._require("begin_transaction", S.READY)
        self._become(S.IN_TRANSACTION)
        self._started = False
        self._ids.transaction += 1
        self._gate(True)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: ConsumerGroupMetadata
    ) -> None:
        if not group.group_id:
            raise IllegalArgumentException("the group id is empty")

        async def work() -> None:
            assert self._ids.current is not None
            self._started = True
            await send_offsets(self, self._ids.current, offsets, group, second_protocol=self._second_protocol)

        if offsets:
            while (earlier := self._operation) is not None and earlier.get_name() == SEND_OFFSETS:
                await self._wait(earlier)  # others' offsets, or an earlier try: these come after
                if self._operation is earlier:
                    self._operation = None
            await self._operate(SEND_OFFSETS, work, S.IN_TRANSACTION)

    async def commit(self) -> None:
        await self._operate("commit_transaction", self._commit, S.IN_TRANSACTION)

    async def abort(self) -> None:
        await self._drop_offsets()
        await self._operate("abort_transaction", self._abort, S.IN_TRANSACTION, S.ABORTABLE_ERROR)

    async def abort_if_open(self) -> None:
        """For a producer that is closed in the middle of a transaction; what failed, its records tell."""
        if self.is_open():
            try:
                await self.abort()
            except KafkaError as error:
                log.warning("the open transaction of %r was not aborted: %s", self.transactional_id, error)

    def is_open(self) -> bool:
        """Whether there is a transaction that nobody has committed or aborted yet."""
        return self.state in (S.IN_TRANSACTION, S.ABORTABLE_ERROR)

    def why_no_records(self) -> str:
        """Why no record may be sent now; empty if one may."""
        if self.state is S.IN_TRANSACTION:
            return ""
        reason = f": {self.error}" if self.error is not None else ""
        return f"records of a transactional producer belong to a transaction, and {self.state.value}{reason}"

    # What the Sender calls

    @property
    def newest_produce(self) -> int | None:
        return None if self._second_protocol else LAST_FIRST_PROTOCOL_PRODUCE

    def partition_used(self, queue: PartitionQueue) -> None:
        """A batch was opened for the partition: it has to be part of the transaction."""
        if queue.sequences.joined == self._ids.transaction or queue in self._joining:
            return
        self._started = True
        if self._second_protocol:
            queue.sequences.joined = self._ids.transaction
            return
        self._joining[queue] = None
        if self._joiner is None:
            self._joiner = self._spawn(self._join(), "aioproducer AddPartitionsToTxn")

    def batch_failed(self, error: KafkaError) -> None:
        """A batch of the transaction has ended in failure, and the transaction with it."""
        if error.code in FATAL_FOR_BATCHES:
            self._fail_for_good(named(error))
        elif self.state in (S.IN_TRANSACTION, S.COMMITTING):
            self._fail_transaction(error)

    # Operations

    async def _operate(
        self, name: str, work: Callable[[], Coroutine[Any, Any, None]], *begins_in: TransactionState
    ) -> None:
        """Starts an operation, or goes on waiting for the one of this name, for at most max.block.ms."""
        if self._operation is None or self._operation.get_name() != name:
            self._settle_operation(name)
            self._require(name, *begins_in)
            self._operation = asyncio.create_task(work(), name=name)
        operation = self._operation
        await self._wait(operation)
        if self._operation is operation:
            self._operation = None
        if operation.cancelled():
            raise IllegalStateException(f"{name} was given up: the transaction was aborted, or the producer closed")
        operation.result()

    async def _wait(self, operation: asyncio.Task[None]) -> None:
        allowed = self._config.max_block_ms
        done, _ = await asyncio.wait([operation], timeout=allowed / 1000)
        if not done:
            last = f"; the last error was: {self.last_error}" if self.last_error is not None else ""
            raise TimeoutException(
                f"{operation.get_name()} has not ended within max.block.ms={allowed}: it goes on, and calling it again "
                f"waits for its end{last}"
            )

    def _settle_operation(self, name: str) -> None:
        """What was done without anybody waiting for its end does not stand in the way; what is under way does."""
        operation = self._operation
        if operation is None:
            return
        if not operation.done():
            raise IllegalStateException(
                f"{operation.get_name()} has not ended; call it again, and wait for its end, before {name}"
            )
        self._operation = None
        if not operation.cancelled() and operation.exception() is not None:
            log.warning("%s failed, and nobody was told: %s", operation.get_name(), operation.exception())

    async def _init(self) -> None:
        self._become(S.INITIALIZING)
        await self._take_identity()
        self._become(S.READY)

    async def _commit(self) -> None:
        self._become(S.COMMITTING)
        self._gate(False)
        await self._flush()
        if self.state is not S.COMMITTING:
            raise self._failure()
        await self._end(committed=True)

    async def _abort(self) -> None:
        failed = self.state is S.ABORTABLE_ERROR
        self._become(S.ABORTING)
        self._gate(False)
        self._give_up(TransactionAbortedException(f"the transaction of {self.transactional_id!r} is being aborted"))
        await self._flush()
        await self._end(committed=False, bump=failed and not self._second_protocol)

    async def _end(self, *, committed: bool, bump: bool = False) -> None:
        """Tells the coordinator, if it may know of the transaction at all.

        ``bump``: sequences of the transaction are in doubt, and with the first protocol only a new epoch is above that.
        """
        await self._joined()
        if self._started:
            assert self._ids.current is not None
            response = await self.ask(
                EndTxnRequest(self.transactional_id, *self._ids.current, committed),
                EndTxnResponse,
                lambda response: [response.error_code],
                at_most=None if self._second_protocol else LAST_FIRST_PROTOCOL_END_TXN,
            )
            if response.producer_id >= 0:
                self._ids.current = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        if bump:
            await self._take_identity()
        self.error = None
        self._become(S.READY)

    async def _take_identity(self) -> None:
        """InitProducerId: the first time for an id, later for the next epoch of the one we have (KIP-360)."""
        mine = self._ids.current or ProducerIdAndEpoch(-1, -1)
        timeout = self._config.transaction_timeout_ms
        response = await self.ask(
            InitProducerIdRequest(self.transactional_id, timeout, *mine),
            InitProducerIdResponse,
            lambda response: [response.error_code],
        )
        self._ids.current = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        node = await self._coordinators.find(*self._home)
        self._second_protocol = self._client.transaction_version(node) >= 2

    async def _join(self) -> None:
        """Adds partitions to the transaction, as many at once as there are."""
        while self._joining and self.state in (S.IN_TRANSACTION, S.COMMITTING):
            assert self._ids.current is not None
            queues = tuple(self._joining)
            partitions: dict[str, list[int]] = {}
            for queue in queues:
                partitions.setdefault(queue.topic, []).append(queue.partition)
            request = AddPartitionsToTxnRequest(
                [],
                self.transactional_id,
                *self._ids.current,
                [AddPartitionsToTxnTopic(topic, indexes) for topic, indexes in partitions.items()],
            )
            try:
                await self.ask(request, AddPartitionsToTxnResponse, _codes_of_partitions, at_most=NEWEST_ADD_PARTITIONS)
            except KafkaError:
                break  # it has been taken: the transaction, or the producer, has failed
            for queue in queues:
                del self._joining[queue]
                queue.sequences.joined = self._ids.transaction
            self._ready(queues)
        self._joining.clear()
        self._joiner = None

    async def _joined(self) -> None:
        """Returns when no AddPartitionsToTxn is under way: its answer may not come after the end of the transaction."""
        if self._joiner is not None:
            await asyncio.wait([self._joiner])

    async def _drop_offsets(self) -> None:
        """Offsets on their way to a transaction that is being aborted are of no interest to anybody."""
        operation = self._operation
        if operation is not None and operation.get_name() == SEND_OFFSETS:
            operation.cancel()
            await asyncio.wait([operation])
            self._operation = None

    # Asking

    @property
    def _home(self) -> tuple[int, str]:
        return TRANSACTION, self.transactional_id

    async def ask(
        self,
        request: Request,
        response_class: type[R],
        codes: Callable[[R], list[int]],
        *,
        coordinator: tuple[int, str] | None = None,
        at_most: int | None = None,
    ) -> R:
        """Asks the coordinator (of the transactional id, unless another is named) until it answers without an error.

        An error that it makes no sense to ask again after is taken here, whatever it ends, and raised.
        """
        coordinator = coordinator or self._home
        failures = 0
        while True:
            try:
                node = await self._coordinators.find(*coordinator)
                response = await self._client.request(request, response_class, node_id=node, at_most=at_most)
                found = [code for code in codes(response) if code != ErrorCode.NONE]
                if not found:
                    self.last_error = None
                    return response
                # The partitions that were not even tried say nothing of the reason.
                code = next((code for code in found if code != ErrorCode.OPERATION_NOT_ATTEMPTED), found[0])
                raise error_for(code, f"{request.API_KEY.name} for transactional.id {self.transactional_id!r}")
            except KafkaError as error:
                self.last_error = error
                what = consequence(request.API_KEY, error)
                if what is Consequence.ABORT and self.state in (S.IN_TRANSACTION, S.COMMITTING):
                    self._fail_transaction(error)
                    raise self._failure() from error
                if what in (Consequence.ABORT, Consequence.FATAL):
                    self._fail_for_good(named(error))
                    raise self._failure() from error
                if what is Consequence.FIND_COORDINATOR:
                    self._coordinators.forget(*coordinator)
                failures += 1
            await asyncio.sleep(self._backoff(failures))

    def _backoff(self, failures: int) -> float:
        config = self._config
        return backoff(failures, config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000, self._random)

    # States

    def _become(self, state: TransactionState) -> None:
        check_transition(self.state, state)
        self.state = state

    def _require(self, name: str, *states: TransactionState) -> None:
        if self.state in (S.ABORTABLE_ERROR, S.FATAL_ERROR) and self.state not in states:
            raise self._failure()
        if self.state not in states:
            raise IllegalStateException(f"{name} was called, but {self.state.value}")

    def _fail_transaction(self, error: KafkaError) -> None:
        self._become(S.ABORTABLE_ERROR)
        self.error = error
        self._gate(False)
        # Not now: whoever tells of the failure may be in the middle of its own work with these batches.
        asyncio.get_running_loop().call_soon(self._give_up_the_rest)

    def _give_up_the_rest(self) -> None:
        if self.state is S.ABORTABLE_ERROR:
            self._give_up(TransactionAbortedException(f"another record of the transaction failed: {self.error}"))

    def _fail_for_good(self, error: KafkaError) -> None:
        if self.state is not S.FATAL_ERROR:
            self._become(S.FATAL_ERROR)
            self.error = error
            self._gate(False)
            self._fatal(error)

    def _failure(self) -> KafkaError:
        """The state as an exception."""
        assert self.error is not None
        if self.state is S.FATAL_ERROR:
            return self.error.fresh()
        failure = TransactionAbortableException(f"the transaction has failed and must be aborted: {self.error}")
        failure.__cause__ = self.error
        return failure

    async def close(self) -> None:
        """Gives up what is under way; the coordinator will abort it when its time is over."""
        tasks = [task for task in (self._operation, self._joiner) if task is not None and not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._operation is not None and not self._operation.cancelled():
            self._operation.exception()  # whoever waited for it has gone


def _codes_of_partitions(response: AddPartitionsToTxnResponse) -> list[int]:
    return [
        partition.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    ]
