"""Invariants of open batches: they pay for what they hold, not far ahead, and grow only to known limits."""

from __future__ import annotations

from aioproducer.producer.accumulator.batch_limits import DOUBTED_AFTER
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.batches.producer_batch import AHEAD, OPEN_RECORD_COST
from aioproducer.producer.producer import KafkaProducer, core_of
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.testing.simulation.checks.violations import Violations


def check_open_batches(producer: KafkaProducer, violations: Violations) -> None:
    """Checks the batches that take records now."""
    accumulator = core_of(producer).accumulator
    for topic in accumulator.topics.values():
        for queue in topic.queues:
            batch = queue.open
            if batch is None or batch.count == 0:
                continue
            pool = accumulator.pool
            taken = batch.open_cost(0) - OPEN_RECORD_COST
            paid = taken + batch.largest  # at most: a record may take less than it was charged
            if batch.allocated > paid + max(paid // AHEAD, pool.initial_size):
                violations.add(
                    "memory is charged as a batch grows",
                    f"{queue} takes {taken} bytes and is charged {batch.allocated}",
                )
            most = max(accumulator.batch_size, accumulator.batch_max_size)
            if batch.trial:
                pass
            elif accumulator.ratios is None:
                most = min(most, _known_to_be_taken(accumulator, topic.name, batch.created))
            else:
                most = max(most, accumulator.max_request_size)
            if batch.count > 1 and batch.size() + BATCH_OVERHEAD > most:
                violations.add("a batch grows to what is known", f"{queue} has {batch.size()} bytes, more than {most}")


def _known_to_be_taken(accumulator: RecordAccumulator, topic: str, created: float) -> int:
    """The most that the answers before a batch was begun have shown that its topic takes."""
    known = accumulator.limits.known(topic)
    if known is None or known.doubted_from >= created + DOUBTED_AFTER:  # refused since
        return 1 << 62
    return int(max(known.taken, known.refused // 2))
