"""Rules that find out why records have not been sent, from the producer's state and ``now``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import KafkaError, TimeoutException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.broker_link import BrokerLink, LinkState
from aioproducer.net.client import KafkaClient
from aioproducer.producer.accumulator.incomplete_batches import IncompleteBatches
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import TopicQueues
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.diagnosis.explanation import Explanation, Obstacle
from aioproducer.producer.diagnosis.ledger import Ledger, in_words
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.diagnosis.wording import counted, duration
from aioproducer.producer.idempotence.sequences import WINDOW
from aioproducer.producer.parking.parked_record import ParkedRecord
from aioproducer.producer.parking.parking_lot import ParkingLot, serializer_at_work
from aioproducer.producer.scheduling.pipeline import Pipeline
from aioproducer.producer.scheduling.readiness import NO_LEADER, why_waiting
from aioproducer.producer.scheduling.wait_history import WaitHistory
from aioproducer.producer.sender.producer_id import ProducerIdSource
from aioproducer.producer.windows.in_flight_windows import KIP_1269_VERSION, WindowSource
from aioproducer.producer.windows.line_window import LineWindow
from aioproducer.producer.windows.node_line import NodeLines
from aioproducer.protocol.api_key import ApiKey


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of a producer, read-only."""

    config: ProducerConfig
    client: KafkaClient
    topics: Mapping[str, TopicQueues]
    incomplete: IncompleteBatches
    lot: ParkingLot
    ids: ProducerIdSource
    coordinator_error: Callable[[], KafkaError | None] = lambda: None
    """The transaction coordinator's last answer, if it was an error."""
    pipeline: Pipeline | None = None
    lines: NodeLines | None = None


def explain(here: Situation, topic: str, partition: int, now: float, fatal: KafkaError | None = None) -> Explanation:
    """Why the head batch of this partition has not been sent. ``fatal``: why the producer is unusable."""
    topic_queues = here.topics.get(topic)
    queues = [] if topic_queues is None else topic_queues.queues
    batches = []
    obstacles: list[Obstacle] = []
    if fatal is not None:
        obstacles.append(Obstacle(Reason.FAILED, f"the producer has failed: {fatal}", last_error=str(fatal)))
    head: ProducerBatch | None = None
    window: dict[str, Any] = {}
    queue = queues[partition] if partition < len(queues) else _gone(here, topic, partition)
    if queue is not None:
        batches = [batch for batch, its_queue in here.incomplete.items() if its_queue is queue]
        window = _window(here, queue)
        head = next((batch for batch in batches if not batch.in_flight), batches[0] if batches else None)
        if head is not None:
            obstacles += why_not_delivered(here, queue, head, now)
    parked = [record for record in here.lot.records() if _is_for(record, topic, partition)]
    if parked:
        obstacles += _why_parked(here, parked, now)
    if not obstacles:
        obstacles.append(_nothing(here, topic, partition, len(queues)))
    return Explanation(
        topic,
        partition,
        tuple(obstacles),
        batches=len(batches),
        in_flight=sum(batch.in_flight for batch in batches),
        records=sum(batch.count for batch in batches),
        bytes=sum(batch.size() for batch in batches),
        age_ms=0.0 if head is None else (now - head.created) * 1000,
        attempts=0 if head is None else head.attempts,
        last_error="" if head is None else head.last_error,
        parked=len(parked),
        parked_bytes=sum(record.size for record in parked),
        parked_ms=max(((now - record.parked_at) * 1000 for record in parked), default=0.0),
        **window,
    )


def _gone(here: Situation, topic: str, partition: int) -> PartitionQueue | None:
    """The queue of a partition that its topic has no longer, if it has batches."""
    queues = (queue for _, queue in here.incomplete.items())
    return next((queue for queue in queues if (queue.topic, queue.partition) == (topic, partition)), None)


def _window(here: Situation, queue: PartitionQueue) -> dict[str, Any]:
    sequences, leader = queue.sequences, queue.leader
    if sequences is None:
        return {}
    link = here.client.links.get(leader)
    if sequences.window != WINDOW:
        source = WindowSource.ANNOUNCED
    elif link is not None and link.ready() and link.api_versions.newest(ApiKey.PRODUCE) < KIP_1269_VERSION:
        source = WindowSource.OLD_BROKER
    else:
        source = WindowSource.DEFAULT
    why = source.value.format(leader) if leader != NO_LEADER else "the default: there is no leader to announce another"
    most = here.config.max_in_flight_requests_per_connection
    if most < sequences.window:
        why += f", but max.in.flight.requests.per.connection={most}"
    return {"window": sequences.window, "unresolved": len(sequences.unresolved), "window_source": why}


def _nothing(here: Situation, topic: str, partition: int, partitions: int) -> Obstacle:
    text = "nothing is waiting to be sent"
    if not partitions:
        text += f"; there is no metadata of topic {topic!r}: {why_no_metadata(here.client, topic)}"
    elif partition >= partitions:
        text += f"; topic {topic!r} has {counted(partitions, 'partition')}"
    return Obstacle(Reason.NOTHING, text)


# Batches


def why_not_delivered(here: Situation, queue: PartitionQueue, batch: ProducerBatch, now: float) -> list[Obstacle]:
    """The obstacles to delivering this batch now, the present one first."""
    if batch.in_flight:
        return [_in_flight(here, batch, now)]
    obstacles: list[Obstacle] = []
    link = here.client.links.get(queue.leader)
    waiting = why_waiting(queue, now, keep_order=here.config.max_in_flight_requests_per_connection == 1)
    own = None if waiting is None else _in_the_queue(here, queue, batch, waiting, now)
    if waiting is Reason.LINGER and own is not None:
        obstacles.append(own)
    obstacles += _leader(here, queue, link, now)
    if own is not None and waiting is not Reason.LINGER:
        obstacles.append(own)
    if here.ids.missing() and waiting is not Reason.PRODUCER_ID:
        obstacles.append(_producer_id(here))
    if link is not None and (busy := link_reason(link, now)) in (Reason.CONNECTION_WINDOW, Reason.SOCKET):
        obstacles.append(_busy(link, busy))
    elif link is not None and here.lines is not None:
        line = here.lines.of(queue.leader)
        if line.timely.is_full(link.in_flight()):
            obstacles.append(_timely(link, here.config.request_timeout_ms))
        elif line.window.opens_at() > now:
            obstacles.append(_at_work(link, line.window))
    if link is not None and not obstacles and here.lines is not None:
        most, size = here.lines.of(queue.leader).limit.most, batch.size_on_the_wire()
        if size > most:
            text = (
                f"it has {size} bytes, and requests to {link} have at most {most} since one was not answered within "
                f"{here.config.request_timeout_ms} ms (request.timeout.ms): smaller batches go first"
            )
            obstacles.append(Obstacle(Reason.SLOW_LINE, text))
    return obstacles or [Obstacle(Reason.READY, "nothing is in its way: it is sent in the next turn of the loop", 0.0)]


def _in_flight(here: Situation, batch: ProducerBatch, now: float) -> Obstacle:
    waited = now - batch.sent_at
    link = here.client.links.get(batch.sent_to)
    where = f"node {batch.sent_to}" if link is None else str(link)
    timeout = here.config.request_timeout_ms
    return Obstacle(
        Reason.IN_FLIGHT,
        f"its request has not been answered by {where} for {duration(waited)} (request.timeout.ms={timeout})",
        max(timeout - waited * 1000, 0.0),
        batch.last_error,
    )


def _in_the_queue(
    here: Situation, queue: PartitionQueue, batch: ProducerBatch, reason: Reason, now: float
) -> Obstacle | None:
    """The partition's own obstacles."""
    if reason is Reason.LINGER:
        left = queue.close_at - now
        line = None if here.pipeline is None else here.pipeline.line(queue.leader)
        by = "linger.ms" if line is None else f"pipeline=auto, with {duration(line.round_trip)} to an answer"
        return _timed(reason, f"its batch is not full and lingers for another {duration(left)} ({by})", left)
    if reason is Reason.COMPRESSION:
        head = queue.batches[0]
        whose = "it" if head is batch else "an earlier batch"
        work = "decompressing, to split the batch" if head.body else "compressing"
        return Obstacle(reason, f"{whose} has {head.size()} bytes, which a worker thread is {work}")
    if reason is Reason.BACKOFF:
        head = queue.batches[0]
        left = head.retry_at - now
        whose = "it" if head is batch else "an earlier batch"
        tried = counted(head.attempts, "attempt")
        text = f"{whose} is tried again in {duration(left)} (retry.backoff.ms), after {tried}: {head.last_error}"
        return _timed(reason, text, left, head.last_error)
    if reason is Reason.ORDER:
        return Obstacle(reason, "an earlier batch is under way, and max.in.flight.requests.per.connection is 1")
    sequences = queue.sequences
    if sequences is not None and reason is Reason.WINDOW:
        if not sequences.remembered:
            return Obstacle(
                reason,
                "batches of records older than half a day go one at a time: their broker may forget the producer "
                "(producer.id.expiration.ms)",
            )
        if sequences.identity is None or sequences.identity.producer_id != sequences.known_id:
            return Obstacle(reason, "the partition's first batch under this producer id must be in the log before it")
        return Obstacle(
            reason,
            f"the partition's window of {sequences.window} batches is full: "
            f"{len(sequences.unresolved)} of them are not resolved",
        )
    if reason is Reason.RECOVERY and queue.batches and queue.batches[0].asked_about:
        return Obstacle(reason, "its leader is being asked whether the log has it already (DescribeProducers)")
    if sequences is not None and reason is Reason.RECOVERY:
        ahead = counted(len(sequences.unresolved), "batch has", "batches have")
        return Obstacle(
            reason, f"batches go one at a time after a retry or a gap in the sequence numbers: {ahead} to end"
        )
    if reason is Reason.PRODUCER_ID:
        return _producer_id(here)
    if reason is Reason.TRANSACTION:
        error = here.coordinator_error()
        last = "" if error is None else str(error)
        text = (
            "its partition is not a part of the transaction yet: the coordinator has not answered AddPartitionsToTxn, "
            "or still has the markers of the last transaction written"
        )
        return Obstacle(reason, f"{text}; its last answer was: {last}" if last else text, last_error=last)
    return None


def _producer_id(here: Situation) -> Obstacle:
    error = here.ids.last_error
    why = f"the last request for one ended with: {error}" if error is not None else "it has been asked for"
    if error is None and (unreachable := here.client.unreachable()):
        why = unreachable
    return Obstacle(
        Reason.PRODUCER_ID, f"no producer id was given out yet: {why}", last_error="" if error is None else str(error)
    )


def _leader(here: Situation, queue: PartitionQueue, link: BrokerLink | None, now: float) -> Iterator[Obstacle]:
    topic = here.topics.get(queue.topic)
    if queue.leader == NO_LEADER and topic is not None and queue.partition >= len(topic.queues):
        has = counted(len(topic.queues), "partition")
        text = f"the topic was created anew, and has {has} now: add some, or send the record again"
        yield Obstacle(Reason.NO_LEADER, text)
    elif queue.leader == NO_LEADER:
        yield Obstacle(
            Reason.NO_LEADER, "the partition has no leader: are the brokers that hold it up? (see topics describe)"
        )
    elif link is None:
        yield Obstacle(Reason.LEADER_UNKNOWN, f"its leader, node {queue.leader}, is not among the brokers")
    elif link_reason(link, now) is Reason.NOT_CONNECTED:
        yield _not_connected(link, now)
    elif link_reason(link, now) is Reason.THROTTLED:
        left = link.throttled_until - now
        yield _timed(Reason.THROTTLED, f"{link} throttles this client for another {duration(left)} (a quota)", left)


# Links


def link_reason(link: BrokerLink, now: float) -> Reason | None:
    """Why the link takes no request now; None if it does (``BrokerLink.can_send``)."""
    if not link.ready():
        return Reason.NOT_CONNECTED
    if link.throttled_until > now:
        return Reason.THROTTLED
    if not link.writable():
        return Reason.SOCKET
    return Reason.CONNECTION_WINDOW if link.in_flight() >= link.max_in_flight else None


def _not_connected(link: BrokerLink, now: float) -> Obstacle:
    error = "" if link.last_error is None else str(link.last_error)
    left: float | None = None
    if link.state is LinkState.BACKOFF and link.backoff_until > now:
        left = link.backoff_until - now
        doing = f"it is tried again in {duration(left)} (reconnect.backoff.ms)"
    elif link.state is LinkState.CONNECTING:
        doing = f"connecting for {duration(now - link.changed_at)}"
    else:
        doing = "it is tried at once"
    text = f"its leader {link} is not connected, {doing}" + (f": {error}" if error else "")
    return _timed(Reason.NOT_CONNECTED, text, left, error)


def _busy(link: BrokerLink, reason: Reason) -> Obstacle:
    if reason is Reason.SOCKET:
        return Obstacle(reason, f"{link} does not read what was sent to it")
    return Obstacle(
        reason,
        f"{link} has {link.in_flight()} requests that it has not answered yet "
        f"(max.in.flight.requests.per.connection={link.max_in_flight})",
    )


def _at_work(link: BrokerLink, window: LineWindow) -> Obstacle:
    return Obstacle(
        Reason.CONNECTION_WINDOW,
        f"{link} has {counted(window.unanswered, 'request')} that it has not answered yet, and takes "
        f"{duration(window.round_trip)} for an answer, of which {duration(window.distance)} are for the way: the batch "
        "grows until one is answered",
    )


def _timely(link: BrokerLink, timeout_ms: int) -> Obstacle:
    return Obstacle(
        Reason.CONNECTION_WINDOW,
        f"{link} has {counted(link.in_flight(), 'request')} that it has not answered yet; as its answers took long, or "
        f"did not come, more of them might not be answered within request.timeout.ms={timeout_ms}",
    )


def _timed(reason: Reason, text: str, left: float | None, last_error: str = "") -> Obstacle:
    return Obstacle(reason, text, None if left is None else max(left * 1000, 0.0), last_error)


# Parked records


def _is_for(record: ParkedRecord, topic: str, partition: int) -> bool:
    return record.topic == topic and record.partition in (None, partition)


def _why_parked(here: Situation, parked: list[ParkedRecord], now: float) -> Iterator[Obstacle]:
    oldest = parked[0]
    topic = oldest.topic
    queues = here.topics.get(topic)
    size = sum(record.size for record in parked)
    waiting = f"{counted(len(parked), 'record')} of {size} bytes {'waits' if len(parked) == 1 else 'wait'}"
    since = f"the oldest for {duration(now - oldest.parked_at)} of max.block.ms={here.config.max_block_ms}"
    left = oldest.deadline - now
    if oldest in here.lot.serializing:
        at_work = here.lot.serializing.first()
        text = f"{waiting} for serializers, {since}: the line waits for the {serializer_at_work(at_work, now)}"
        yield _timed(Reason.SERIALIZER, text, left)
    elif (line := here.lot.metadata.get(topic)) is None or oldest not in line:
        pool = here.lot.pool
        text = (
            f"{waiting} for memory, {since}: {pool.total - pool.available} of buffer.memory={pool.total} bytes "
            "hold records that are not delivered yet"
        )
        yield _timed(Reason.MEMORY, text, left)
    elif queues is not None and oldest.partition is not None and oldest.partition >= len(queues.queues):
        text = f"{waiting} for the partition to exist, {since}: the topic has {len(queues.queues)}"
        yield _timed(Reason.PARTITION, text, left)
    else:
        text = f"{waiting} for metadata of topic {topic!r}, {since}: {why_no_metadata(here.client, topic)}"
        failure = here.client.metadata.failures.get(topic)
        yield _timed(Reason.METADATA, text, left, "" if failure is None else failure[0].name)


def no_metadata(client: KafkaClient, history: WaitHistory, topic: str, since: float, now: float) -> TimeoutException:
    """The error after max.block.ms for a record or caller that has waited for the topic's metadata since then."""
    code, times = client.metadata.failures.get(topic, (None, 1))
    ledger = Ledger(since)
    history.spend_on_metadata(ledger, now, Reason.METADATA.value if code is None else code.name, times)
    entries = ledger.entries()
    error = TimeoutException(
        f"no metadata for topic {topic!r} within max.block.ms ({(now - since) * 1000:.0f} ms): "
        f"{why_no_metadata(client, topic)}; {in_words(entries)}"
    )
    error.ledger = entries
    return error


def why_no_metadata(client: KafkaClient, topic: str) -> str:
    """Why the topic's metadata is missing."""
    unreachable = client.unreachable()
    if unreachable:
        return unreachable
    failure = client.metadata.failures.get(topic)
    if failure is None:
        error = client.metadata_error
        return f"metadata cannot be had: {error}" if error is not None else "the brokers have not answered yet"
    code, times = failure
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return (
            f"the brokers answered {times} times that it does not exist (UNKNOWN_TOPIC_OR_PARTITION); "
            "create it, or let them create topics by themselves (auto.create.topics.enable)"
        )
    return f"the brokers answered {code.name} {times} times"
