"""The scheduling rules of one producer, in one object."""

from __future__ import annotations

from dataclasses import dataclass

from aioproducer.producer.scheduling.broker_availability import NodeLatencies
from aioproducer.producer.scheduling.pipeline import Pipeline
from aioproducer.producer.scheduling.schedule import Schedule
from aioproducer.producer.scheduling.wait_history import WaitHistory
from aioproducer.producer.windows.in_flight_windows import InFlightWindows
from aioproducer.producer.windows.node_line import NodeLines


@dataclass(frozen=True)
class Scheduling:
    """The rules and records of one producer; ``pipeline`` and ``latencies`` are None if their configs are off."""

    schedule: Schedule
    pipeline: Pipeline | None
    windows: InFlightWindows
    lines: NodeLines
    latencies: NodeLatencies | None
    history: WaitHistory
