"""The faults of a simulated run: their kinds, and where each strikes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from aioproducer.broker import AppendFault, Faults, Partition, PartitionLog, ReceivedRequest, RequestFault, Topic
from aioproducer.broker.state.transaction_metadata import TransactionMetadata, TransactionState
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.idempotence.sequences import MAX_EPOCH
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.describe_producers import DescribeProducersResponse
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.records.batch_layout import MAX_SEQUENCE
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.simulation.loop import EPOCH_MS
from aioproducer.testing.simulation.network.endpoint import Endpoint
from aioproducer.testing.simulation.network.network import Address, Fate, NetworkFaults
from aioproducer.testing.simulation.releases import Releases
from aioproducer.testing.simulation.trace import Trace

KINDS: Mapping[str, str] = {
    "refuse": "connects are refused",
    "hang": "connects are never answered",
    "dns": "the brokers' name cannot be resolved",
    "reset": "connections are reset: before a write, in the middle of a frame, after it",
    "lost": "brokers drop a connection in place of handling a request",
    "unanswered": "brokers handle a request and drop the connection in place of a response",
    "queue": "requests wait in a broker's queue, even beyond the end of their connection",
    "late": "responses come late, maybe too late",
    "codes": "produce errors, some of them after the append",
    "garbage": "bytes that are no response, answers that leave partitions out",
    "ids": "errors in place of a producer id",
    "epochs": "producer ids of which hardly an epoch is left",
    "metadata": "metadata that is missing or out of date",
    "throttle": "brokers throttle the producer",
    "leaders": "leaders move",
    "coordinators": "coordinators of transactions and groups move, or are not ready",
    "restarts": "brokers stop and start again, maybe on another port",
    "upgrades": "brokers are replaced by some of newer and older releases",
    "outages": "a broker can neither be reached nor reach others for a while",
    "stalls": "the event loop is held up",
    "clock": "the clock that stamps records jumps",
    "recreate": "topics are deleted and created anew",
    "growth": "topics get more partitions, of which brokers may not have heard yet",
    "replicas": "replicas leave those in sync, come back, or are elected without what was not committed",
    "truncation": "replicas are elected that have not copied all, and what they lack is lost",
    "retention": "logs lose their beginning",
    "expiry": "brokers forget producers that have written nothing, or only old records, for long",
    "windows": "brokers remember more or fewer batches of a producer than before",
    "limits": "topics take larger or only smaller batches than before",
}

# Errors that a broker answers instead of appending (``ReplicaManager``, ``LogValidator``, ``UnifiedLog``,
# ``KafkaApis``). Sequence errors are not among them: they follow from the producer state of the log.
REFUSED_FOR_NOW = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
)
REFUSED_FOR_GOOD = (
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
# Errors after the broker's own append (``DelayedProduce``: the replicas are late, or the leader has changed).
APPENDED = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
APPENDED_FOR_GOOD = (ErrorCode.UNKNOWN_SERVER_ERROR,)
NO_PRODUCER_ID_FOR_NOW = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
)
NO_PRODUCER_ID_FOR_GOOD = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_SERVER_ERROR)
# Errors that any coordinator answers: the call can be retried, alone or after a look-up of the coordinator.
NO_COORDINATOR_FOR_NOW = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
NO_COORDINATOR_FOR_GOOD = (
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
NO_METADATA_FOR_NOW = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
NO_METADATA_FOR_GOOD = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION)

PRODUCE_SINCE_2_4 = 8
"""Brokers of older versions forget a producer when the last of its records is deleted (KIP-360)."""
PRODUCE_SINCE_2_5 = 9
"""Brokers of older versions refuse the next batch of a producer that they do not know (KIP-360)."""
EXPIRATION_MS = 24 * 3600 * 1000
"""The default of ``producer.id.expiration.ms``."""
FOR_GOOD = 0.1
"""The share of errors that are not retriable."""


class SimulatedFaults(Faults, NetworkFaults):
    """Faults at the rate of each kind, until :attr:`over` is set. ``late`` is the typical delay in seconds."""

    def __init__(self, random: Random, rates: Mapping[str, float], late: float, trace: Trace) -> None:
        self.over = False
        self.for_good = FOR_GOOD
        self.may_read = True
        """Whether the producers have Read on the topics, which DescribeProducers needs."""
        self.fatal = False
        """Whether the producers got an error that makes them unusable."""
        self.on_batch: Callable[[Partition, RecordBatch], object] = lambda partition, batch: None
        """Called with every batch before it is appended or refused."""
        self.releases = Releases()
        self.on_too_new: Callable[[str], object] = lambda what: None
        """Called for requests in versions that the node does not support."""
        self.labour = 0.0
        """Seconds that a broker takes for each Produce request, also after the faults."""
        self.expiry = 0.0
        """Seconds after which a producer may be forgotten."""
        self.transaction: Callable[[str], TransactionMetadata | None] = lambda transactional_id: None
        """Returns the coordinator's state of a transactional id."""
        self.now: Callable[[], float] = float
        self._written: dict[tuple[PartitionLog, int], float] = {}
        self._random = random
        self._rates = rates
        self._late = late
        self._trace = trace
        self._outages: dict[int, float] = {}
        self._leaders: dict[Partition, list[tuple[int, int]]] = defaultdict(list)
        self._sizes: dict[Topic, int] = {}

    def strikes(self, kind: str) -> bool:
        rate = self._rates.get(kind, 0.0)
        return rate > 0 and not self.over and self._random.random() < rate

    def _one_of(self, codes: tuple[ErrorCode, ...]) -> ErrorCode:
        return self._random.choice(codes)

    def _time(self) -> float:
        """A delay: mostly short, sometimes about as long as the time-out of a request, or longer."""
        return self._random.choice((0.01, 0.1, 0.7, 1.0, 1.5)) * self._late * self._random.uniform(0.8, 1.2)

    # The network

    def connecting(self, host: str) -> Fate:
        if self.strikes("refuse"):
            return Fate.REFUSED
        if self.strikes("hang"):
            return Fate.LOST
        return Fate.UNKNOWN_HOST if self.strikes("dns") else Fate.ARRIVE

    def cut(self, end: Endpoint, count: int) -> int | None:
        if not self.strikes("reset"):
            return None
        return self._random.choice((0, count, self._random.randrange(count)))

    def unreachable_until(self, server: Address) -> float:
        return self._outages.get(server[1], 0.0)

    def cut_off(self, port: int, until: float) -> None:
        """Cuts the broker on this port off from the network until then."""
        self._outages[port] = until

    # The brokers

    def on_request(self, request: ReceivedRequest) -> RequestFault | None:
        header = request.header
        if header.api_version > self.releases.newest(request.node_id, header.api_key):
            self.on_too_new(f"node {request.node_id}: {ApiKey(header.api_key).name} version {header.api_version}")
        fault = self._request_fault(header.api_key)
        self._trace("request", request.node_id, ApiKey(header.api_key).name, header.correlation_id, fault or "")
        edit = self._edit(request)
        return fault if edit is None else replace(fault or RequestFault(), edit=edit)

    def _edit(self, request: ReceivedRequest) -> Callable[[Any], object] | None:
        api_key = request.header.api_key
        if api_key == ApiKey.API_VERSIONS:
            return partial(self.releases.limit_response, request.node_id)
        if api_key == ApiKey.INIT_PRODUCER_ID and "epochs" in self._rates and not self.over:
            return partial(self._use_up_epochs, request)
        return _unauthorized if api_key == ApiKey.DESCRIBE_PRODUCERS and not self.may_read else None

    def _use_up_epochs(self, request: ReceivedRequest, response: InitProducerIdResponse) -> None:
        if response.error_code != ErrorCode.NONE:
            return
        message = request.message()
        assert isinstance(message, InitProducerIdRequest)
        metadata = self.transaction(message.transactional_id) if message.transactional_id else None
        if metadata is None:
            response.producer_epoch = MAX_EPOCH - self._random.randrange(3)
        elif metadata.identity == (response.producer_id, response.producer_epoch) and response.producer_epoch < 1000:
            # The last epoch is the coordinator's own.
            response.producer_epoch = metadata.producer_epoch = MAX_EPOCH - 1 - self._random.randrange(5)

    def _request_fault(self, api_key: int) -> RequestFault | None:
        if self.strikes("lost"):
            return RequestFault(lost=True)
        if api_key == ApiKey.INIT_PRODUCER_ID and self.strikes("ids"):
            if self._random.random() < self.for_good:
                self.fatal = True
                return RequestFault(code=self._one_of(NO_PRODUCER_ID_FOR_GOOD))
            return RequestFault(code=self._one_of(NO_PRODUCER_ID_FOR_NOW))
        fault = RequestFault(
            unanswered=self.strikes("unanswered"),
            # A broker handles received requests within request.timeout.ms of the end of their connection.
            handled_after=self._labour(api_key)
            + (min(self._time(), 0.9 * self._late - self.labour) if self.strikes("queue") else 0.0),
            answered_after=self._time() if self.strikes("late") else 0.0,
            garbage=self._garbage() if self.strikes("garbage") else None,
        )
        return None if fault == RequestFault() else fault

    def _labour(self, api_key: int) -> float:
        return self.labour if api_key == ApiKey.PRODUCE else 0.0

    def _garbage(self) -> bytes:
        """A frame that is too long, has a negative length, answers no request, or is incomplete."""
        random = self._random
        size, body = random.choice(
            (
                (2**31 - 1, b"?" * 20),
                (-1, b""),
                (0x48545450, b"/1.1 400"),
                (20, b"?" * 20),
                (4, b"\x7f" * 4),
                (100, b"?"),
            )
        )
        return size.to_bytes(4, "big", signed=True) + body

    def leaves_out(self, node_id: int) -> bool:
        return self.strikes("garbage")

    def clock_jump(self) -> float:
        """The new offset of the wall clock in seconds, or 0 if it stays as it is."""
        return self._random.uniform(-300, 300) if self.strikes("clock") else 0.0

    def on_append(
        self, node_id: int, partition: Partition, batch: RecordBatch, client_id: str | None
    ) -> AppendFault | None:
        self.on_batch(partition, batch)
        identity = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
        if "expiry" in self._rates:
            self._forget(partition.log, batch)
        state = partition.log.producer_state
        repeated = state.find_duplicate(*identity, batch.last_sequence) is not None
        fault = self._append_fault(repeated) if self.strikes("codes") else None
        if fault is None and batch.base_sequence > 0 and state.entry(batch.producer_id) is None:
            fault = self._unknown_producer(node_id)
        self._trace("batch", node_id, partition, *identity, batch.count, "again" if repeated else "", *(fault or ()))
        return fault

    def _append_fault(self, repeated: bool) -> AppendFault:
        kind = self._random.random()
        if repeated and kind < 0.2:
            # The broker knows that it has the batch, but not at which offset.
            return AppendFault(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, appended=True)
        if kind < 0.4:
            for_good = self._random.random() < self.for_good
            return AppendFault(self._one_of(APPENDED_FOR_GOOD if for_good else APPENDED), appended=True)
        if kind < 0.4 + self.for_good:
            return AppendFault(self._one_of(REFUSED_FOR_GOOD), appended=False)
        return AppendFault(self._one_of(REFUSED_FOR_NOW), appended=False)

    def _forget(self, log: PartitionLog, batch: RecordBatch) -> None:
        """Forgets the batch's producer if it was idle for long, but never in the middle of a transaction. Kafka does so
        later, when it checks all producers."""
        producer_id = batch.producer_id
        last, now = self._written.get((log, producer_id)), self.now()
        self._written[log, producer_id] = now
        if producer_id in log.open_transactions:
            return
        idle = last is not None and now - last > self.expiry
        if (idle or self._wrote_old_records(log, batch)) and self.strikes("expiry"):
            self._trace("forget", log.name, producer_id)
            log.producer_state.expire(producer_id)

    def _wrote_old_records(self, log: PartitionLog, batch: RecordBatch) -> bool:
        """Whether the last batch has an old timestamp: Kafka considers its producer idle since then.

        False for a batch that is in the log, and for one of an earlier epoch: a broker that has forgotten the producer
        appends such a batch again, and no producer can prevent that. False also where logs are cut off: a log may then
        end with old records, forget their producer, and take any batch first.
        """
        if "truncation" in self._rates:
            return False
        entry = log.producer_state.entry(batch.producer_id)
        if entry is None or not entry.batches or batch.producer_epoch < entry.producer_epoch:
            return False
        ahead = (batch.base_sequence - entry.last_sequence) & MAX_SEQUENCE
        if batch.producer_epoch == entry.producer_epoch and not 0 < ahead <= MAX_SEQUENCE // 2:
            return False
        return entry.batches[-1].timestamp < EPOCH_MS + self.now() * 1000 - EXPIRATION_MS

    def _unknown_producer(self, node_id: int) -> AppendFault | None:
        """The answer to a later batch of a producer that the broker does not know: an error before Kafka 2.5; since
        then the broker appends the batch."""
        if self.releases.newest(node_id, ApiKey.PRODUCE) >= PRODUCE_SINCE_2_5:
            return None
        return AppendFault(ErrorCode.UNKNOWN_PRODUCER_ID, appended=False)

    def throttle_ms(self, node_id: int) -> int:
        return self._random.randrange(1, 200) if self.strikes("throttle") else 0

    def on_topic_metadata(self, node_id: int, topic: str) -> ErrorCode:
        if not self.strikes("metadata"):
            return ErrorCode.NONE
        return self._one_of(NO_METADATA_FOR_GOOD if self._random.random() < self.for_good else NO_METADATA_FOR_NOW)

    def coordinator_error(self, node_id: int, key: str) -> ErrorCode:
        if not self.strikes("coordinators"):
            return ErrorCode.NONE
        for_good = self._random.random() < self.for_good
        code = self._one_of(NO_COORDINATOR_FOR_GOOD if for_good else NO_COORDINATOR_FOR_NOW)
        metadata = self.transaction(key)
        committed = metadata is not None and metadata.state is TransactionState.COMPLETE_COMMIT
        if committed and code is ErrorCode.TRANSACTION_ABORTABLE:
            return ErrorCode.NONE  # a repeated commit gets the same answer as the first
        return code

    def partitions(self, node_id: int, topic: Topic) -> int:
        count = len(topic.partitions)
        first = self._sizes.setdefault(topic, count)
        return self._random.randint(first, count) if self.strikes("growth") else count

    def leader(self, node_id: int, partition: Partition) -> tuple[int, int]:
        known = self._leaders[partition]
        now = (partition.leader, partition.leader_epoch)
        if not known or known[-1] != now:
            known.append(now)
        return self._random.choice(known[-3:]) if self.strikes("metadata") else now


def _unauthorized(response: DescribeProducersResponse) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            partition.error_code, partition.active_producers = ErrorCode.TOPIC_AUTHORIZATION_FAILED, []
