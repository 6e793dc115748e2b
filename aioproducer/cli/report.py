"""The closing lines of a command that sends records."""

from __future__ import annotations

from aioproducer import MetricsSnapshot, Outcome
from aioproducer.cli.sending import Tally


def count(number: int, noun: str) -> str:
    """``1 record``, ``2,000 records``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def bytes_text(number: float) -> str:
    """A number of bytes in a suitable unit (powers of 1000)."""
    if number < 1000:
        return f"{number:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        number /= 1000
        if number < 1000:
            return f"{number:.1f} {unit}"
    return f"{number / 1000:.1f} TB"


def per_second(number: int, seconds: float) -> str:
    return f"{number / max(seconds, 1e-9):,.0f}/s"


def delivered(tally: Tally, metrics: MetricsSnapshot, seconds: float) -> list[tuple[str, str]]:
    """What was delivered and how fast, as names and values. The latencies are those of a sample."""
    rows = [
        ("records", f"{tally.delivered:,}"),
        ("bytes", f"{bytes_text(tally.delivered_bytes)} of keys and values"),
        ("seconds", f"{seconds:.2f}"),
        (
            "throughput",
            f"{per_second(tally.delivered, seconds)}, {bytes_text(tally.delivered_bytes / max(seconds, 1e-9))}/s",
        ),
        ("batches", _batches(metrics)),
    ]
    half, most = tally.latencies.quantile(0.5), tally.latencies.quantile(0.99)
    if half is not None and most is not None:
        rows.append(("acknowledged", f"within {half * 1000:.1f} ms (p50), {most * 1000:.1f} ms (p99)"))
    return rows


def _batches(metrics: MetricsSnapshot) -> str:
    number, records = metrics["batch-total"], metrics["record-send-total"]
    return f"{number:,.0f}, {records / max(number, 1):.1f} records each"


_OUTCOMES = {
    Outcome.NOT_SENT: "not sent",
    Outcome.UNKNOWN: "unknown: may have arrived",
}


def failed(tally: Tally) -> list[str]:
    """The records that were not delivered, by cause, most frequent first."""
    return [
        f"{failures.count:>9,}  {_OUTCOMES[failures.outcome]}: {failures.cause}: {failures.example}"
        for failures in sorted(tally.failures.values(), key=lambda failures: -failures.count)
    ]
