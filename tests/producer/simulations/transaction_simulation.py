"""The rules of the producer within transactions of both protocols, and a coordinator that takes nobody's word."""

from __future__ import annotations

from aioproducer.errors import KafkaError, TransactionAbortedException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.transactions.state import TransactionState, check_transition

from . import broker_model
from .rules_simulation import Place, RulesSimulation
from .standing_loop import sequences_of

S = TransactionState


class TransactionSimulation(RulesSimulation):
    """As ``TransactionManager`` does it, with calls in place of requests."""

    def __init__(self, *, linger: float, max_in_flight: int, protocol: int) -> None:
        self.second_protocol = protocol == 2
        self.state = S.READY
        self.joining: dict[PartitionQueue, None] = {}
        self.started = False
        self.given_up = False
        self.settling = False
        self.sent_in: dict[bytes, int] = {}
        self.outcomes: dict[int, bool] = {}
        """Of each transaction that has ended: whether it was committed."""
        self.identity = ProducerIdAndEpoch(1, 0)
        self.partitions: set[Place] = set()
        """What the coordinator knows to be a part of the transaction that is open."""
        super().__init__(linger=linger, max_in_flight=max_in_flight, idempotent=True, auto=False)
        self.ids.transactional = True
        self.ids.given(self.identity)

    def _become(self, state: TransactionState) -> None:
        check_transition(self.state, state)
        self.state = state

    # What users do

    def begin(self) -> None:
        self._become(S.IN_TRANSACTION)
        self.ids.transaction += 1
        self.started = self.given_up = False

    def send(self, place: Place, size: int) -> None:
        if self.state is S.IN_TRANSACTION:
            self.sent_in[b"%08d" % (self.count + 1)] = self.ids.transaction
            super().send(place, size)

    def commit(self) -> None:
        self._become(S.COMMITTING)
        self.flush()

    def abort(self) -> None:
        self._become(S.ABORTING)
        self._give_up(TransactionAbortedException("aborted"))
        self.flush()

    def _give_up(self, error: KafkaError) -> None:
        self.waiting.clear()
        self.completer.give_up_waiting(error)
        while self.completer.give_up_more():
            pass
        self.woken = True

    # As the manager and the Sender

    def batch_opened(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        super().batch_opened(queue, batch)
        if sequences_of(queue).joined != self.ids.transaction:
            self.joining[queue] = None
            if self.second_protocol:
                self._joined()

    def _joined(self) -> None:
        self.started = True
        for queue in self.joining:
            sequences_of(queue).joined = self.ids.transaction
            self.schedule.ready.add(queue)
        self.joining.clear()
        self.woken = True

    def join(self, *, answered: bool) -> None:
        """AddPartitionsToTxn gets to the coordinator, and its answer perhaps to us."""
        self.partitions.update((queue.topic, queue.partition) for queue in self.joining)
        if answered:
            self._joined()
        else:
            self.ids.in_doubt = True

    def ends(self) -> bool:
        """Whether a commit or an abort flushes."""
        return self.state in (S.COMMITTING, S.ABORTING)

    def _batch_failed(self, error: KafkaError) -> None:
        assert error.code is not ErrorCode.INVALID_PRODUCER_EPOCH, "nobody has fenced us"
        if self.state in (S.IN_TRANSACTION, S.COMMITTING):
            if self.ends():
                self.end_flush()
            self._become(S.ABORTABLE_ERROR)
            self.woken = True

    def turn(self) -> None:
        if self.state is S.ABORTABLE_ERROR and not self.given_up:
            self.given_up = True
            self._give_up(TransactionAbortedException("another record failed"))
        if self.settling:
            self.join(answered=True)
        super().turn()

    def may_end(self) -> bool:
        return self.ends() and not self.completer.incomplete and not self.waiting

    def end(self) -> None:
        """EndTxn, if the coordinator has to be told, and InitProducerId, if an epoch is due."""
        self.end_flush()
        self.joining.clear()
        committed = self.state is S.COMMITTING
        if self.started:
            self._end_at_coordinator(committed=committed, bump=self.second_protocol)
        if self.ids.in_doubt:
            self._end_at_coordinator(committed=False, bump=True)
        self.outcomes[self.ids.transaction] = committed
        self._become(S.READY)

    # The coordinator and the brokers

    def _end_at_coordinator(self, *, committed: bool, bump: bool) -> None:
        if bump:
            self.identity = ProducerIdAndEpoch(self.identity.producer_id, self.identity.epoch + 1)
            self.ids.given(self.identity)
            for place in self.partitions:
                self.logs[place].bump(*self.identity)
        self.partitions.clear()

    def append_to_log(self, place: Place, request: broker_model.Request, remembered: int) -> tuple[ErrorCode, int]:
        if (request.producer_id, request.epoch) != self.identity:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if self.second_protocol:
            self.partitions.add(place)
        elif place not in self.partitions:
            return ErrorCode.INVALID_TXN_STATE, -1
        before = len(self.logs[place].log)
        answer = super().append_to_log(place, request, remembered)
        for value in self.logs[place].log[before:]:
            assert self.state is not S.READY
            assert self.sent_in[value] == self.ids.transaction, "a record slipped into another transaction"
        return answer

    # What must hold

    def settle(self) -> None:
        for _ in range(2):
            if self.state is S.IN_TRANSACTION:
                self.commit()
            elif self.state is S.ABORTABLE_ERROR:
                self.abort()
            self.settling = True
            super().settle()
            if self.may_end():
                self.end()
        assert self.state is S.READY, "a transaction has no end"

    def check_end(self) -> None:
        super().check_end()
        for place, deliveries in self.deliveries.items():
            for value in deliveries:
                if self.outcomes[self.sent_in[value]]:
                    assert value in self.logs[place].log, "a committed record is lost"
