"""The coordinator of a producer's transactions, as the producer sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TypeVar

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import KafkaError, error_for, with_advice
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.client import KafkaClient
from aioproducer.net.coordinators import GROUP, TRANSACTION, Coordinators
from aioproducer.prepared_txn_state import PreparedTxnState
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch, ProducerIds
from aioproducer.producer.transactions.consequences import (
    PARTS,
    Consequence,
    consequence,
    is_nothing_to_abort,
    may_be_done,
    worst,
)
from aioproducer.producer.transactions.marker_pause import MarkerPause
from aioproducer.producer.transactions.protocol import TransactionProtocol
from aioproducer.producer.transactions.two_phases import INIT_PRODUCER_ID_VERSION, explained, is_of_two_phases
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.schema import Request, Response
from aioproducer.timing.backoff import ExponentialBackoff

R = TypeVar("R", bound=Response)

FIRST_INIT_WITH_IDENTITY = 3
BUSY_BACKOFF = 0.02
"""The back-off, in seconds, while the coordinator still completes the last transaction."""


class TransactionCoordinator:
    """Sends requests to the coordinator, on whatever node it is, until one succeeds; provides the identity for writes.

    ``final(api, error)`` judges each error and returns the one to raise; None means to retry.
    """

    def __init__(
        self,
        config: ProducerConfig,
        client: KafkaClient,
        ids: ProducerIds,
        random: Random,
        *,
        final: Callable[[ApiKey, KafkaError], KafkaError | None],
    ) -> None:
        assert config.transactional_id is not None
        self.transactional_id = config.transactional_id
        self.protocol = TransactionProtocol()
        self.knows = False
        """The coordinator knows the transaction, which must be ended there."""
        self.may_know = False
        """The coordinator may know the transaction: a request was sent, but has no final answer."""
        self.last_error: KafkaError | None = None
        """Its last answer, if that was an error."""
        self.pause = MarkerPause()
        self._config = config
        self._client = client
        self._ids = ids
        self._backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random)
        self._final = final
        self._coordinators = Coordinators(client)
        self._mine = TRANSACTION, self.transactional_id

    # The transaction

    def begun(self) -> None:
        """A new transaction has begun, which it does not know of yet."""
        self.knows = self.may_know = False

    def started(self) -> None:
        """It knows of the transaction now, or will soon."""
        self.knows = True

    def pause_left(self) -> float:
        """Seconds until it should have written the markers of the last transaction; at most 0 if it should by now."""
        return self.pause.over_at() - asyncio.get_running_loop().time()

    async def end(self, *, committed: bool) -> bool:
        """Ends the transaction there; with the second protocol that brings the next epoch. False if it has forgotten
        the transaction to abort, or never knew of it."""
        request = EndTxnRequest(self.transactional_id, *self.identity, committed)
        time = asyncio.get_running_loop().time
        began = time()
        try:
            response = await self.ask(request, EndTxnResponse, lambda response: [response.error_code])
        except KafkaError as error:
            if committed or not is_nothing_to_abort(error, knows=self.knows):
                raise
            self._ids.in_doubt = True  # an unknown transaction needs no abort, but another producer id
            return False
        now = time()
        self.pause.ended(now - began, now)
        if response.producer_id >= 0:
            self._ids.given(ProducerIdAndEpoch(response.producer_id, response.producer_epoch))
        return True

    def partitions_missing(self) -> None:
        """It has added no partition, because it does not know some of them."""
        self.may_know = True  # a coordinator could have added the others
        api = ApiKey.ADD_PARTITIONS_TO_TXN
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.last_error = error_for(code, self._message(api, code))

    # The producer's identity there

    @property
    def identity(self) -> ProducerIdAndEpoch:
        assert self._ids.current is not None
        return self._ids.current

    async def take_identity(self, *, keep_prepared_txn: bool = False) -> PreparedTxnState:
        """InitProducerId: the first time for an id, later for the next epoch of the one we have (KIP-360).

        Returns the transaction that is open and was kept, if that was asked for (KIP-939).
        """
        mine = self._ids.current
        if mine is None or not self._client.speaks(self._node(), ApiKey.INIT_PRODUCER_ID, FIRST_INIT_WITH_IDENTITY):
            mine = ProducerIdAndEpoch(-1, -1)  # a broker before 2.5 assigns the next epoch without a check
        response = await self.ask(
            InitProducerIdRequest(
                self.transactional_id,
                self._config.transaction_timeout_ms,
                *mine,
                self._config.transaction_two_phase_commit_enable,
                keep_prepared_txn,
            ),
            InitProducerIdResponse,
            lambda response: [response.error_code],
        )
        self._ids.given(ProducerIdAndEpoch(response.producer_id, response.producer_epoch))
        self.follow_feature()
        return PreparedTxnState(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)

    def follow_feature(self) -> bool:
        """Switches to the protocol that the cluster has finalized; returns whether that needs another epoch."""
        return self.protocol.follow(self._client.transaction_version(self._node()))

    def _node(self) -> int | None:
        return self._coordinators.known(*self._mine)

    # Requests

    async def ask(
        self,
        request: Request,
        response_class: type[R],
        codes: Callable[[R], list[int]],
        *,
        group: str | None = None,
    ) -> R:
        """The first answer without an error; ``codes`` extracts an answer's codes.

        With ``group``, the request goes to that group's coordinator.
        """
        api = request.API_KEY
        coordinator = self._mine if group is None else (GROUP, group)
        at_most = INIT_PRODUCER_ID_VERSION if is_of_two_phases(request) else self.protocol.newest(api)
        failures = 0
        time = asyncio.get_running_loop().time
        while True:
            asked_at = time()
            try:
                node = await self._coordinators.find(*coordinator)
                response = await self._client.request(request, response_class, node_id=node, at_most=at_most)
                code = worst(api, codes(response))
                if code is ErrorCode.NONE:
                    self.last_error = None
                    if api in PARTS:
                        self.pause.added(asked_at)
                    return response
                raise error_for(code, self._message(api, code))
            except KafkaError as failed:
                error = explained(request, failed)
                self.last_error = error
                self.may_know |= api in PARTS and may_be_done(api, error)
                final = self._final(api, error)
                if final is not None:
                    raise final from error
                if consequence(api, error) is Consequence.FIND_COORDINATOR:
                    self._coordinators.forget(*coordinator)
                failures += 1
                wait = self._backoff.wait(failures)
                if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                    self.pause.refused(asked_at)
                    if not self.knows:
                        wait = min(wait, BUSY_BACKOFF)
            await asyncio.sleep(wait)

    def _message(self, api: ApiKey, code: int) -> str:
        # Coordinators before 2.7 use one code for both.
        code = ErrorCode.PRODUCER_FENCED if code == ErrorCode.INVALID_PRODUCER_EPOCH else code
        return f"{api.name} for transactional.id {self.transactional_id!r}: {with_advice('', code)}"
