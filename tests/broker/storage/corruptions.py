"""One byte of a data directory changes, anywhere. Then a start has every record that was acknowledged, or names those
that it has not."""

from __future__ import annotations

import logging
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from aioproducer import KafkaProducer, wait_all
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.log.transaction_index import AbortedTransaction
from aioproducer.broker.storage.clean_shutdown import CLEAN_SHUTDOWN
from aioproducer.errors import CorruptRecordException, DataDirectoryException
from aioproducer.records.record_batch import RecordBatch
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

Where = tuple[str, int, int]
"""Topic, partition and offset of a record."""

Progress = Callable[[int], object]

CONFIGS = {"log.segment.bytes": 1024 * 1024}
TOPICS = {"large": 1, "small": 3, "paid": 2}

_RANGE = re.compile(r"(\w+)-(\d+): (?:whether )?records (\d+) to (\d+) [^;:]*?cannot be read")


@dataclass
class Corruptions:
    """What came of them."""

    count: int
    records: int
    """In the directory."""
    outcomes: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    """Records that could not be read afterwards, with ``--recover``; all of them together."""
    silent: list[str] = field(default_factory=list)
    """What was lost, or wrong, and not named by an error."""


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def errors() -> Iterator[list[str]]:
    """The lines that the broker logs as errors, which go nowhere else meanwhile."""
    logger, handler = logging.getLogger("aioproducer.broker"), _Lines()
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates


async def fill(directory: Path, crashed: Path) -> None:
    """Closes a cluster with a bit of everything in ``directory``, and leaves in ``crashed`` what a kill would have."""
    async with EmbeddedCluster(data_dir=directory, configs=CONFIGS) as cluster:
        for topic, partitions in TOPICS.items():
            cluster.create_topic(topic, partitions)
        servers = cluster.bootstrap_servers
        random = Random(1)
        async with KafkaProducer(bootstrap_servers=servers, compression_type="gzip", batch_size=2000) as producer:
            sent = [producer.send("small", b"%d" % number, partition=number % 3) for number in range(600)]
            await wait_all(sent)
        async with KafkaProducer(bootstrap_servers=servers, batch_size=1) as producer:
            for _ in range(120):
                await producer.send("large", random.randbytes(30_000))
        async with KafkaProducer(bootstrap_servers=servers, transactional_id="x") as producer:
            await producer.init_transactions()
            for number in range(20):
                await producer.begin_transaction()
                await wait_all([producer.send("paid", b"%d" % number, partition=index) for index in range(2)])
                offsets = {TopicPartition("small", 0): OffsetAndMetadata(number)}
                await producer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata("g"))
                await (producer.abort_transaction() if number % 4 == 3 else producer.commit_transaction())
        shutil.copytree(directory, crashed)


async def corruptions(
    directory: Path, count: int, seed: int = 0, *, progress: Progress = lambda done: None
) -> Corruptions:
    """Changes one byte in a copy, a number of times: half of them after a clean shutdown, half after a kill."""
    whole, crashed, copy = directory / "whole", directory / "crashed", directory / "copy"
    with errors():
        await fill(whole, crashed)
    async with EmbeddedCluster(data_dir=crashed, configs=CONFIGS) as cluster:
        acknowledged = records(cluster)[0]
    shutil.rmtree(crashed)
    shutil.copytree(whole, crashed)
    (crashed / CLEAN_SHUTDOWN).unlink()
    found = Corruptions(count, len(acknowledged))
    random = Random(seed)
    for number in range(count):
        shutil.copytree(whole if number % 2 else crashed, copy)
        where = _change(copy, random, by_size=number % 4 < 2)
        found.files[_kind(where)] += 1
        try:
            await _judge(copy, where, acknowledged, found)
        finally:
            shutil.rmtree(copy)
        progress(number + 1)
    return found


def _change(directory: Path, random: Random, *, by_size: bool) -> str:
    """Changes one byte of any file, or of any byte the same; returns which."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.stat().st_size)
    weights = [path.stat().st_size if by_size else 1 for path in files]
    (path,) = random.choices(files, weights)
    content = bytearray(path.read_bytes())
    at = random.randrange(len(content))
    content[at] ^= random.randrange(1, 256)
    path.write_bytes(content)
    return f"{path.relative_to(directory)}, byte {at}"


def _kind(where: str) -> str:
    name = where.partition(",")[0]
    return "a log" if name.endswith(".log") else name.rpartition("/")[2]


async def _judge(directory: Path, where: str, acknowledged: dict[Where, bytes | None], found: Corruptions) -> None:
    """Starts as a user would: first as always, and to recover only if that is refused or something cannot be read."""
    with errors() as lines:
        try:
            async with EmbeddedCluster(data_dir=directory, configs=CONFIGS) as cluster:
                left, unreadable = records(cluster)
            outcome = "nothing is lost"
        except DataDirectoryException as error:
            lines.append(str(error))
            left, unreadable = {}, True
            outcome = "the start is refused"
        if unreadable:
            if left:
                outcome = "the reader gets an error"
            left = await _recovered(directory)
    found.outcomes[outcome] += 1
    lost = {one for one in acknowledged if left.get(one) != acknowledged[one]}
    found.lost += len(lost)
    named = set(_named(lines))
    for topic, partition, offset in sorted(lost - named):
        found.silent.append(f"{where}: {topic}-{partition}, offset {offset}")
    surplus = left.keys() - acknowledged.keys() - named
    found.silent += [f"{where}: a record that was never sent, {one}" for one in sorted(surplus)]


async def _recovered(directory: Path) -> dict[Where, bytes | None]:
    (directory / CLEAN_SHUTDOWN).unlink(missing_ok=True)
    async with EmbeddedCluster(data_dir=directory, configs=CONFIGS, recover=True) as cluster:
        left, unreadable = records(cluster)
    assert not unreadable
    return left


def _named(lines: list[str]) -> Iterator[Where]:
    for line in lines:
        for topic, partition, first, last in _RANGE.findall(line):
            yield from ((topic, int(partition), offset) for offset in range(int(first), int(last) + 1))


def records(cluster: EmbeddedCluster) -> tuple[dict[Where, bytes | None], bool]:
    """The records of all topics as consumers of committed ones get them, and whether some cannot be read."""
    found: dict[Where, bytes | None] = {}
    unreadable = False
    for topic, partitions in TOPICS.items():
        for index in range(partitions):
            try:
                log = cluster.log(topic, index)
                offset = log.log_start_offset
                aborted = log.aborted_transactions(offset, log.log_end_offset)
                while batches := log.read(offset, 1024 * 1024, committed=True):
                    for batch in map(RecordBatch, batches):
                        offset = batch.last_offset + 1
                        if not batch.is_control and not (batch.is_transactional and _is_aborted(batch, aborted)):
                            found.update({(topic, index, one.offset): one.value for one in batch.records()})
            except (CorruptRecordException, LookupError):
                unreadable = True
    return found, unreadable


def _is_aborted(batch: RecordBatch, aborted: Iterable[AbortedTransaction]) -> bool:
    return any(
        one.producer_id == batch.producer_id and one.first_offset <= batch.base_offset <= one.last_offset
        for one in aborted
    )
