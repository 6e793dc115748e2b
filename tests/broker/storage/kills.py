"""The broker's process is killed again and again while foreign clients write to it.

With ``log.flush.policy=always`` nothing that was acknowledged is lost, comes twice or out of order, and no transaction
is torn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.broker.storage.corruptions import Progress

PARTITIONS = 3
_START = "import sys, aioproducer.cli; sys.exit(aioproducer.cli.main())"
_QUICK: dict[str, Any] = {
    "retry.backoff.ms": 20,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "log_level": 0,
    "error_cb": lambda error: None,
}


@dataclass
class Kills:
    """The result of a run."""

    count: int
    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    committed: int = 0
    aborted: int = 0
    unknown: int = 0
    """Transactions whose outcome the client does not know."""
    problems: list[str] = field(default_factory=list)


class _Broker:
    """A process, on the same port each time."""

    def __init__(self, directory: Path, log: Path) -> None:
        self._arguments = ["broker", "--data-dir", str(directory), "--topic", f"plain:{PARTITIONS}"]
        self._arguments += ["--topic", f"paid:{PARTITIONS}"]
        self._log = log
        self.servers = ""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        port = self.servers.rpartition(":")[2] or "0"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, *self._arguments, "--port", port],
                stdout=subprocess.PIPE,
                stderr=log,
                env=dict(os.environ),
            )
        assert self._process.stdout is not None
        self.servers = self._process.stdout.readline().decode().strip()
        assert self.servers, self._log.read_text()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class _Writers:
    """An idempotent producer and a transactional one, each in a thread of its own until :meth:`end`."""

    def __init__(self, confluent: Any, servers: str) -> None:
        self._confluent = confluent
        self._common = {"bootstrap.servers": servers, **_QUICK}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._idempotent, self._transactional)]
        self.sent = 0
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        """By partition, the offset of each number."""
        self.failed: list[str] = []
        self.transactions: dict[str, list[int]] = {"committed": [], "aborted": [], "unknown": []}

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wait_for_acknowledgements(self) -> None:
        """Until there are more of them, or for half a minute."""
        before, until = self.count, time.monotonic() + 30
        while self.count == before and time.monotonic() < until:
            time.sleep(0.01)

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _idempotent(self) -> None:
        configs = {**self._common, "enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 900_000}
        configs["queue.buffering.max.messages"] = 5000
        producer = self._confluent.Producer(configs)

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                self.failed.append(f"{message.value()!r}: {error}")
            else:
                self.acknowledged[message.partition()][int(message.value())] = message.offset()

        while not self._stop.is_set():
            try:
                producer.produce("plain", b"%d" % self.sent, partition=self.sent % PARTITIONS, on_delivery=delivered)
                self.sent += 1
            except BufferError:
                pass
            producer.poll(0 if self.sent % 20 else 0.005)
        producer.flush(300)

    def _transactional(self) -> None:
        producer: Any = None
        number = 0
        while not self._stop.is_set():
            how = "unknown"
            try:
                if producer is None:
                    producer = self._confluent.Producer({**self._common, "transactional.id": "x"})
                    producer.init_transactions(60)
                producer.begin_transaction()
                for partition in range(PARTITIONS):
                    producer.produce("paid", b"%d" % number, partition=partition)
                how = self._end(producer, commit=number % 4 != 3)
            except self._confluent.KafkaException:
                producer = None
            self.transactions[how].append(number)
            number += 1
            time.sleep(0.01)

    def _end(self, producer: Any, *, commit: bool) -> str:
        if commit:
            try:
                producer.commit_transaction(60)
                return "committed"
            except self._confluent.KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
        producer.abort_transaction(60)
        return "aborted"


def kills(
    confluent: Any, directory: Path, count: int, seed: int = 0, *, progress: Progress = lambda done: None
) -> Kills:
    """Kills the broker a number of times, and then reads everything."""
    broker = _Broker(directory / "data", directory / "log")
    random = Random(seed)
    found = Kills(count)
    broker.start()
    try:
        writers = _Writers(confluent, broker.servers)
        writers.start()
        try:
            for number in range(count):
                writers.wait_for_acknowledgements()
                time.sleep(random.uniform(0, 0.3))
                broker.kill()
                broker.start()
                progress(number + 1)
            time.sleep(1)
        finally:
            writers.end()
        broker.kill()
        broker.start()
        _judge(confluent, broker.servers, writers, found)
    finally:
        broker.kill()
    return found


def _judge(confluent: Any, servers: str, writers: _Writers, found: Kills) -> None:
    found.sent, found.failed = writers.sent, len(writers.failed)
    found.acknowledged = writers.count
    transactions = writers.transactions
    found.committed, found.aborted, found.unknown = map(len, transactions.values())
    say = found.problems.append
    found.problems += writers.failed[:5]
    for partition, records in enumerate(_read(confluent, servers, "plain", "read_uncommitted")):
        numbers = [number for _, number in records]
        at = {number: offset for offset, number in records}
        for number, offset in writers.acknowledged[partition].items():
            if at.get(number) != offset:
                say(f"plain-{partition}: {number} was acknowledged at {offset}, and is at {at.get(number)}")
        if numbers != sorted(set(numbers)):
            say(f"plain-{partition}: {len(numbers) - len(set(numbers))} come twice, or are out of order")
    seen = [[number for _, number in records] for records in _read(confluent, servers, "paid", "read_committed")]
    for partition, numbers in enumerate(seen):
        if numbers != sorted(set(numbers)):
            say(f"paid-{partition}: records come twice, or are out of order")
        if missing := set(transactions["committed"]) - set(numbers):
            say(f"paid-{partition}: {len(missing)} committed transactions are not there")
        if wrong := set(transactions["aborted"]) & set(numbers):
            say(f"paid-{partition}: {len(wrong)} aborted transactions are there")
    whole = [set(numbers) for numbers in seen]
    if torn := [number for number in set[int]().union(*whole) if not all(number in one for one in whole)]:
        say(f"{len(torn)} transactions are in some partitions, and not in others")


def _read(confluent: Any, servers: str, topic: str, isolation: str) -> list[list[tuple[int, int]]]:
    """Offset and number of every record, by partition."""
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "judge",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            **_QUICK,
        }
    )
    found: list[list[tuple[int, int]]] = [[] for _ in range(PARTITIONS)]
    try:
        consumer.assign([confluent.TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            message = consumer.poll(30)
            assert message is not None, "nothing came for half a minute"
            error = message.error()
            if error is None:
                found[message.partition()].append((message.offset(), int(message.value())))
            elif error.code() == confluent.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise AssertionError(str(error))
    finally:
        consumer.close()
    return found
