"""Shared by the clients that have a thread of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import Any, ClassVar

from benchmarks.clients.chunks import CHUNK, Chunks
from benchmarks.clients.client import PythonClient


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
        chunks: Chunks[Any] = Chunks(self.run)
        for given in self.payload.chunks(records, CHUNK):
            chunk = [send(topic, value, key=key, headers=headers) for topic, key, value in given]
            for due in chunks.due_after(chunk):
                self._check(due, failures)
        self._producer.flush()
        for due in chunks.rest():
            self._check(due, failures)
        return failures

    @abstractmethod
    def _check(self, deliveries: list[Any], failures: Counter[str]) -> None:
        """Waits for each, and counts those that failed by kind."""
