"""The one place where a producer is wired: every part gets what it needs in its constructor, and nothing later.

Where parts need each other, the earlier one gets a function that looks the later one up when it is called.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Protocol

from aioproducer.errors import KafkaError
from aioproducer.net.client import KafkaClient
from aioproducer.producer.accumulator.built_in_partitioner import Partitioning
from aioproducer.producer.accumulator.compression_ratio import CompressionRatioEstimator
from aioproducer.producer.accumulator.incomplete_batches import IncompleteBatches
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.admission.admission import Admission
from aioproducer.producer.admission.record_entry import RecordEntry
from aioproducer.producer.admission.serializer_lane import SerializerLane
from aioproducer.producer.batches.buffer_pool import BufferPool
from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.core import ProducerCore
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.exchange.batch_completer import BatchCompleter, NextSteps
from aioproducer.producer.exchange.produce_exchange import ProduceExchange
from aioproducer.producer.exchange.sealer import Sealer, thread_bytes_of
from aioproducer.producer.idempotence.producer_ids import ProducerIds
from aioproducer.producer.idempotence.sequences import REMEMBERED_MS
from aioproducer.producer.inputs import Inputs
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.scheduling.broker_availability import NodeLatencies
from aioproducer.producer.scheduling.pipeline import Pipeline
from aioproducer.producer.scheduling.schedule import Schedule
from aioproducer.producer.scheduling.scheduling import Scheduling
from aioproducer.producer.scheduling.topic_directory import TopicDirectory
from aioproducer.producer.scheduling.wait_history import WaitHistory
from aioproducer.producer.sender.alarm import Alarm
from aioproducer.producer.sender.batch_watch import BatchWatch
from aioproducer.producer.sender.cluster_watch import ClusterWatch
from aioproducer.producer.sender.compressor import Compressor
from aioproducer.producer.sender.dispatcher import Dispatcher
from aioproducer.producer.sender.expiry import Expiry
from aioproducer.producer.sender.metadata_waits import MetadataWaits
from aioproducer.producer.sender.obstacles import Situation
from aioproducer.producer.sender.producer_id import ProducerIdSource
from aioproducer.producer.sender.sender import Sender, SenderParts
from aioproducer.producer.sender.sender_pass import SenderPass
from aioproducer.producer.windows.in_flight_windows import InFlightWindows
from aioproducer.producer.windows.node_line import NodeLines
from aioproducer.records.compression import CompressionType
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.timing.clock import SystemClock
from aioproducer.timing.loop_clock import LoopClock

# What few producers need is imported by the first that does: a quarter of the time that all would take.
if TYPE_CHECKING:
    from aioproducer.producer.sender.log_inquiry import LogInquiry
    from aioproducer.producer.transactions.transaction_manager import TransactionManager
    from aioproducer.producer.units.units import Units
    from aioproducer.telemetry.push_task import PushTask


def assemble(inputs: Inputs) -> ProducerCore:
    """A producer for the running loop; nothing runs before ``sender.start()``."""
    config, hooks, metrics, random = inputs.config, inputs.hooks, inputs.metrics, inputs.random
    loop = asyncio.get_running_loop()

    def fail_transaction(error: KafkaError) -> None:
        if transactions is not None:
            transactions.batch_failed(error)

    def join_transaction(queue: PartitionQueue) -> None:
        assert transactions is not None
        transactions.partition_used(queue)

    def compress(queue: PartitionQueue, batch: ProducerBatch) -> None:
        compressor.begin(queue, batch)

    def coordinator_error() -> KafkaError | None:
        return None if transactions is None else transactions.last_error

    alarm = Alarm()
    failures = FailureLog(alarm.ring)
    supervisor = Supervisor(lambda error: sender.crashed(error))
    scheduling = _scheduling(inputs, loop, alarm)
    schedule = scheduling.schedule
    timeout = config.delivery_timeout_ms / 1000
    ids = ProducerIds(
        transactional=config.transactional_id is not None,
        patience=timeout / 2,
        known_for=min(timeout, REMEMBERED_MS / 1000),  # producer.id.expiration.ms has to be longer
    )

    # Records, on their way into batches
    codec = CompressionType.of(config.compression_type)
    thread_bytes = thread_bytes_of(codec, config.compression_level, config.compression_thread_bytes)
    incomplete = IncompleteBatches()
    watch = BatchWatch(
        loop,
        incomplete,
        scheduling,
        metrics,
        thread_bytes,
        use_topic=lambda topic: client.use_topic(topic),
        join=join_transaction if ids.transactional else None,
        compress=compress,
    )
    accumulator = make_accumulator(inputs, loop, watch, thread_bytes)
    lot = ParkingLot(
        accumulator,
        config.parked_memory,
        failures,
        metrics,
        on_failed=fail_transaction,
        wake=alarm.ring,
        on_serializing=lambda: lane.look(),
        within_serializer=lambda: lane.within(),
    )

    # Batches, on their way to the brokers and to their end
    sealer = Sealer(
        codec,
        config.compression_level,
        accumulator,
        transactional=ids.transactional,
        thread_bytes=thread_bytes,
    )
    compressor = Compressor(sealer, loop, on_done=schedule.look_at, on_crash=supervisor.crash)
    completer = BatchCompleter(
        config,
        accumulator,
        incomplete,
        metrics,
        failures,
        random,
        sealer,
        scheduling.history,
        NextSteps(
            again=schedule.again,
            ask=lambda queue, batch: inquiry().begin(queue, batch),
            compress=compressor.begin,
            decompress=compressor.undo,
            in_slices=compressor.in_slices,
            failed=fail_transaction,
        ),
    )
    topics = TopicDirectory(
        accumulator.topics,
        _partitioning(inputs, scheduling, loop),
        schedule.ready,
        scheduling.windows,
        ids if config.enable_idempotence else None,
        rack=config.client_rack if config.partitioner_rack_aware else None,
        arrived=lambda topic: cluster_watch.topic_arrived(topic),
    )
    client = KafkaClient(
        config,
        supervisor,
        random,
        on_link=lambda link: cluster_watch.link_changed(link),
        follow=lambda cluster: cluster_watch.follow(cluster),
        on_metadata=lambda: cluster_watch.metadata_arrived(),
        on_refused=lambda error: cluster_watch.refused(error),
        topics_in_use=lambda: sender.topics_in_use(),
        metrics=metrics.network,
    )
    waits = MetadataWaits(client, lot, scheduling.history, config.max_block_ms / 1000, ended=lambda: sender.ended())
    cluster_watch = ClusterWatch(loop, client, topics, scheduling, waits, metrics, alarm)

    @cache
    def inquiry() -> LogInquiry:
        from aioproducer.producer.sender.log_inquiry import LogInquiry

        return LogInquiry(
            config,
            client,
            supervisor,
            random,
            accumulator.topics,
            on_answer=lambda queue, batch, in_log: sender.found(queue, batch, in_log),
        )

    id_source = ProducerIdSource(
        config,
        client,
        ids,
        supervisor,
        random,
        on_id=lambda: schedule.look_at(*incomplete.queues()),
        on_refused=lambda error: sender.give_up_waiting(error),
        on_fatal=lambda error: sender.fail(error),
    )
    transactions: TransactionManager | None = None
    if ids.transactional:
        from aioproducer.producer.transactions.record_control import RecordControl
        from aioproducer.producer.transactions.transaction_manager import TransactionManager

        control = RecordControl(
            gate=lambda is_open: lot.open() if is_open else lot.shut(),
            flush=lambda: sender.flush(),
            give_up=lambda error: sender.give_up_waiting(error),
            ready=schedule.look_at,
            fatal=lambda error: sender.fail(error),
            passed=lambda: sender.passed(),
        )
        transactions = TransactionManager(config, client, ids, random, supervisor, control)
    exchange = ProduceExchange(
        config, client, accumulator, completer, sealer, topics, scheduling, metrics, transactions, wake=alarm.ring
    )

    # The Sender, which moves them
    situation = Situation(
        config,
        client,
        accumulator.topics,
        incomplete,
        lot,
        id_source,
        coordinator_error,
        scheduling.pipeline,
        scheduling.lines,
    )
    sender_pass = SenderPass(
        accumulator,
        client,
        lot,
        failures,
        schedule,
        alarm,
        watch,
        completer,
        Expiry(loop, client, completer, lot, situation, waits),
        id_source,
        Dispatcher(config, accumulator, lot, scheduling, alarm, client, exchange, thread_bytes, completer.cut_to_fit),
    )
    parts = SenderParts(
        supervisor, alarm, schedule, client, compressor, completer, id_source, topics, waits, situation, sender_pass
    )
    sender = Sender(config, lot, metrics, failures, parts, transactions)

    # What a send needs beyond the accumulator
    admission = Admission(
        config, accumulator, lot, sender, transactions, hooks, metrics, failures, check_place=inputs.check_place
    )
    lane = SerializerLane(lot, hooks, admission.serialized)
    hooks.bind(loop, lot.serializing.occupied)
    entry = RecordEntry(loop, accumulator, lot, admission)
    units: Units | None = None
    if transactions is not None:
        from aioproducer.producer.units.units import Units

        units = Units(
            config,
            accumulator,
            lot,
            sender,
            transactions,
            hooks,
            admission,
            metrics,
            random,
            spawn=supervisor.spawn,
        )
    telemetry = _telemetry(inputs, client, supervisor) if config.enable_metrics_push else None
    return ProducerCore(
        loop, accumulator, lot, failures, sender, transactions, admission, entry, lane, units, telemetry
    )


class Watch(Protocol):
    """What learns of batches; ``RecordAccumulator`` says when."""

    def opened(self, queue: PartitionQueue, batch: ProducerBatch) -> object: ...
    def ready(self, queue: PartitionQueue) -> object: ...
    def full(self, queue: PartitionQueue) -> object: ...
    def awaited(self, queue: PartitionQueue) -> object: ...
    def joined(self, parts: list[ProducerBatch], whole: ProducerBatch) -> object: ...
    def turn_is_due(self) -> bool: ...
    def line_takes(self, queue: PartitionQueue) -> int: ...
    def is_enough(self, queue: PartitionQueue) -> bool: ...


def make_accumulator(
    inputs: Inputs, loop: asyncio.AbstractEventLoop, watch: Watch, thread_bytes: int = NO_LIMIT
) -> RecordAccumulator:
    """The accumulator that the configs ask for."""
    config, clock = inputs.config, inputs.clock
    batch_size = max(config.batch_size, 1)
    batch_max_size = max(config.batch_max_size, batch_size)
    return RecordAccumulator(
        BufferPool(config.buffer_memory, batch_max_size, config.batch_initial_size),
        loop,
        # The machine's own clock is read for each record without a Python call.
        None if isinstance(clock, SystemClock) else clock.time_ms,
        batch_size=batch_size,
        batch_max_size=batch_max_size,
        thread_bytes=thread_bytes,
        max_request_size=config.max_request_size,
        ignore_keys=config.partitioner_ignore_keys,
        ratios=None if config.compression_type == "none" else CompressionRatioEstimator(),
        hooks=inputs.hooks,
        on_open=watch.opened,
        on_ready=watch.ready,
        on_full=watch.full,
        on_awaited=watch.awaited,
        on_join=watch.joined,
        turn_is_due=watch.turn_is_due,
        line_takes=watch.line_takes,
        is_enough=watch.is_enough,
    )


def _telemetry(inputs: Inputs, client: KafkaClient, supervisor: Supervisor) -> PushTask:
    from aioproducer.telemetry.metric_points import MetricPoints
    from aioproducer.telemetry.push_task import PushTask, Source

    config, metrics = inputs.config, inputs.metrics
    of_all = {"transactional_id": config.transactional_id, "client_rack": config.client_rack}  # KIP-714's labels
    source = Source(
        MetricPoints(metrics.registry, inputs.clock.time_ms(), metrics.distributions),
        tuple((key, value) for key, value in of_all.items() if value),
        inputs.clock,
    )
    return PushTask(client, supervisor, inputs.random, source, config.request_timeout_ms / 1000)


def _scheduling(inputs: Inputs, loop: asyncio.AbstractEventLoop, alarm: Alarm) -> Scheduling:
    config = inputs.config
    linger = config.linger_ms / 1000
    pipeline = None
    if config.pipeline == "auto":
        pipeline = Pipeline(linger, config.max_in_flight_requests_per_connection, config.batch_size)
    latencies = None
    if config.partitioner_availability_timeout_ms > 0:
        latencies = NodeLatencies(config.partitioner_availability_timeout_ms / 1000)
    return Scheduling(
        Schedule(linger, wake=alarm.ring, wake_at=alarm.ring_at, tick=LoopClock(loop).tick, pipeline=pipeline),
        pipeline,
        InFlightWindows(inputs.metrics.windows),
        NodeLines(config),
        latencies,
        WaitHistory(),
    )


def _partitioning(inputs: Inputs, scheduling: Scheduling, loop: asyncio.AbstractEventLoop) -> Partitioning:
    latencies = scheduling.latencies
    return Partitioning(
        inputs.random,
        adaptive=inputs.config.adaptive_partitioning,
        # Nodes to avoid when choosing a partition
        unavailable=lambda: () if latencies is None else latencies.unavailable(loop.time()),
    )
