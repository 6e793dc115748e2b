"""Histories of runs, made by hand for tests of the checks: records with their ends, and logs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from aioproducer.broker import Partition, Topic
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.errors import DeliveryError, KafkaError, Outcome
from aioproducer.record_metadata import RecordMetadata
from aioproducer.records.record import Record
from aioproducer.testing.simulation.checks.ledger import Entry, Ledger
from aioproducer.testing.simulation.checks.violations import Violations
from aioproducer.testing.simulation.drawing import draw
from aioproducer.testing.simulation.faults.vanished import Vanished
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.releases import NEWEST
from aioproducer.testing.simulation.scenario import Promise, Scenario, TopicPlan
from aioproducer.testing.simulation.trace import Trace

NOW_MS = 1_700_000_000_000


class EndedDelivery:
    """A delivery that has ended, or has not (``None``)."""

    def __init__(self, end: RecordMetadata | KafkaError | None) -> None:
        self._end = end

    def done(self) -> bool:
        return self._end is not None

    def exception(self) -> KafkaError | None:
        return self._end if isinstance(self._end, KafkaError) else None

    def result(self) -> RecordMetadata:
        assert isinstance(self._end, RecordMetadata)
        return self._end


class RecordsOnly:
    """Takes the place of a :class:`PartitionLog`."""

    def __init__(self) -> None:
        self.found: list[Record] = []
        self.log_start_offset = self.log_end_offset = 0

    def records(self) -> list[Record]:
        return self.found


class History:
    """The default ``scenario`` is calm, with one topic ``t`` of two partitions."""

    def __init__(
        self, promise: Promise = Promise.EXACTLY_ONCE, *, rates: dict[str, float] | None = None, **config: Any
    ):
        drawn = next(scenario for scenario in map(draw, range(100)) if scenario.calm)
        self.scenario: Scenario = replace(
            drawn,
            promise=promise,
            rates=rates or {},
            work=[],
            conditions=Conditions(),
            calm=not rates,
            release=NEWEST,
            topics=[TopicPlan("t", 2, 0.0)],
            broker_configs={
                **drawn.broker_configs,
                "message.max.bytes": 1 << 20,
                "log.message.timestamp.type": "CreateTime",
            },
            config={
                **{name: value for name, value in drawn.config.items() if name != "retries"},
                "acks": "all",
                "linger_ms": 0,
                "max_request_size": 10_000,
                "buffer_memory": 100_000,
                "max_block_ms": 1000,
                "delivery_timeout_ms": 5000,
                "max_in_flight_requests_per_connection": 5,
                "partitioner_ignore_keys": False,
                **config,
            },
        )
        self.violations = Violations(Trace(), slack=0.05)
        self.ledger = Ledger(lambda: 100.0, Trace())
        self.logs: list[Any] = [RecordsOnly(), RecordsOnly()]
        self.vanished = Vanished()
        config_of_topic = TopicConfig.of({}, BrokerConfig.of({}))
        self.topic = Topic("t", UUID(int=7), [], config_of_topic, {})
        self.topic.partitions += [Partition("t", index, (0,), log) for index, log in enumerate(self.logs)]

    def sent(self, partition: int | None = None, *, producer: int = 0, **fields: Any) -> Entry:
        """A record that was accepted at 100 s and has not ended."""
        entry = self.ledger.open(producer, "t", {"value": b"v", "partition": partition, **fields})
        self.ends(entry, None)
        return entry

    def ends(self, entry: Entry, end: RecordMetadata | KafkaError | None, *, at: float = 100.1) -> None:
        entry.delivery = EndedDelivery(end)  # type: ignore[assignment]
        entry.accepted_at = entry.sent_at
        entry.watched = True
        if end is not None:
            entry.ends, entry.ended_at = 1, at

    def appended(self, entry: Entry, partition: int = 0, **other: Any) -> int:
        """Puts the record into a log, and returns its offset."""
        record = entry.record
        log = self.logs[partition]
        found = Record(
            log.log_end_offset,
            NOW_MS,
            record.key,
            record.value,
            tuple(record.headers or ()),
        )
        log.found.append(found._replace(**other))
        log.log_end_offset += 1
        return int(log.log_end_offset) - 1

    def metadata(self, entry: Entry, offset: int, partition: int = 0) -> RecordMetadata:
        key, value = entry.record.key, entry.record.value
        sizes = (-1 if key is None else len(key), -1 if value is None else len(value))
        return RecordMetadata("t", partition, offset, NOW_MS, False, *sizes)

    def delivered(self, partition: int = 0, **fields: Any) -> Entry:
        """Delivers a record correctly."""
        entry = self.sent(**fields)
        self.ends(entry, self.metadata(entry, self.appended(entry, partition), partition))
        return entry


def failure(error: KafkaError, outcome: Outcome = Outcome.UNKNOWN) -> DeliveryError:
    return DeliveryError.of(error, outcome, ("t", 0))
