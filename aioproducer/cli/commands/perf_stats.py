"""The counts of ``aioproducer perf`` and the lines it prints: exactly those of Kafka's tool.

Times are in milliseconds. Nothing here reads a clock: callers pass the time.
"""

from __future__ import annotations

from collections.abc import Callable

MOST_SAMPLES = 500_000
"""The percentiles of more records come from a sample."""
MIB = 1 << 20
PERCENTILES = (("50th", 0.5), ("95th", 0.95), ("99th", 0.99), ("99.9th", 0.999))


class PerfStats:
    """Counts acknowledged records; calls ``say`` with a line for each interval that has some."""

    def __init__(
        self, records: int, now: float, *, interval: float, say: Callable[[str], object], steady_state: bool = False
    ) -> None:
        self.count = 0
        self.silent = False
        self._began = self._window_began = now
        self._interval = interval
        self._say = say
        self._steady_state = steady_state
        self._stride = max(1, records // MOST_SAMPLES)
        self._samples: list[float] = []
        self._bytes = 0
        self._latency = self._longest = 0.0
        # What had been counted when the window began.
        self._before = (0, 0, 0.0)
        self._window_longest = 0.0

    def record(self, latency: float, size: int, now: float) -> None:
        """A record of ``size`` bytes is acknowledged."""
        if self.count % self._stride == 0:
            self._samples.append(latency)
        self.count += 1
        self._bytes += size
        self._latency += latency
        if latency > self._window_longest:
            self._window_longest = latency
            self._longest = max(self._longest, latency)
        if now - self._window_began >= self._interval:
            self._end_window(now)

    def total(self, now: float) -> str:
        """The closing line."""
        rate, mib_rate = _rates(self.count, self._bytes, now - self._began)
        average = self._latency / self.count if self.count else 0.0
        ordered = sorted(self._samples) or [0.0]
        percentiles = ", ".join(
            f"{ordered[min(int(share * len(ordered)), len(ordered) - 1)]:.0f} ms {name}" for name, share in PERCENTILES
        )
        return (
            f"{self.count}{' steady state' if self._steady_state else ''} records sent, {rate:.6f} records/sec "
            f"({mib_rate:.2f} MB/sec), {average:.2f} ms avg latency, {self._longest:.2f} ms max latency, {percentiles}."
        )

    def _end_window(self, now: float) -> None:
        counted, sized, waited = self._before
        count = self.count - counted
        if self._steady_state and not counted:
            self._say("In steady state.")
        if not self.silent:
            rate, mib_rate = _rates(count, self._bytes - sized, now - self._window_began)
            self._say(
                f"{count} records sent, {rate:.1f} records/sec ({mib_rate:.2f} MB/sec), "
                f"{(self._latency - waited) / count:.1f} ms avg latency, {self._window_longest:.1f} ms max latency."
            )
        self._before = (self.count, self._bytes, self._latency)
        self._window_began, self._window_longest = now, 0.0


def _rates(records: int, size: int, elapsed: float) -> tuple[float, float]:
    """Records and MiB per second; ``elapsed`` is in milliseconds."""
    seconds = max(elapsed, 1.0) / 1000
    return records / seconds, size / seconds / MIB
