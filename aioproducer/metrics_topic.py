"""A producer's metrics in a topic, as JSON: ``docs/schemas.md`` describes the records.

::

    KafkaProducer(bootstrap_servers="localhost:9092", metric_reporters=[MetricsTopicReporter("metrics", interval=10)])
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from typing import Any
from uuid import uuid4

from aioproducer.configs.client_config import ClientConfig
from aioproducer.configs.config_def import table
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import IllegalArgumentException, IllegalStateException
from aioproducer.metrics import MetricsSnapshot
from aioproducer.metrics.metric_name import TOPIC_GROUP
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.diagnosis.health import HealthFinding
from aioproducer.producer.producer import KafkaProducer
from aioproducer.tasks.own_task import start_task
from aioproducer.timing.clock import Clock, SystemClock

log = logging.getLogger(__name__)

SCHEMA = 1
"""The schema of the records; a reader refuses higher numbers than it knows."""

_ENVELOPE = 1024
"""The most bytes that a request and a batch add to a report."""


class MetricsTopicReporter:
    """Writes a report every ``interval`` seconds, and a last one when the producer has delivered everything.

    Reports go through the reporter's own small producer: they are sent even if the reported producer is in trouble, and
    do not affect its figures. One report is under way at a time, so nothing piles up while no broker can be reached;
    the numbers of the reports show how many are missing. Trouble is logged once, until a report arrives again.
    """

    def __init__(
        self, topic: str = "aioproducer-metrics", *, interval: float = 30.0, clock: Clock | None = None
    ) -> None:
        if not interval > 0:
            raise IllegalArgumentException(f"interval is {interval!r}; it must be more than 0 seconds")
        self.topic = topic
        self.interval = interval
        self._clock: Clock = SystemClock() if clock is None else clock
        self._instance = uuid4().hex
        self._number = 0
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._under_way: Delivery | None = None
        self._in_trouble = False

    def __repr__(self) -> str:
        return f"<MetricsTopicReporter to {self.topic!r} every {self.interval:g} s>"

    def init(self, producer: KafkaProducer[Any, Any]) -> None:
        """Begins to report this producer's metrics; a reporter serves one producer."""
        if self._task is not None:
            raise IllegalStateException(f"{self!r} reports another producer's metrics already: make one for each")
        self._task = start_task(self._run(producer), f"aioproducer metrics to {self.topic}")

    async def close(self) -> None:
        """Writes the last report and ends; cancelled, it ends at once."""
        task = self._task
        if task is None:
            return
        self._stop.set()
        try:
            await asyncio.wait([task])
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    async def _run(self, producer: KafkaProducer[Any, Any]) -> None:
        carrier = KafkaProducer(**_carrier_config(producer.config))
        await carrier.start()
        try:
            while not self._stop.is_set():
                try:
                    async with asyncio.timeout(self.interval):
                        await self._stop.wait()
                except TimeoutError:
                    pass
                self._report(producer, carrier, last=self._stop.is_set())
            await carrier.close()
        except Exception:
            log.exception("the metrics of %s are not reported any more", producer.config.client_id)
        finally:
            await carrier.close(timeout=0)  # a cancelled report ends at once

    def _report(self, producer: KafkaProducer[Any, Any], carrier: KafkaProducer, *, last: bool) -> None:
        number, self._number = self._number, self._number + 1
        if self._under_way is not None and not self._under_way.done() and not last:
            return
        client_id = producer.config.client_id
        now_ms = self._clock.time_ms()
        about = {
            "schema": SCHEMA,
            "client_id": client_id,
            "instance": self._instance,
            "number": number,
            "time_ms": now_ms,
            "interval_ms": round(self.interval * 1000),
            "last": last,
            "health": [_as_dict(finding) for finding in producer.health()],
        }
        value = report(about, producer.metrics(), carrier.config.max_request_size - _ENVELOPE)
        self._under_way = carrier.send(self.topic, value, key=client_id.encode(), timestamp_ms=now_ms)
        self._under_way.add_done_callback(self._ended)

    def _ended(self, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is None:
            self._in_trouble = False
        elif not self._in_trouble:
            self._in_trouble = True
            log.warning("metrics could not be written to topic %r: %s", self.topic, error)


def report(about: dict[str, Any], found: MetricsSnapshot, most: int) -> bytes:
    """The record's value; without the metrics of topics if it would have more than ``most`` bytes with them."""
    metrics = found.as_dict()
    value = _json({**about, "topics_left_out": 0, "metrics": metrics})
    if len(value) <= most:
        return value
    left_out = metrics.pop(TOPIC_GROUP, {})
    return _json({**about, "topics_left_out": len(left_out), "metrics": metrics})


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _as_dict(finding: HealthFinding) -> dict[str, Any]:
    return {**dataclasses.asdict(finding), "severity": finding.severity.name}


def _carrier_config(config: ProducerConfig) -> dict[str, Any]:
    """The configs for reaching the same cluster with the same limits, without those for the user's own records."""
    names = [name.replace(".", "_") for name in table(ClientConfig)]
    same = {name: getattr(config, name) for name in names}
    return {
        **same,
        "client_id": f"{config.client_id}-metrics",
        "linger_ms": 0,
        "max_request_size": config.max_request_size,
        "compression_type": config.compression_type,
    }
