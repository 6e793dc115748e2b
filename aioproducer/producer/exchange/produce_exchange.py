"""One ProduceRequest, from the drained batches to the meaning of the answer for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import KafkaError, NetworkException, error_class
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics import ProducerMetrics
from aioproducer.net.addresses import Address
from aioproducer.net.broker_link import BrokerLink
from aioproducer.net.client import KafkaClient
from aioproducer.net.connection.in_flight_request import InFlightRequest
from aioproducer.net.metadata.cluster import Node
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator, TopicQueues
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.exchange.batch_completer import BatchCompleter
from aioproducer.producer.exchange.produce_request import match_answers, request_start, write_request
from aioproducer.producer.exchange.sealer import Sealer
from aioproducer.producer.scheduling.drain import Drained
from aioproducer.producer.scheduling.scheduling import Scheduling
from aioproducer.producer.scheduling.topic_directory import TopicDirectory
from aioproducer.producer.windows.node_line import NodeLine
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.framing import decoding_response
from aioproducer.protocol.messages.produce import ProduceRequest, ProduceResponse
from aioproducer.protocol.produce_answer import (
    FIRST_WITH_TOPIC_IDS,
    PartitionAnswer,
    ProduceAnswer,
    answer_of,
    read_answer,
)
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.timing.loop_clock import LoopClock
from aioproducer.timing.time_slice import TimeSlice

if TYPE_CHECKING:
    from aioproducer.producer.transactions.transaction_manager import TransactionManager

# Read for every request: looking an enum member up is slow.
_PRODUCE: Final = ApiKey.PRODUCE
_NONE: Final = ErrorCode.NONE

MOST_AT_ONCE: Final = 1 << 16
"""Bytes of an answer that are read in one go: those of 200 partitions, unless it has something to say about records."""

CLOCK_READ_EVERY: Final = 60.0
"""Seconds between readings of the wall clock, which only shows whether records are older than half a day."""

_TOPIC_IS_MISSING: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)

UNKNOWN_OFFSET: Final = -1
"""The base offset of an appended batch whose place the broker does not know (Kafka's ``INVALID_OFFSET``)."""


@final
class InFlightBatches(InFlightRequest):
    """The batches in one request; ``names`` are their topics as written there."""

    def __init__(
        self,
        exchange: ProduceExchange,
        link: BrokerLink,
        line: NodeLine,
        drained: list[Drained],
        names: dict[str, bytes],
        version: i64,
    ) -> None:
        super().__init__(_PRODUCE, version)
        self._exchange = exchange
        self.link = link
        self.line = line
        self.drained = drained
        self.names = names
        self.size: i64 = 0
        """Bytes of its batches on the wire."""
        self.ahead: i64 = 0
        """The bytes of batches that are unanswered on its connection when it is sent, its own too."""
        self.departed: float = exchange.fine_time()
        """When it was sent, by the finest clock."""
        self.requests: i64 = 0
        """The requests with batches that are unanswered then, itself too."""
        self.work: i64 = 0
        """The batches that are unanswered then, its own too."""
        self.place: i64 = 0
        """The requests of any kind that are unanswered then, itself too."""
        self.answer: ProduceAnswer | None = None
        self.answers: list[PartitionAnswer | None] = []
        """Those of its batches, once they are being handled."""
        self.handled: i64 = 0
        """The batches whose end is handled."""

    def body(self) -> list[bytes | memoryview]:
        return write_request(self._exchange.start(self.version), self.drained, self.names, self.version)

    def begin_reading(self, frame: bytes | memoryview) -> bool:
        if len(frame) <= MOST_AT_ONCE:
            return False
        self.decoding = decoding_response(ProduceResponse, self.version, frame)
        return True

    def decoded(self, response: ProduceResponse) -> i64:
        answer = self.answer = answer_of(response, self.version)
        return answer.throttle_time_ms

    def read(self, frame: bytes) -> i64:
        answer = self.answer = read_answer(frame, self.version)
        return answer.throttle_time_ms

    def answered(self) -> bool:
        return self._exchange.answered(self)

    def failed(self, error: KafkaError) -> bool:
        return self._exchange.failed(self, error)


@final
class ProduceExchange:
    """Sends requests and handles their answers; ``wake()`` wakes the Sender."""

    def __init__(
        self,
        config: ProducerConfig,
        client: KafkaClient,
        accumulator: RecordAccumulator,
        completer: BatchCompleter,
        sealer: Sealer,
        topics: TopicDirectory,
        scheduling: Scheduling,
        metrics: ProducerMetrics,
        transactions: TransactionManager | None,
        *,
        wake: Callable[[], object],
    ) -> None:
        self._transactions = transactions
        self._client = client
        self._completer = completer
        self._sealer = sealer
        self._topics = topics
        self._windows = scheduling.windows
        self._lines = scheduling.lines
        self._metrics = metrics
        self._time = accumulator.loop.time
        self.fine_time = LoopClock(accumulator.loop).fine
        self._read_clock = accumulator.now_ms
        self._now_ms: i64 = 0
        """The last reading of the wall clock."""
        self._read_again_at: float = 0.0
        self._wake = wake
        self._pipeline = scheduling.pipeline
        self._acks = config.required_acks
        self._timeout_ms = config.request_timeout_ms
        self._transactional_id = config.transactional_id
        self._starts: dict[int, bytes] = {}
        self._drained = 0
        self._slice = TimeSlice(accumulator.loop)

    def send(self, link: BrokerLink, drained: list[Drained], now: float) -> None:
        """Sends the batches in one request; when it ends, each of them ends or returns to its queue."""
        if now >= self._read_again_at:
            self._now_ms, self._read_again_at = self._read_clock(), now + CLOCK_READ_EVERY
        for one in drained:
            self._prepare(one.queue, one.batch, link, now)
        names, has_ids = _topic_ids(drained, self._topics.topics)
        try:
            version = link.api_versions.latest_usable_version(ProduceRequest, self._newest(has_ids=has_ids))
        except KafkaError as error:
            for one in drained:
                self._completer.ended(one, error.code, str(error), now)
            return
        if version < FIRST_WITH_TOPIC_IDS:
            names = {topic: topic.encode() for topic in names}
            for one in drained:
                if one.queue.sequences is not None:
                    one.queue.sequences.by_name = True
        request = InFlightBatches(self, link, self._lines.of(link.node_id), drained, names, version)
        link.send(request, expect_response=self._acks != 0)
        self._measure(request, now)
        if self._acks == 0:
            for one in drained:
                self._completer.ended(one, _NONE, "", now)
            self._wake()  # parked records may wait for the memory

    def start(self, version: i64) -> bytes:
        """The common head of all requests of this version."""
        start = self._starts.get(version)
        if start is None:
            start = request_start(self._transactional_id, self._acks, self._timeout_ms, version)
            self._starts[version] = start
        return start

    def _newest(self, *, has_ids: bool) -> int | None:
        """The newest allowed version; None for the newest of all."""
        if self._transactions is not None and self._transactions.newest_produce is not None:
            return self._transactions.newest_produce
        return None if has_ids else FIRST_WITH_TOPIC_IDS - 1

    def _prepare(self, queue: PartitionQueue, batch: ProducerBatch, link: BrokerLink, now: float) -> None:
        if batch.drain_order < 0:
            self._drained += 1
            batch.drain_order = self._drained
        sequences = queue.sequences
        if sequences is not None:
            if batch.has_sequence():
                sequences.sent_again(batch, now, self._now_ms)
            else:
                sequences.stamp(batch, now, self._now_ms)
            batch.log = sequences.log
        self._sealer.seal(batch)
        batch.in_flight = True
        batch.attempts += 1
        batch.sent_at = now
        batch.sent_to = link.node_id
        batch.leader_epoch = queue.leader_epoch
        queue.in_flight += 1

    def _measure(self, request: InFlightBatches, now: float) -> None:
        records: i64 = 0
        size: i64 = 0
        for one in request.drained:
            batch = one.batch
            records += batch.count
            uncompressed = batch.size()
            size += uncompressed
            on_the_wire = BATCH_OVERHEAD + len(batch.body)
            request.size += on_the_wire
            self._metrics.batch_sent(
                one.queue.topic,
                records=batch.count,
                size=on_the_wire,
                uncompressed=BATCH_OVERHEAD + uncompressed,
                largest=batch.largest,
                queued_ms=(now - batch.created) * 1000,
                now=now,
            )
        self._metrics.request_sent(records, now)
        if self._acks != 0:
            request.work = request.line.window.sent(len(request.drained), size, now)
            request.requests = request.line.window.unanswered
            request.place = request.link.in_flight()
            request.ahead = request.line.limit.sent(request.size)
        if self._pipeline is not None:
            self._pipeline.sent(request.link.node_id, records, size, now)

    def failed(self, request: InFlightBatches, error: KafkaError) -> bool:
        """There is no answer: the fate of the batches is unknown. Handles that for a turn of the loop, and returns
        whether it is done; otherwise it is to be called again."""
        self._slice.begin()
        now = self._time()
        if request.handled == 0:
            self._begin_failure(request, error, now)
        drained = request.drained
        while request.handled < len(drained):
            one = drained[request.handled]
            request.handled += 1
            self._completer.ended(one, ErrorCode.NETWORK_EXCEPTION, str(error), now)
            if self._slice.over():
                break
        self._wake()
        return request.handled == len(drained)

    def _begin_failure(self, request: InFlightBatches, error: KafkaError, now: float) -> None:
        """Learns what the loss says about the connection."""
        line, size = request.line, request.size
        if self._acks != 0:
            line.window.failed(len(request.drained))
            line.limit.ended(size)
        if request.deadline <= now:
            line.timely.timed_out()
            line.limit.timed_out(size, request.sent_at, now)
        elif isinstance(error.__cause__, NetworkException):
            line.frames.cut_off(size, request.sent_at, now)

    def answered(self, request: InFlightBatches) -> bool:
        """A request has ended, and each of its batches with it: successes in one go, errors, whose handling takes far
        longer, for a turn of the loop. Returns whether all batches have; otherwise it is to be called again."""
        self._slice.begin()
        now = self._time()
        if not request.answers:
            self._begin_answer(request, now)
        link, drained, answers = request.link, request.drained, request.answers
        handled = request.handled
        while handled < len(drained):
            # Counted first: what follows from its end may close the connection, which calls this for the others.
            request.handled = handled + 1
            answer, answers[handled] = answers[handled], None  # what it says about records is freed with it
            succeeded = self._take_answer(drained[handled], answer, link, now)
            handled = request.handled
            if not succeeded and handled < len(drained) and self._slice.over():
                break
        self._wake()
        return handled == len(drained)

    def _begin_answer(self, request: InFlightBatches, now: float) -> None:
        """Learns what the answer says about the broker, and whose answers are in it."""
        answer, link, drained = request.answer, request.link, request.drained
        assert answer is not None
        took = now - request.sent_at
        self._metrics.request_answered(link.node_id, took * 1000, float(answer.throttle_time_ms), now)
        if self._pipeline is not None:
            self._pipeline.answered(link.node_id, took)
        if self._transactions is not None:
            self._transactions.answered(now)
        line = request.line
        line.frames.answered(request.size)
        line.limit.answered(request.size, request.ahead, request.requests, took, now)
        line.timely.answered(took, request.place)
        connection = link.connection
        if connection is not None:
            size = line.buffer.needed(connection.send_buffer, request.ahead, took, line.limit.way)
            if size != connection.send_buffer:
                connection.resize_send_buffer(size)
        line.window.answered(self.fine_time() - request.departed, len(drained), work=request.work)
        request.answers = match_answers(drained, request.names, answer.partitions)
        self._take_leaders(drained, request.answers, answer)
        request.answer = None

    def _take_answer(self, one: Drained, answer: PartitionAnswer | None, link: BrokerLink, now: float) -> bool:
        """Whether the answer was no error."""
        if answer is None:
            self._completer.ended(one, ErrorCode.NETWORK_EXCEPTION, f"{link} left the partition out of its answer", now)
            return False
        self._windows.announced(one.queue, link.node_id, answer.batches_to_retain)
        if answer.error_code == 0 and answer.base_offset < UNKNOWN_OFFSET:
            nonsense = f"{link} answered that the batch is at offset {answer.base_offset}"
            self._completer.ended(one, ErrorCode.NETWORK_EXCEPTION, nonsense, now)
            return False
        code = _NONE if answer.error_code == 0 else ErrorCode(answer.error_code)
        self._completer.ended(
            one,
            code,
            _explained(answer) if answer.record_errors else answer.error_message or "",
            now,
            base_offset=answer.base_offset,
            append_time=answer.log_append_time_ms,
            refused=_refused(answer) if answer.record_errors else None,
        )
        if code is _NONE:
            return True
        if error_class(code).refresh_metadata:
            # Where a topic is missing, nothing is wrong with the others.
            self._client.request_update(one.queue.topic if code in _TOPIC_IS_MISSING else None)
        return False

    def _take_leaders(
        self, drained: list[Drained], answers: list[PartitionAnswer | None], answer: ProduceAnswer
    ) -> None:
        """Takes new leaders from the answer itself (KIP-951)."""
        leaders: list[tuple[str, int, int, int]] = []
        for place, partition in enumerate(answers):
            if partition is not None and partition.leader_id >= 0:
                queue = drained[place].queue
                leaders.append((queue.topic, queue.partition, partition.leader_id, partition.leader_epoch))
        if not leaders:
            return
        nodes = [Node(node.node_id, Address(node.host, node.port), node.rack) for node in answer.node_endpoints]
        moved = self._client.metadata.learn_leaders(leaders, nodes)
        if moved:
            self._client.nodes_changed()
            self._topics.leaders_moved(moved, self._time())


def _topic_ids(drained: list[Drained], topics: Mapping[str, TopicQueues]) -> tuple[dict[str, bytes], bool]:
    """The ids of the batches' topics, 16 bytes each, and whether all are known; one that is not is zero.

    They are the topics whose sequences the batches have, even if metadata has newer ids.
    """
    ids: dict[str, bytes] = {}
    all_known = True
    for one in drained:
        name = one.queue.topic
        if name not in ids:
            number = topics[name].topic_id.int  # not its bytes, which would take two Python calls
            all_known = all_known and number != 0
            ids[name] = number.to_bytes(16, "big")
    return ids, all_known


def _refused(answer: PartitionAnswer) -> dict[int, str]:
    """The broker's messages about single records."""
    return {one.batch_index: one.batch_index_error_message or "" for one in answer.record_errors}


def _explained(answer: PartitionAnswer) -> str:
    """The broker's own message about an error, including the first record it names."""
    first = answer.record_errors[0]
    return f"{answer.error_message or ''} record {first.batch_index}: {first.batch_index_error_message or ''}".strip()
