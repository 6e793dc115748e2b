"""Measures the share of time for which tasks are idle."""

from __future__ import annotations

_WINDOW = 30.0


class IdleMeter:
    """Measures any number of tasks together, over the last 30 to 60 seconds.

    Idle time counts as it passes, not when the task wakes: a node without any traffic is idle, too.
    """

    def __init__(self, now: float) -> None:
        self._resting = 0
        self._start = self._up_to_now = now
        self._idle = 0.0
        """Idle seconds since the window began."""
        self._before: float | None = None
        """Idle seconds in the previous window, if there was one."""

    def rest(self, now: float) -> None:
        """A task becomes idle."""
        self._up_to(now)
        self._resting += 1

    def work(self, now: float) -> None:
        """An idle task starts to work."""
        self._up_to(now)
        self._resting -= 1

    def share(self, of: int, now: float) -> float:
        """The share of the time, 0 to 1, that ``of`` tasks were idle; 1 if no time has passed."""
        self._up_to(now)
        time = now - self._start + (0.0 if self._before is None else _WINDOW)
        return min((self._idle + (self._before or 0.0)) / (of * time), 1.0) if of and time > 0 else 1.0

    def _up_to(self, now: float) -> None:
        if now - self._start >= 2 * _WINDOW:  # nothing has changed for at least a whole window
            self._start = self._up_to_now = now - (now - self._start) % _WINDOW
            self._before, self._idle = self._resting * _WINDOW, 0.0
        elif now - self._start >= _WINDOW:
            end = self._start + _WINDOW
            self._before, self._idle = self._idle + self._resting * (end - self._up_to_now), 0.0
            self._start = self._up_to_now = end
        self._idle += self._resting * (now - self._up_to_now)
        self._up_to_now = now
