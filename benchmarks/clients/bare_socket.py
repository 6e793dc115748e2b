"""No client at all: one Produce request, sent and answered on a blocking socket again and again.

It partitions, batches and retries nothing, has no idempotence, and looks at no answer but for its error code. What it
takes is what the broker, the machine and the system calls take: no client can be faster one record at a time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from aioproducer.protocol.framing import decode_response
from aioproducer.protocol.messages.produce import ProduceResponse
from benchmarks.clients.client import Latencies, PythonClient
from benchmarks.harness.blocking_connection import BlockingConnection
from benchmarks.harness.produce_frame import VERSION, produce_frame
from benchmarks.works.works import TASKS, Work


class BareSocket(PythonClient):
    idempotent = False
    ways: ClassVar[Iterable[str]] = (TASKS,)
    beats = False

    @classmethod
    def can(cls, work: Work) -> bool:
        return work.tasks == 1

    @classmethod
    def about(cls) -> str:
        return "no client: one request again and again on a blocking socket"

    async def start(self) -> None:
        self._connection = BlockingConnection(self.run.bootstrap_servers)
        self._frame = produce_frame(self.topic, self.payload.values[0], acks=-1)

    async def close(self) -> None:
        self._connection.close()

    async def tasks(self, records: int) -> tuple[Counter[str], Latencies]:
        failures: Counter[str] = Counter()
        latencies: Latencies = []
        clock, ask, frame = time.perf_counter, self._connection.ask, self._frame
        for _ in range(records):
            began = clock()
            answer = ask(frame)
            latencies.append(clock() - began)
            _, response = decode_response(ProduceResponse, VERSION, answer)
            code = response.responses[0].partition_responses[0].error_code
            if code:
                failures[f"error {code}"] += 1
        return failures, latencies
