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
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from random import Random
from typing import Any, TypeVar

from aioproducer.backoff import backoff
from aioproducer.config import ProducerConfig
from aioproducer.error_code import ErrorCode
from aioproducer.errors import (
    IllegalStateException,
    KafkaError,
    TimeoutException,
    TransactionAbortableException,
    TransactionAbortedException,
    error_for,
    with_advice,
)
from aioproducer.net.client import KafkaClient
from aioproducer.net.coordinators import TRANSACTION, Coordinators
from aioproducer.producer.operation import Operation
from aioproducer.producer.partition_queue import PartitionQueue
from aioproducer.producer.sequences import ProducerIdAndEpoch, ProducerIds
from aioproducer.producer.transaction_errors import (
    FATAL_FOR_BATCHES,
    PARTS,
    Consequence,
    consequence,
    is_forgotten,
    named,
    not_aborted,
    worst,
)
from aioproducer.producer.transaction_offsets import Offsets, TransactionOffsets
from aioproducer.producer.transaction_partitions import TransactionPartitions
from aioproducer.producer.transaction_state import TransactionState
from aioproducer.producer.transaction_status import TransactionStatus
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.schema import Request, Response
from aioproducer.types import ConsumerGroupMetadata

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Response)

S = TransactionState

FIRST_INIT_WITH_IDENTITY = 3
LAST_FIRST_PROTOCOL_END_TXN = 4
LAST_FIRST_PROTOCOL_PRODUCE = 11

COMMIT = "commit_transaction"

BUSY_BACKOFF = 0.02
"""Seconds until a coordinator that still completes the last transaction is asked again to begin the next."""


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
        self.status = TransactionStatus(self.transactional_id)
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
        self._coordinators = Coordinators(client)
        self._home = TRANSACTION, self.transactional_id
        self._partitions = TransactionPartitions(self, spawn, self._joined)
        self._operation: Operation | None = None
        self._offsets = TransactionOffsets(self)
        self._started = False
        """The coordinator knows of the transaction, and has to be told of its end."""
        self.second_protocol = False
        """Whether writing to a partition makes it a part of the transaction, and each end brings the next epoch."""

    # What users call

    async def init(self) -> None:
        await self._operate("init_transactions", self._init, S.INITIALIZING, S.UNINITIALIZED)

    def begin(self) -> None:
        self._settle("begin_transaction")
        self.status.require("begin_transaction", S.READY)
        self.status.become(S.IN_TRANSACTION)
        self._started = False
        self._ids.transaction += 1
        self._gate(True)

    async def send_offsets(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        await self._offsets.send(offsets, group)

    async def commit(self) -> None:
        self._check_ended(self._offsets.operation, COMMIT)
        await self._operate(COMMIT, self._commit, S.COMMITTING, S.IN_TRANSACTION)

    async def abort(self) -> None:
        await self._operate("abort_transaction", self._abort, S.ABORTING, S.IN_TRANSACTION, S.ABORTABLE_ERROR)

    async def finish(self) -> None:
        """For a producer that is closed in the middle of a transaction: carries on with its end, or aborts it.

        What failed, its records tell.
        """
        while self.is_open() or self.status.state in (S.COMMITTING, S.ABORTING):
            # A commit that has failed may still wait for its records, and nothing else can begin before its end.
            commits = self._operation is not None and self._operation.name == COMMIT
            try:
                await (self.commit() if commits else self.abort())
            except KafkaError as error:
                log.warning("the transaction of %r was not ended as it should: %s", self.transactional_id, error)
                if not (commits and isinstance(error, TransactionAbortableException)):
                    return

    def is_open(self) -> bool:
        return self.status.is_open()

    def why_no_records(self) -> str:
        return self.status.why_no_records()

    # What the Sender calls

    @property
    def newest_produce(self) -> int | None:
        return None if self.second_protocol else LAST_FIRST_PROTOCOL_PRODUCE

    def partition_used(self, queue: PartitionQueue) -> None:
        """A batch was opened for the partition: it has to be part of the transaction."""
        if queue.sequences.joined == self._ids.transaction:
            return
        if self.second_protocol:
            self._joined((queue,))
        else:
            self._partitions.add(queue)

    def batch_failed(self, error: KafkaError) -> None:
        """A batch of the transaction has ended in failure, and the transaction with it."""
        if error.code in FATAL_FOR_BATCHES:
            self._fail_for_good(named(error))
        elif self.status.goes_on():
            self._fail_transaction(error)

    def producer_failed(self, error: KafkaError) -> None:
        """Nothing will be sent any more: everything that waits is told."""
        if self.status.state is not S.FATAL_ERROR:
            self.status.become(S.FATAL_ERROR, error)
            self._gate(False)
            for operation in self._operations():
                operation.cancel(error)

    def close(self) -> None:
        """Gives up what is under way; the coordinator will abort it when its time is over."""
        self.status.closed = True
        for operation in self._operations():
            operation.cancel(IllegalStateException(f"{operation.name} was given up: the producer was closed"))

    async def closed(self) -> None:
        """Returns when what was given up has ended."""
        for operation in self._operations():
            await operation.settled()
            operation.leave()

    # Operations

    def _operations(self) -> list[Operation]:
        return [one for one in (self._operation, self._offsets.operation) if one is not None]

    async def _operate(
        self,
        name: str,
        work: Callable[[], Coroutine[Any, Any, None]],
        becomes: TransactionState,
        *begins_in: TransactionState,
    ) -> None:
        """Starts an operation, or goes on waiting for the one of this name, for at most max.block.ms."""
        if self._operation is None or self._operation.name != name:
            self._settle(name)
            self.status.require(name, *begins_in)
            self.status.become(becomes)  # at once: a commit that was asked for may not look like none
            self._operation = Operation(name, work())
        operation = self._operation
        await self.wait(operation, self.until())
        if self._operation is operation:
            self._operation = None
        operation.result()

    def until(self) -> float:
        """When max.block.ms will be over, by the clock of the loop."""
        return asyncio.get_running_loop().time() + self._config.max_block_ms / 1000

    async def wait(self, operation: Operation, until: float) -> None:
        """Returns when it has ended; TimeoutException if it has not by then."""
        if not await operation.ended(until):
            last = f"; the last error was: {self.last_error}" if self.last_error is not None else ""
            raise TimeoutException(
                f"{operation.name} has not ended within max.block.ms={self._config.max_block_ms}: it goes on, and "
                f"calling it again waits for its end{last}"
            )

    def _settle(self, name: str) -> None:
        """What was done without anybody waiting for its end does not stand in the way; what is under way does."""
        self._check_ended(self._operation, name)
        if self._operation is not None:
            self._operation.leave()
            self._operation = None

    def _check_ended(self, operation: Operation | None, before: str) -> None:
        if operation is not None and not operation.done():
            raise IllegalStateException(
                f"{operation.name} has not ended; call it again, and wait for its end, before {before}"
            )

    async def _init(self) -> None:
        await self._take_identity()
        self.status.error = None
        self.status.become(S.READY)

    async def _commit(self) -> None:
        self._gate(False)
        await self._flush()
        if self.status.state is not S.COMMITTING:
            raise self.status.failure()
        await self._end(committed=True)

    async def _abort(self) -> None:
        self._gate(False)
        self._give_up(self.status.aborted())
        await self._flush()
        await self._end(committed=False)

    async def _end(self, *, committed: bool) -> None:
        """Tells the coordinator, if it knows of the transaction, and sees to the epoch of the next.

        With the first protocol an epoch lasts until sequences under it are in doubt.
        """
        await self._partitions.settled()
        await self._offsets.settled()
        if self._started:
            await self._end_at_coordinator(committed=committed)
        self.status.error = None
        if self._follow_feature() or self._ids.in_doubt:
            try:
                await self._take_identity()
            except KafkaError as error:
                # The transaction has ended all the same; that there will be no other, the next call tells.
                log.warning("%r has no epoch for another transaction: %s", self.transactional_id, error)
                return
        self.status.become(S.READY)

    async def _end_at_coordinator(self, *, committed: bool) -> None:
        try:
            response = await self.ask(
                EndTxnRequest(self.transactional_id, *self.identity, committed),
                EndTxnResponse,
                lambda response: [response.error_code],
                None if self.second_protocol else LAST_FIRST_PROTOCOL_END_TXN,
            )
        except KafkaError as error:
            if self.status.state is not S.ABORTING or not is_forgotten(error):
                raise
            self._ids.in_doubt = True  # what the coordinator does not know needs no abort, but another producer id
        else:
            if response.producer_id >= 0:
                self._ids.given(ProducerIdAndEpoch(response.producer_id, response.producer_epoch))

    async def _take_identity(self) -> None:
        """InitProducerId: the first time for an id, later for the next epoch of the one we have (KIP-360)."""
        mine = self._ids.current
        home = self._coordinators.known(*self._home)
        if mine is None or not self._client.speaks(home, ApiKey.INIT_PRODUCER_ID, FIRST_INIT_WITH_IDENTITY):
            mine = ProducerIdAndEpoch(-1, -1)  # a broker before 2.5 gives the next epoch to whoever asks
        timeout = self._config.transaction_timeout_ms
        response = await self.ask(
            InitProducerIdRequest(self.transactional_id, timeout, *mine),
            InitProducerIdResponse,
            lambda response: [response.error_code],
        )
        self._ids.given(ProducerIdAndEpoch(response.producer_id, response.producer_epoch))
        self._follow_feature()

    def _follow_feature(self) -> bool:
        """Takes up the protocol that the cluster has finalized by now; whether that is the second, after the first.

        It begins with an epoch under which nothing of the first was written.
        """
        version = self._client.transaction_version(self._coordinators.known(*self._home))
        if version is None:
            return False
        before, self.second_protocol = self.second_protocol, version >= 2
        return self.second_protocol and not before

    # What the parts of a transaction ask and tell

    @property
    def identity(self) -> ProducerIdAndEpoch:
        assert self._ids.current is not None
        return self._ids.current

    def started(self) -> None:
        """The coordinator knows of the transaction from now on, or may know."""
        self._started = True

    def _joined(self, queues: Iterable[PartitionQueue]) -> None:
        self.started()
        for queue in queues:
            queue.sequences.joined = self._ids.transaction
        self._ready(queues)

    async def ask(
        self,
        request: Request,
        response_class: type[R],
        codes: Callable[[R], list[int]],
        at_most: int | None = None,
        *,
        coordinator: tuple[int, str] | None = None,
    ) -> R:
        """Asks the coordinator (of the transactional id, unless another is named) until it answers without an error.

        An error that it makes no sense to ask again after is taken here, whatever it ends, and raised.
        """
        api = request.API_KEY
        coordinator = coordinator or self._home
        failures = 0
        while True:
            try:
                node = await self._coordinators.find(*coordinator)
                response = await self._client.request(request, response_class, node_id=node, at_most=at_most)
                code = worst(api, codes(response))
                if code is ErrorCode.NONE:
                    self.last_error = None
                    return response
                raise error_for(code, self._told(api, code))
            except KafkaError as error:
                self.last_error = error
                what = consequence(api, error)
                if api in PARTS and (what in (Consequence.ABORT, Consequence.FATAL) or not self.status.goes_on()):
                    self._ids.in_doubt = True  # who knows what an earlier try has done
                if what in (Consequence.ABORT, Consequence.REFUSED, Consequence.FATAL):
                    raise self._taken(api, what, error) from error
                if api in PARTS and not self.status.goes_on():
                    raise self.status.failure() from error
                if what is Consequence.FIND_COORDINATOR:
                    self._coordinators.forget(*coordinator)
                failures += 1
                wait = self._backoff(failures)
                if error.code is ErrorCode.CONCURRENT_TRANSACTIONS and not self._started:
                    wait = min(wait, BUSY_BACKOFF)
            await asyncio.sleep(wait)

    def _told(self, api: ApiKey, code: int) -> str:
        # Coordinators before 2.7 have but one word for both.
        code = ErrorCode.PRODUCER_FENCED if code == ErrorCode.INVALID_PRODUCER_EPOCH else code
        return f"{api.name} for transactional.id {self.transactional_id!r}: {with_advice('', code)}"

    def _backoff(self, failures: int) -> float:
        config = self._config
        return backoff(failures, config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000, self._random)

    def _taken(self, api: ApiKey, what: Consequence, error: KafkaError) -> KafkaError:
        """An error that is final has its consequence; what whoever asked is told."""
        if what is Consequence.REFUSED:
            self.status.become(S.UNINITIALIZED, error)
            return error.fresh()
        if what is Consequence.ABORT:
            if self.status.goes_on():
                self._fail_transaction(error)
            elif self.status.state is S.ABORTING and (api in PARTS or is_forgotten(error)):
                return error.fresh()
        if what is Consequence.FATAL or self.status.state is not S.ABORTABLE_ERROR:
            aborting = what is Consequence.ABORT and self.status.state is S.ABORTING
            self._fail_for_good(not_aborted(error) if aborting else named(error))
        return self.status.failure()

    # States

    def _fail_transaction(self, error: KafkaError) -> None:
        self.status.become(S.ABORTABLE_ERROR, error)
        self._gate(False)
        # Not now: whoever tells of the failure may be in the middle of its own work with these batches.
        asyncio.get_running_loop().call_soon(self._give_up_the_rest)

    def _give_up_the_rest(self) -> None:
        if self.status.state is S.ABORTABLE_ERROR:
            self._give_up(TransactionAbortedException(f"another record of the transaction failed: {self.status.error}"))

    def _fail_for_good(self, error: KafkaError) -> None:
        if self.status.state is not S.FATAL_ERROR:
            self._fatal(error)
