"""One pass of the Sender, each time it wakes.

Each pass costs in proportion to what is ready. The rules (``schedule``, ``drain``, ``completion``, ``sequences``)
decide; this module acts.
"""

from __future__ import annotations

from typing import final

from aioproducer.net.client import KafkaClient
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.exchange.batch_completer import BatchCompleter
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.scheduling.schedule import Schedule
from aioproducer.producer.sender.alarm import Alarm
from aioproducer.producer.sender.batch_watch import BatchWatch
from aioproducer.producer.sender.dispatcher import Dispatcher
from aioproducer.producer.sender.expiry import Expiry
from aioproducer.producer.sender.producer_id import ProducerIdSource


@final
class SenderPass:
    """Finds what is due and sends what is ready. Times are the loop's, in seconds."""

    def __init__(
        self,
        accumulator: RecordAccumulator,
        client: KafkaClient,
        lot: ParkingLot,
        failures: FailureLog,
        schedule: Schedule,
        alarm: Alarm,
        watch: BatchWatch,
        completer: BatchCompleter,
        expiry: Expiry,
        id_source: ProducerIdSource,
        dispatcher: Dispatcher,
    ) -> None:
        self.count = 0
        """The number of passes."""
        self._loop = accumulator.loop
        self._accumulator = accumulator
        self._client = client
        self._lot = lot
        self._failures = failures
        self._schedule = schedule
        self._alarm = alarm
        self._watch = watch
        self._completer = completer
        self._expiry = expiry
        self._id_source = id_source
        self._dispatcher = dispatcher

    def run(self) -> None:
        """Ends or sends what is due, and gives freed memory to waiting records."""
        now = self._loop.time()
        self.count += 1
        self._accumulator.must_yield = False
        self._watch.pass_begins()
        alarm, schedule, lot = self._alarm, self._schedule, self._lot
        wants_turn = schedule.take_due(now)
        giving_up = self.give_up_more()
        if not giving_up:
            self._expiry.expire(now)
        schedule.hurry(wanted=bool(lot.memory.records) and not lot.paused)
        if self._id_source.ids.current is None:
            self._id_source.ask_if_missing(work=self._completer.incomplete.oldest is not None)
        alarm.up()  # all rings so far are handled below
        if wants_turn or giving_up:
            alarm.ring()
        self._dispatcher.sending.begin()
        nodes = [] if giving_up else schedule.ready.nodes()  # what is given up must not be sent any more
        left = len(nodes)
        for node in nodes:
            self._dispatcher.send_to(node, now)
            schedule.ready.served(node)
            left -= 1
            if left > 0 and self._dispatcher.sending.over():
                alarm.ring()  # after a turn of the loop the next pass begins with the nodes that are left
                break
        if not giving_up:
            self._failures.write(now)  # of all that fail together
        for when in (schedule.next(), self._expiry.next(), self._failures.next()):
            if when is not None:
                alarm.ring_at(when)
        if lot.somebody_waits():
            deadline = lot.next_deadline()
            if deadline is not None:
                alarm.ring_at(deadline)
            if lot.paused:
                alarm.ring()

    def give_up_more(self) -> bool:
        """Fails some of the records that are given up, for one turn: first the batches, which are older than what is
        parked. Answers that were received count, so they are handled before that. Returns whether some are left."""
        if self._completer.giving_up is None and self._lot.failing is None:
            return False
        if self._client.answers_wait():
            return True
        return self._completer.give_up_more() or self._lot.fail_more()
