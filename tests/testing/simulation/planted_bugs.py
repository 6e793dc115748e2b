"""Bugs that producers have had. Tests plant each of them, and the simulation must find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics import ProducerMetrics
from aioproducer.net import link_task
from aioproducer.net.broker_link import BrokerLink
from aioproducer.net.client import KafkaClient
from aioproducer.net.connection.connection import Connection
from aioproducer.net.link_task import LinkTask
from aioproducer.producer.accumulator import record_accumulator
from aioproducer.producer.accumulator.batch_limits import BatchLimits
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.batches import producer_batch
from aioproducer.producer.batches.buffer_pool import BatchBuffer, BufferPool
from aioproducer.producer.batches.join import join
from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.batches.split import Cut
from aioproducer.producer.exchange import batch_completer, completion, produce_exchange
from aioproducer.producer.exchange.batch_completer import BatchCompleter
from aioproducer.producer.exchange.completion import MAYBE_APPENDED, SEQUENCE_ERRORS, Action, decide
from aioproducer.producer.exchange.produce_exchange import ProduceExchange
from aioproducer.producer.exchange.produce_request import match_answers
from aioproducer.producer.exchange.sealer import Sealer
from aioproducer.producer.hooks.hooks import Hooks
from aioproducer.producer.idempotence import sequences
from aioproducer.producer.idempotence.producer_ids import ProducerIds
from aioproducer.producer.idempotence.sequences import WINDOW, PartitionSequences
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.scheduling.topic_directory import TopicDirectory
from aioproducer.producer.sender import sender
from aioproducer.producer.sender.cluster_watch import ClusterWatch
from aioproducer.producer.sender.dispatcher import Dispatcher
from aioproducer.producer.windows.frame_limit import FrameLimit
from aioproducer.producer.windows.line_limit import LineLimit
from aioproducer.producer.windows.node_line import NodeLine
from aioproducer.producer.windows.timely_window import TimelyWindow
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.timing.time_slice import TimeSlice

from .circumstances import (
    Circumstances,
    any_scenario,
    compacted,
    crowded,
    growing,
    growing_beyond_requests,
    growing_in_small_logs,
    held_up,
    near_the_end_of_sequences,
    of_laborious_brokers,
    of_many_records,
    of_old_records,
    of_topics_with_ids,
    on_a_slow_machine,
    on_lines_too_slow_for_batches,
    on_slow_lines,
    only,
    patient,
    poisoned,
    resting,
    undisturbed,
    with_a_dead_address,
    without_topic_ids,
)

Plant = Callable[[pytest.MonkeyPatch], None]


class Bug(NamedTuple):
    """A function that plants the bug, and the circumstances in which it shows."""

    plant: Plant
    shows: Circumstances


BUGS: dict[str, Bug] = {}


def bug(shows: Circumstances = any_scenario) -> Callable[[Plant], Plant]:
    def planted(plant: Plant) -> Plant:
        BUGS[plant.__name__] = Bug(plant, shows)
        return plant

    return planted


def wrap(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replaces ``owner.name(*args)`` by ``wrapper(original, *args)``."""
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args, **kwargs: wrapper(original, *args, **kwargs))


@bug(only(of_many_records, limits=0.3, unanswered=0.3))
def an_unknown_outcome_is_sent_again_under_another_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionSequences, "proves_absence", lambda self, batch, now: True)


@bug(only(crowded, restarts=0.5, reset=0.1))
def a_broker_that_has_restarted_recognises_five_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    def proves_absence(original: Any, self: PartitionSequences, batch: Any, now: float) -> bool:
        if batch.maybe_appended and not batch.reshaped and not self.may_still_arrive(batch, now):
            return len(self.unresolved) <= WINDOW
        return bool(original(self, batch, now))

    wrap(monkeypatch, PartitionSequences, "proves_absence", proves_absence)


@bug()
def a_timeout_counts_as_success(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide_happily(code: ErrorCode, *args: Any, **kwargs: Any) -> Action:
        return Action.SUCCEED if code is ErrorCode.NETWORK_EXCEPTION else decide(code, *args, **kwargs)

    monkeypatch.setattr(batch_completer, "decide", decide_happily)


@bug(only(crowded, codes=0.4))
def a_deposed_leader_is_believed_not_to_have_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = MAYBE_APPENDED - {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    monkeypatch.setattr(batch_completer, "MAYBE_APPENDED", codes)


@bug()
def memory_comes_back_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def release(original: Any, self: Any, batch: Any) -> None:
        allocated = batch.allocated
        original(self, batch)
        if batch.attempts > 1:
            self._accumulator.pool.deallocate(allocated)

    wrap(monkeypatch, BatchCompleter, "_release", release)


@bug()
def memory_of_a_batch_that_expired_under_way_never_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def release(original: Any, self: Any, batch: Any) -> None:
        if not batch.result.done():
            original(self, batch)

    wrap(monkeypatch, BatchCompleter, "_release", release)


@bug()
def an_answer_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def tell(original: Any, self: Any, request: Any) -> None:
        if request.correlation_id % 7:
            original(self, request)

    wrap(monkeypatch, Connection, "_tell_answer", tell)


@bug()
def the_batches_of_a_lost_connection_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProduceExchange, "failed", lambda self, request, error: True)


@bug()
def answers_go_to_the_wrong_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    def match(*args: Any, **kwargs: Any) -> Any:
        return match_answers(*args, **kwargs)[::-1]

    monkeypatch.setattr(produce_exchange, "match_answers", match)


@bug(only(crowded, codes=0.3, reset=0.1))
def retries_go_to_the_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def retry(original: Any, self: Any, queue: Any, batch: Any, *args: Any) -> None:
        original(self, queue, batch, *args)
        queue.batches.remove(batch)
        queue.batches.append(batch)

    wrap(monkeypatch, BatchCompleter, "_retry", retry)


@bug()
def a_retry_is_sealed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def seal_anew(original: Any, self: Any, batch: Any) -> None:
        if batch.header:
            batch.header = b""
            batch.max_timestamp += 1
        original(self, batch)

    wrap(monkeypatch, Sealer, "seal", seal_anew)


@bug(only(crowded, codes=0.3))
def a_gap_does_not_wait_for_batches_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def may_drain_new(original: Any, self: Any, *batch: Any) -> bool:
        return bool(original(self, *batch)) or (self.broken and self._ids.current is not None)

    wrap(monkeypatch, PartitionSequences, "may_drain_new", may_drain_new)


@bug()
def nothing_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchCompleter, "expire", lambda *args: None)


@bug()
def expiry_is_looked_at_only_with_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchCompleter, "next_expiry", lambda self: None)


@bug()
def flush_forgets_parked_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ParkingLot, "emptied", lambda self: None)


@bug()
def newcomers_overtake_parked_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def gate(original: Any, self: Any) -> None:
        original(self)
        self._accumulator.detour = self._shut

    wrap(monkeypatch, ParkingLot, "_gate", gate)


@bug(on_a_slow_machine)
def newcomers_overtake_records_that_wait_for_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClusterWatch, "topic_arrived", lambda self, topic: None)


@bug(undisturbed(held_up))
def awaited_records_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for call in ("awaited", "left", "released"):
        monkeypatch.setattr(ParkingLot, call, lambda self, result: None)


@bug()
def callers_waiting_for_memory_are_not_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wake_nobody(lot: ParkingLot, turn: TimeSlice) -> None:
        lot.settled.clear()

    monkeypatch.setattr(sender, "notify_settled", wake_nobody)


@bug()
def the_parts_of_a_split_have_one_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    def children(original: Any, self: Cut) -> Any:
        parts = original(self)
        for part in parts:
            part.base_sequence = parts[0].base_sequence
        return parts

    wrap(monkeypatch, Cut, "children", children)


@bug()
def the_parts_of_a_split_are_sent_in_reverse(monkeypatch: pytest.MonkeyPatch) -> None:
    def children(original: Any, self: Cut) -> Any:
        parts = original(self)
        for number, part in enumerate(reversed(parts)):
            part.drain_order += number
        return parts[::-1]

    wrap(monkeypatch, Cut, "children", children)


@bug(only(growing))
def the_batches_that_are_joined_change_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_accumulator, "join", lambda parts, pool: join(parts[::-1], pool))


@bug(only(growing))
def the_deliveries_of_joined_batches_are_those_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def join_carelessly(parts: Any, pool: Any) -> Any:
        whole = join(parts, pool)
        for part in parts:
            part.result.targets = [(0, whole.result, 0)]
        return whole

    monkeypatch.setattr(record_accumulator, "join", join_carelessly)


@bug(only(growing, reset=0.3))
def what_was_sent_is_joined_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_accumulator, "joinable", lambda waiting, most: list(waiting)[:2])


@bug()
def interceptors_are_called_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def notify(original: Any, self: Any, result: Any, records: Any) -> None:
        original(self, result, records)
        original(self, result, records[:1])

    wrap(monkeypatch, Hooks, "on_acknowledgement", notify)


@bug()
def records_that_fail_alone_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(original: Any, self: Any, topic: str, count: int, now: float) -> None:
        if count > 1:
            original(self, topic, count, now)

    wrap(monkeypatch, ProducerMetrics, "records_failed", count)


@bug()
def tasks_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stop(self: Supervisor) -> None:
        pass

    monkeypatch.setattr(Supervisor, "stop", stop)
    monkeypatch.setattr(Supervisor, "cancel_all", lambda self: None)


@bug()
def the_timer_of_a_closed_connection_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def close(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        self._timer = None
        original(self, *args, **kwargs)

    wrap(monkeypatch, Connection, "close", close)


@bug()
def a_response_handler_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def take_leaders(original: Any, self: Any, *args: Any) -> None:
        original(self, *args)
        if self._completer.incomplete and len(self._completer.incomplete) % 5 == 0:
            raise ZeroDivisionError

    wrap(monkeypatch, ProduceExchange, "_take_leaders", take_leaders)


@bug()
def metadata_is_requested_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def until_due(self: KafkaClient) -> None:
        pass

    monkeypatch.setattr(KafkaClient, "_until_due", until_due)


@bug()
def a_lost_connection_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def send_to(original: Any, self: Any, node: int, now: float) -> None:
        link = self._client.links.get(node)
        if link is None or link.failures == 0:
            original(self, node, now)

    wrap(monkeypatch, Dispatcher, "send_to", send_to)


@bug(only(without_topic_ids, growth=0.4))
def a_partition_that_comes_back_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def queue(original: Any, self: Any, *partition: Any) -> Any:
        self._gone.clear()
        return original(self, *partition)

    wrap(monkeypatch, TopicDirectory, "_queue", queue)


@bug()
def more_requests_than_the_connection_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(original: Any, self: Any, node_id: int, address: Any, max_in_flight: int, **more: Any) -> None:
        original(self, node_id, address, max_in_flight + 1, **more)

    wrap(monkeypatch, BrokerLink, "__init__", init)
    monkeypatch.setattr(TimelyWindow, "is_full", lambda self, unanswered: False)


@bug(near_the_end_of_sequences)
def sequences_become_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    def increment(sequence: int, by: int) -> int:
        return (sequence + by + (1 << 31)) % (1 << 32) - (1 << 31)

    monkeypatch.setattr(sequences, "increment_sequence", increment)


@bug(only(crowded, epochs=1.0, codes=0.3))
def epochs_go_on_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerIds, "used_up", lambda self, identity: None)


@bug(only(of_many_records, limits=0.3, unanswered=0.3))
def the_parts_of_a_batch_that_may_be_in_the_log_do_not_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def children(original: Any, self: Cut) -> Any:
        parts = original(self)
        for part in parts:
            part.maybe_appended = part.reshaped = False
        return parts

    wrap(monkeypatch, Cut, "children", children)


@bug(only(of_many_records, limits=0.3, codes=0.3, expiry=1.0))
def a_part_of_a_refused_batch_goes_beside_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    def may_follow(self: PartitionSequences, batch: ProducerBatch) -> bool:
        before = self.unresolved[: self.unresolved.index(batch)]
        return not self.broken and all(one.in_flight for one in before)

    monkeypatch.setattr(PartitionSequences, "may_follow", may_follow)


@bug(only(patient(of_many_records), limits=0.3, lost=0.3))
def what_was_disturbed_is_not_split(monkeypatch: pytest.MonkeyPatch) -> None:
    def may_split(code: ErrorCode, batch: Any) -> bool:
        return code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1 and not batch.maybe_appended

    monkeypatch.setattr(completion, "may_split", may_split)


@bug(only(patient(poisoned), reset=0.05))
def a_record_that_is_too_large_takes_others_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide_without_proof(code: ErrorCode, batch: ProducerBatch, *args: Any, **kwargs: Any) -> Action:
        unsure = code in SEQUENCE_ERRORS and batch.maybe_appended
        action = decide(code, batch, *args, **kwargs)
        return Action.FAIL if unsure and action in (Action.RESTAMP, Action.ASK) else action

    monkeypatch.setattr(batch_completer, "decide", decide_without_proof)


@bug(only(patient(crowded), codes=0.3))
def an_error_that_passes_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def decide_hastily(code: ErrorCode, *args: Any, **kwargs: Any) -> Action:
        return Action.FAIL if code is ErrorCode.NOT_ENOUGH_REPLICAS else decide(code, *args, **kwargs)

    monkeypatch.setattr(batch_completer, "decide", decide_hastily)


@bug(only(of_topics_with_ids(poisoned), recreate=0.1, codes=0.3))
def what_is_behind_a_batch_that_is_stamped_anew_keeps_its_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionSequences, "is_void", lambda self, batch: False)


@bug(only(resting, expiry=1.0, codes=0.3))
def a_producer_is_known_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionSequences, "_has_paused", lambda self, now: False)


@bug(only(of_old_records, expiry=1.0, codes=0.3))
def producers_of_old_records_are_taken_as_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "REMEMBERED_MS", 10**15)


@bug(only(any_scenario, upgrades=0.3))
def the_versions_of_a_broker_are_requested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[tuple[Any, int], Any] = {}

    async def negotiate(original: Any, self: LinkTask, connection: Connection) -> None:
        await original(self, connection)
        link = self._link
        link.api_versions = known.setdefault((self._loop, link.node_id), link.api_versions)

    wrap(monkeypatch, LinkTask, "_negotiate", negotiate)


@bug(with_a_dead_address)
def only_the_first_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_task, "in_turn", lambda found, last: found[:1])


@bug(only(growing))
def memory_is_charged_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_batch, "AHEAD", 1)


@bug(only(growing))
def what_a_growing_batch_pays_never_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def pay(original: Any, self: ProducerBatch, pool: BufferPool, cost: int) -> bool:
        return bool(original(self, pool, cost) and (self.count % 7 or pool.allocate(1)))

    wrap(monkeypatch, ProducerBatch, "pay", pay)


@bug(only(growing_in_small_logs))
def batches_grow_to_what_their_topic_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchLimits, "most", lambda self, topic, trial=False: NO_LIMIT)


@bug(only(growing))
def records_join_a_batch_that_was_drained(monkeypatch: pytest.MonkeyPatch) -> None:
    def freeze(original: Any, self: ProducerBatch) -> Any:
        buffer = original(self)
        self.buffer = buffer
        return None if buffer is None else BatchBuffer()

    def take_open(original: Any, self: Any, queue: Any) -> Any:
        batch = original(self, queue)
        queue.open = batch if batch.count % 3 else None
        return batch

    wrap(monkeypatch, ProducerBatch, "freeze", freeze)
    wrap(monkeypatch, RecordAccumulator, "take_open", take_open)


@bug(only(on_slow_lines))
def what_cannot_cross_the_line_is_sent_with_others_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LineLimit, "timed_out", lambda self, size, sent_at, now: None)


@bug(only(on_lines_too_slow_for_batches))
def what_is_too_large_for_the_line_is_sent_unchanged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeLine, "largest_batch", lambda self, now: NO_LIMIT)


@bug(only(of_laborious_brokers))
def more_is_under_way_than_can_be_answered_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimelyWindow, "timed_out", lambda self: None)
    monkeypatch.setattr(TimelyWindow, "answered", lambda self, took, ahead: None)


@bug(only(growing_beyond_requests))
def what_ends_connections_is_sent_unchanged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FrameLimit, "largest_batch", lambda self, now: NO_LIMIT)


@bug(only(compacted, codes=0.1))
def what_is_refused_takes_the_rest_of_its_batch_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_completer, "cuts", lambda batch, refused: [])
