"""A task's write that happens once, however often the task is run.

Each task has its own transactional.id and group, named after the query and the partition. Its rows are one transaction
together with a marker, which is the metadata of an offset of that group. An attempt first takes over the
transactional.id, which commits or aborts whatever its predecessor left open. Then it reads the marker: if that is of
this epoch, the rows are already there. ``docs/spark.md`` says what may crash when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from aioproducer import KafkaProducer, OffsetAndMetadata, TopicPartition
from aioproducer.admin import AdminConfig, KafkaAdmin
from aioproducer.config import known_to
from aioproducer.errors import (
    InvalidProducerEpochException,
    InvalidTxnStateException,
    KafkaError,
    ProducerFencedException,
    UnknownTopicOrPartitionException,
)
from aioproducer.spark.content_digest import ContentDigest
from aioproducer.spark.marker import Marker, MarkerMismatchException, MissingMarkerException, WholeMarker
from aioproducer.spark.read_ahead import read_ahead
from aioproducer.spark.topic_streams import send_rows

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from aioproducer.spark.sink_options import SinkOptions
    from aioproducer.spark.task import Task

WHOLE = "all"


_ENDED_BY_OTHERS = (InvalidProducerEpochException, InvalidTxnStateException, ProducerFencedException)
"""What a producer is answered whose transaction the coordinator has aborted, or a newer producer."""


class TransactionTooLongException(KafkaError):
    """A task took longer than its transaction may, so brokers have aborted the transaction and the task has failed."""


def name_of(options: SinkOptions, write: str, part: int | str) -> str:
    """The transactional.id and group of a task, by its partition, or of the whole write (``WHOLE``)."""
    return f"{options.prefix}-{write}-{part}"


async def write_once(
    options: SinkOptions, columns: Mapping[str, str], task: Task, batches: Iterator[RecordBatch]
) -> Marker:
    """Writes the rows, or finds them already written; returns their marker.

    ProducerFencedException if another attempt of the task has taken over; TransactionTooLongException if the task took
    longer than ``transaction.timeout.ms``; MarkerMismatchException if the task was written with other rows;
    MissingMarkerException if its epoch is not the first, and the markers of those before are gone. Whatever is raised,
    nothing of this attempt will be read, with one exception: if the commit did not end in time
    (TimeoutException), the next attempt finds out how it ended.
    """
    name, where = name_of(options, task.write, task.partition), str(task)
    place = options.marker_place
    digest = ContentDigest(columns.values())
    rows = read_ahead(digest.through(batches))
    async with KafkaProducer.from_config({**options.configs, "transactional.id": name}) as producer:
        await producer.init_transactions()
        async with admin_of(options.configs) as admin:
            await _check_marker_topic(admin, options, where)
            last = Marker.read(await committed(admin, name, place), where)
            await _check_that_none_is_missing(admin, options, task, last)
        if last is not None and last.is_of(task.epoch, where):
            async for _ in rows:
                pass
            last.check(Marker(task.epoch, digest.rows, digest.text()), where)
            return last
        time = asyncio.get_running_loop().time
        began = time()
        try:
            async with producer.transaction():
                await send_rows(producer, rows, columns, options.topic, where)
                marker = Marker(task.epoch, digest.rows, digest.text())
                await producer.send_offsets_to_transaction({place: marker.as_offset()}, name)
        except KafkaError as error:
            if (late := too_long(error, options, time() - began, where)) is not None:
                raise late from error
            raise
        return marker


def too_long(error: KafkaError, options: SinkOptions, seconds: float, where: str) -> TransactionTooLongException | None:
    """What a transaction has failed of that was under way for so long, if it is its time-out."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, _ENDED_BY_OTHERS):
        cause = cause.__cause__
    allowed = int(options.configs["transaction.timeout.ms"])
    if cause is None or seconds * 1000 < allowed:
        return None
    return TransactionTooLongException(
        f"{where}: its transaction was under way for {seconds:.1f} s, and brokers abort one after "
        f"transaction.timeout.ms = {allowed}, so this attempt has failed. Raise the option "
        "kafka.transaction.timeout.ms (brokers allow at most their transaction.max.timeout.ms), or repartition the "
        "rows into more and shorter tasks"
    )


def admin_of(configs: Mapping[str, str]) -> KafkaAdmin:
    """An admin client, with those of a producer's configs that admin clients have."""
    return KafkaAdmin.from_config(known_to(AdminConfig, configs))


async def committed(admin: KafkaAdmin, group: str, place: TopicPartition) -> OffsetAndMetadata | None:
    """What the group has committed there; waits for transactions that have not quite ended."""
    return (await admin.list_consumer_group_offsets(group, [place], require_stable=True))[place]


async def _check_that_none_is_missing(admin: KafkaAdmin, options: SinkOptions, task: Task, last: Marker | None) -> None:
    """``last`` is the task's own marker, which may be missing because the epochs before had fewer partitions. Then that
    of the whole write decides: it is older than any marker of this epoch, so brokers would have forgotten it first."""
    if task.epoch == 0 or options.allow_missing_marker:
        return
    streaming = options.write_id is None
    if last is not None and last.shows_what_was_before(task.epoch, consecutive=streaming):
        return
    group = name_of(options, task.write, WHOLE)
    whole = WholeMarker.read(await committed(admin, group, options.marker_place), str(task))
    if whole is None or not whole.shows_what_was_before(task.epoch, consecutive=streaming):
        before = f"epoch {task.epoch - 1}" if streaming else "any earlier epoch"
        raise MissingMarkerException(
            f"{task}: group {group!r} has no marker of {before} at {options.marker_place}, so it is not known whether "
            "this epoch was written before; nothing was written. Brokers forget markers after "
            "offsets.retention.minutes; another prefix, writeId or marker topic has other markers. Undo such a change. "
            "Otherwise make sure that no rows of this epoch are in the topic, and set option "
            '"allowMissingMarker" to "true" until the epoch is committed'
        )
    if whole.is_of(task.epoch, str(task)):
        raise MarkerMismatchException(
            f"{task}: the epoch was committed with {whole}, and this partition has no marker of it: the query divides "
            "its rows otherwise when it is run again, or brokers have forgotten the marker; nothing was written"
        )


async def _check_marker_topic(admin: KafkaAdmin, options: SinkOptions, where: str) -> None:
    """Checks it now, because it would otherwise fail with the marker, after all rows were sent.

    The topic of the rows is not checked: the first row may create it."""
    name = options.marker_place.topic
    if name == options.topic:
        return
    try:
        await admin.describe_topic(name)
    except UnknownTopicOrPartitionException as error:
        raise UnknownTopicOrPartitionException(
            f'{where}: option "markerTopic" names {name!r}, and there is no such topic; nothing was written'
        ) from error
