"""No client at all: one Produce request, sent and answered on a blocking socket again and again.

It partitions, batches and retries nothing, has no idempotence, and looks at no answer but for its error code. What it
takes is what the broker, the machine and the system calls take: no client can be faster one record at a time.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from aioproducer.protocol.framing import decode_response
from aioproducer.protocol.messages.produce import ProduceResponse
from benchmarks.clients.client import Latencies, PythonClient
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
        host, _, port = self.run.bootstrap_servers.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frame = produce_frame(self.topic, self.payload.values[0], acks=-1)

    async def close(self) -> None:
        self._socket.close()

    async def tasks(self, records: int) -> tuple[Counter[str], Latencies]:
        failures: Counter[str] = Counter()
        latencies: Latencies = []
        clock, write, frame = time.perf_counter, self._socket.sendall, self._frame
        for _ in range(records):
            began = clock()
            write(frame)
            answer = self._answer()
            latencies.append(clock() - began)
            _, response = decode_response(ProduceResponse, VERSION, answer)
            code = response.responses[0].partition_responses[0].error_code
            if code:
                failures[f"error {code}"] += 1
        return failures, latencies

    def _answer(self) -> bytes:
        received = self._socket.recv(65536)
        while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
            more = self._socket.recv(65536)
            if not more:
                raise ConnectionError("the broker closed the connection")
            received += more
        return received[4:]
