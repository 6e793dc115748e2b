"""One ProduceRequest, from the batches that are drained to what the answer means for each of them.

Compiled when there is a compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import final
from uuid import UUID

from aioproducer.config import ProducerConfig
from aioproducer.error_code import ErrorCode
from aioproducer.errors import KafkaError, error_class
from aioproducer.metrics import ProducerMetrics
from aioproducer.net.addresses import Address
from aioproducer.net.broker_link import BrokerLink
from aioproducer.net.client import KafkaClient
from aioproducer.net.cluster import NO_TOPIC_ID, Node
from aioproducer.producer.batch_completer import BatchCompleter
from aioproducer.producer.drain import Drained
from aioproducer.producer.partition_queue import PartitionQueue
from aioproducer.producer.pipeline import Pipeline
from aioproducer.producer.produce_request import FIRST_VERSION_WITH_TOPIC_IDS, build_request, match_response
from aioproducer.producer.producer_batch import ProducerBatch
from aioproducer.producer.record_accumulator import BATCH_OVERHEAD
from aioproducer.producer.sealer import Sealer
from aioproducer.producer.topic_directory import TopicDirectory
from aioproducer.producer.transaction_manager import TransactionManager
from aioproducer.producer.windows import InFlightWindows
from aioproducer.protocol.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse


@final
class ProduceExchange:
    """Sends requests and takes their answers in. ``time()`` is the loop's, ``wake()`` rings for the Sender."""

    def __init__(
        self,
        config: ProducerConfig,
        client: KafkaClient,
        completer: BatchCompleter,
        sealer: Sealer,
        topics: TopicDirectory,
        windows: InFlightWindows,
        metrics: ProducerMetrics,
        *,
        time: Callable[[], float],
        wake: Callable[[], object],
        pipeline: Pipeline | None,
    ) -> None:
        self.transactions: TransactionManager | None = None
        self._client = client
        self._completer = completer
        self._sealer = sealer
        self._topics = topics
        self._windows = windows
        self._metrics = metrics
        self._time = time
        self._wake = wake
        self._pipeline = pipeline
        self._acks = config.required_acks
        self._timeout_ms = config.request_timeout_ms
        self._transactional_id = config.transactional_id
        self._drained = 0

    def send(self, link: BrokerLink, drained: list[Drained], now: float) -> None:
        """Sends the batches in one request; each of them ends, or goes back in line, when it does."""
        topics = self._client.metadata.cluster.topics
        topic_ids = {
            queue.topic: topics[queue.topic].topic_id if queue.topic in topics else NO_TOPIC_ID for queue, _ in drained
        }
        has_ids = all(topic_id.int for topic_id in topic_ids.values())
        for queue, batch in drained:
            self._prepare(queue, batch, link, now)
        try:
            version = link.version_for(ProduceRequest, self._newest(has_ids=has_ids))
        except KafkaError as error:
            for one in drained:
                self._completer.ended(one, error.code, str(error), now)
            return
        request = build_request(
            drained,
            topic_ids,
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            transactional_id=self._transactional_id,
        )
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        answered = partial(self._answered, link, drained, topic_ids, by_id, now)
        link.send(request, version, answered, expect_response=self._acks != 0)
        self._measure(drained, link, now)
        if self._acks == 0:
            for one in drained:
                self._completer.ended(one, ErrorCode.NONE, "", now)
            self._wake()  # somebody may wait for the memory

    def _newest(self, *, has_ids: bool) -> int | None:
        """The newest version that may be spoken; None for the newest there is."""
        if self.transactions is not None and self.transactions.newest_produce is not None:
            return self.transactions.newest_produce
        return None if has_ids else FIRST_VERSION_WITH_TOPIC_IDS - 1

    def _prepare(self, queue: PartitionQueue, batch: ProducerBatch, link: BrokerLink, now: float) -> None:
        if batch.drain_order < 0:
            self._drained += 1
            batch.drain_order = self._drained
        if queue.sequences is not None and not batch.has_sequence():
            queue.sequences.stamp(batch)
        self._sealer.seal(batch)
        batch.in_flight = True
        batch.attempts += 1
        batch.sent_at = now
        batch.sent_to = link.node_id
        batch.leader_epoch = queue.leader_epoch
        queue.in_flight += 1

    def _measure(self, drained: list[Drained], link: BrokerLink, now: float) -> None:
        for queue, batch in drained:
            self._metrics.batch_sent(
                queue.topic,
                records=batch.count,
                size=BATCH_OVERHEAD + len(batch.body),
                uncompressed=BATCH_OVERHEAD + batch.size(),
                largest=batch.largest,
                queued_ms=(now - batch.created) * 1000,
                now=now,
            )
        records = sum(batch.count for _, batch in drained)
        self._metrics.request_sent(records, now)
        if self._pipeline is not None:
            self._pipeline.sent(link.node_id, records, now)

    def _answered(
        self,
        link: BrokerLink,
        drained: list[Drained],
        topic_ids: dict[str, UUID],
        by_id: bool,
        sent_at: float,
        response: ProduceResponse | None,
        error: KafkaError | None,
    ) -> None:
        """A request has ended, and each of its batches with it."""
        now = self._time()
        if response is None:
            for one in drained:
                self._completer.ended(one, ErrorCode.NETWORK_EXCEPTION, str(error), now)
        else:
            self._metrics.request_answered(link.node_id, (now - sent_at) * 1000, float(response.throttle_time_ms), now)
            if self._pipeline is not None:
                self._pipeline.answered(link.node_id, now - sent_at)
            answers = match_response(drained, topic_ids, response, by_id=by_id)
            self._take_leaders(drained, answers, response)
            for place, answer in enumerate(answers):  # zip, which is not compiled, takes longer than the rest
                self._take_answer(drained[place], answer, link, now)
        self._wake()

    def _take_answer(self, one: Drained, answer: PartitionProduceResponse | None, link: BrokerLink, now: float) -> None:
        if answer is None:
            self._completer.ended(one, ErrorCode.NETWORK_EXCEPTION, f"{link} left the partition out of its answer", now)
            return
        self._windows.told(one.queue, link.node_id, answer.producer_state_batches_to_retain)
        code = ErrorCode.NONE if answer.error_code == 0 else ErrorCode(answer.error_code)
        self._completer.ended(
            one,
            code,
            _explained(answer),
            now,
            base_offset=answer.base_offset,
            append_time=answer.log_append_time_ms,
            refused=_refused(answer),
        )
        if code is not ErrorCode.NONE and error_class(code).refresh_metadata:
            self._client.request_update()

    def _take_leaders(
        self, drained: list[Drained], answers: list[PartitionProduceResponse | None], response: ProduceResponse
    ) -> None:
        """New leaders told by the answer itself (KIP-951)."""
        told: list[tuple[str, int, int, int]] = []
        for place, answer in enumerate(answers):
            leader = None if answer is None else answer.current_leader
            if leader is not None and leader.leader_id >= 0:
                queue = drained[place].queue
                told.append((queue.topic, queue.partition, leader.leader_id, leader.leader_epoch))
        if not told:
            return
        nodes = [Node(node.node_id, Address(node.host, node.port), node.rack) for node in response.node_endpoints]
        moved = self._client.metadata.leaders_told(told, nodes)
        if moved:
            self._client.nodes_changed()
            self._topics.leaders_moved(moved, self._time())


def _refused(answer: PartitionProduceResponse) -> dict[int, str] | None:
    """The broker's words on single records."""
    if not answer.record_errors:
        return None
    return {one.batch_index: one.batch_index_error_message or "" for one in answer.record_errors}


def _explained(answer: PartitionProduceResponse) -> str:
    """The broker's own words about an error, the records it names included."""
    if not answer.record_errors:
        return answer.error_message or ""
    first = answer.record_errors[0]
    return f"{answer.error_message or ''} record {first.batch_index}: {first.batch_index_error_message or ''}".strip()
