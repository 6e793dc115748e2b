"""The events of a run, in order: the same seed must give the same trace."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b


class Trace:
    """Events with their times. Their hash is always kept, their lines on demand."""

    def __init__(self, *, keep: bool = False) -> None:
        self.clock: Callable[[], float] = lambda: 0.0
        self.lines: list[str] = []
        self._keep = keep
        self._hash = blake2b(digest_size=8)

    def __call__(self, *what: object) -> None:
        line = f"{self.clock():.6f} {' '.join(map(str, what))}"
        self._hash.update(line.encode())
        if self._keep:
            self.lines.append(line)

    def digest(self) -> str:
        return self._hash.hexdigest()
