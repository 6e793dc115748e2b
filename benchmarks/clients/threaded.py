"""Shared by the clients that have a thread of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import Any, ClassVar, Final

from benchmarks.clients.client import PythonClient

CHUNK: Final = 10_000
"""Deliveries are read in chunks of this size, each while the next one is on its way."""


class ThreadedClient(PythonClient):
    """Sends by a plain ``send`` of its ``_producer``, and knows nothing of the event loop that it is measured in."""

    beats = False
    no_headers: ClassVar[list[Any] | None] = None
    """What ``send`` takes for a record without any."""

    _producer: Any

    async def close(self) -> None:
        self._producer.close()

    async def stream(self, records: int) -> Counter[str]:
        send, headers = self._producer.send, self.payload.headers or self.no_headers
        failures: Counter[str] = Counter()
        earlier: list[Any] = []
        given = self.payload.records(records)
        for start in range(0, records, CHUNK):
            chunk = []
            for _ in range(min(CHUNK, records - start)):
                topic, key, value = next(given)
                chunk.append(send(topic, value, key=key, headers=headers))
            self._check(earlier, failures)
            earlier = chunk
        self._producer.flush()
        self._check(earlier, failures)
        return failures

    @abstractmethod
    def _check(self, deliveries: list[Any], failures: Counter[str]) -> None:
        """Waits for each, and counts those that failed by kind."""
