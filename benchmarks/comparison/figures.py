"""The figures that are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.works.run import Measurement


@dataclass(frozen=True)
class Figure:
    """``of`` a measurement in the unit of ``title``, None where it was not measured; ``digits`` after the point."""

    name: str
    title: str
    of: Callable[[Measurement], float | None]
    digits: int = 2

    def text(self, value: float) -> str:
        return f"{value:,.{self.digits}f}"


def _latency(quantile: str) -> Callable[[Measurement], float | None]:
    return lambda measured: measured.latency[quantile] * 1e3 if measured.latency else None


def _stall(quantile: str) -> Callable[[Measurement], float | None]:
    return lambda measured: measured.stall[quantile] * 1e3 if measured.stall else None


def _computing(measured: Measurement) -> float | None:
    return measured.computing["p99.9"] * 1e3 if measured.computing else None


def _together(measured: Measurement) -> float | None:
    client = measured.cpu_seconds / measured.records
    return (client + measured.broker_cpu) * 1e6 if measured.broker_cpu else None


def _requests(measured: Measurement) -> float | None:
    return measured.requests / measured.seconds or None


_FIGURES = (
    Figure("speed", "records/s", lambda measured: measured.records / measured.seconds, digits=0),
    Figure("cpu", "CPU µs/record", lambda measured: measured.cpu_seconds / measured.records * 1e6),
    Figure("broker", "broker's CPU µs/record", lambda measured: measured.broker_cpu * 1e6 or None),
    Figure("together", "client's and broker's CPU µs/record", _together),
    Figure("requests", "requests/s", _requests, digits=0),
    Figure("batch", "KiB a batch", lambda measured: measured.batch_bytes / 1024 or None, digits=0),
    Figure("rss", "peak RSS MiB", lambda measured: measured.peak_rss / 2**20, digits=0),
    Figure("p50", "ack p50 ms", _latency("p50"), digits=3),
    Figure("p99", "ack p99 ms", _latency("p99"), digits=3),
    Figure("p99.9", "ack p99.9 ms", _latency("p99.9"), digits=3),
    Figure("stall", "loop stall p99.9 ms", _stall("p99.9"), digits=1),
    Figure("computing", "of it computing p99.9 ms", _computing, digits=1),
    Figure("longest", "longest stall ms", _stall("max"), digits=1),
)
FIGURES: dict[str, Figure] = {figure.name: figure for figure in _FIGURES}
RATIOS = ("speed", "cpu", "rss", "p50", "p99")
"""Figures in which the report compares the reference with other clients."""
