"""An interceptor that counts: every record that it sees ends there once, with the outcome that its sender gets."""

from __future__ import annotations

from collections import Counter
from random import Random

from aioproducer.producer.hooks.interceptors import ProducerInterceptor
from aioproducer.record_metadata import RecordMetadata
from aioproducer.testing.simulation.checks.ledger import Entry, Ledger, number_of
from aioproducer.testing.simulation.checks.violations import Violations
from aioproducer.testing.simulation.users.workload import CallbackRaised
from aioproducer.types import Headers, ProducerRecord, TopicPartition


class CountingInterceptor(ProducerInterceptor):
    """The interceptor of one producer. It sometimes raises, which must not affect anything."""

    def __init__(self, producer: int, random: Random) -> None:
        self._producer = producer
        self._random = random
        self._sent: Counter[int] = Counter()
        self._ends: dict[int, list[RecordMetadata | BaseException]] = {}
        self._closed = 0

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self._sent[number_of(record.headers)] += 1
        self._maybe_raise()
        return record._replace()

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Headers) -> None:
        self._ended(headers, metadata if error is None else error)

    def on_send_error(self, record: ProducerRecord, topic_partition: TopicPartition, error: BaseException) -> None:
        self._ended(record.headers, error)

    def close(self) -> None:
        self._closed += 1

    def _ended(self, headers: Headers | None, end: RecordMetadata | BaseException) -> None:
        self._ends.setdefault(number_of(headers), []).append(end)
        self._maybe_raise()

    def _maybe_raise(self) -> None:
        if self._random.random() < 0.02:
            raise CallbackRaised

    def check(self, ledger: Ledger, violations: Violations) -> None:
        """Checks the counts after the producer is closed."""
        if self._closed != 1:
            violations.add("interceptors are closed once", f"that of producer {self._producer}: {self._closed} times")
        for number in self._sent.keys() | self._ends.keys():
            ends = self._ends.get(number, [])
            if (self._sent[number], len(ends)) != (1, 1):
                violations.add(
                    "every intercepted record ends once",
                    f"{ledger.entries[number]} was sent {self._sent[number]} times and ended {len(ends)} times",
                )
        for entry in ledger.entries:
            if entry.producer == self._producer and entry.settled() and not entry.cancelled:
                self._check_end(entry, violations)

    def _check_end(self, entry: Entry, violations: Violations) -> None:
        if entry.delivered:
            return  # a bulk send returns no metadata to compare with
        expected = entry.metadata() or entry.failure()
        for end in self._ends.get(entry.number, []):
            if isinstance(end, RecordMetadata):
                same = end == expected
            else:  # a delivery's error is the one that was raised, and a DeliveryError besides
                same = isinstance(expected, type(end)) and str(end) == str(expected)
            if not same:
                violations.add("interceptors see how records end", f"{end!r} of {entry}, which ended with {expected!r}")
