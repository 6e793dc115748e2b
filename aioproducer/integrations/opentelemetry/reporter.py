"""A producer's metrics as observable instruments."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

from aioproducer import KafkaProducer, MetricName
from aioproducer.errors import IllegalStateException
from aioproducer.integrations.metric_names import check_client_id, is_counter, joined_name, unit_of
from aioproducer.metrics import every_metric

FRESH: Final = 0.5
"""Seconds for which a snapshot serves all instruments, so that they show one moment and cost one snapshot."""


class OpenTelemetryReporter:
    """One of a producer's ``metric_reporters``: its metrics are observed from its start to its end.

    Names are Kafka's: ``kafka.producer.record_send_rate`` with the attribute ``client-id``. Metrics of topics and
    brokers have one more attribute (``kafka.producer_topic.byte_rate``). Names that end in ``_total`` are counters, all
    others gauges. Metrics without a value yet are left out. The ``client-id`` distinguishes producers, so each needs
    its own. Nothing is computed before a reader collects, which may happen in any thread.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        self._provider = meter_provider
        self._instruments: _Instruments | None = None
        self._producer: KafkaProducer[Any, Any] | None = None

    def init(self, producer: KafkaProducer[Any, Any]) -> None:
        """The producer has started."""
        if self._producer is not None:
            raise IllegalStateException("this OpenTelemetryReporter belongs to another producer: make one for each")
        provider = get_meter_provider() if self._provider is None else self._provider
        instruments = _all_instruments.get(provider)
        if instruments is None:
            instruments = _all_instruments[provider] = _Instruments(provider)
        check_client_id(producer, (observed.producer for observed in instruments.producers))
        self._producer, self._instruments = producer, instruments
        instruments.producers.append(_Observed(producer))

    async def close(self) -> None:
        """The producer is closing: its metrics are no longer observed."""
        if self._instruments is not None:
            kept = [observed for observed in self._instruments.producers if observed.producer is not self._producer]
            self._instruments.producers = kept


class _Observed:
    """A producer and its latest values."""

    def __init__(self, producer: KafkaProducer[Any, Any]) -> None:
        self.producer = producer
        self._taken = -math.inf
        self._found: dict[tuple[str, str], list[tuple[MetricName, float]]] = {}

    def values(self, group: str, name: str) -> list[tuple[MetricName, float]]:
        now = time.monotonic()
        if now - self._taken > FRESH:
            self._found = {}
            for full, value in self.producer.metrics().items():
                if math.isfinite(value):
                    self._found.setdefault((full.group, full.name), []).append((full, value))
            self._taken = now
        return self._found.get((group, name), [])


class _Instruments:
    """The instruments of one provider; they serve all producers, because each name can exist only once."""

    def __init__(self, provider: MeterProvider) -> None:
        self.producers: list[_Observed] = []
        meter = provider.get_meter("aioproducer")
        for name, metric in every_metric():
            create = meter.create_observable_counter if is_counter(name) else meter.create_observable_gauge
            callback = partial(self._observe, name.group, name.name)
            create(joined_name(name, "."), callbacks=[callback], unit=unit_of(name), description=metric.doc)

    def _observe(self, group: str, name: str, options: CallbackOptions) -> Iterator[Observation]:
        for observed in self.producers:
            for full, value in observed.values(group, name):
                yield Observation(value, dict(full.tags))


_all_instruments: WeakKeyDictionary[MeterProvider, _Instruments] = WeakKeyDictionary()
