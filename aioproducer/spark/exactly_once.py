"""A task's write that happens once, however often the task is run.

A task has a transactional.id and a group of its own, named after the query and the partition. Its rows, and a marker as
the metadata of an offset of that group, are one transaction. An attempt first takes over the transactional.id, which
ends whatever its predecessor has left open, one way or the other. Then it reads the marker: if that is of this epoch,
the rows are there already. ``docs/spark.md`` says what may crash when.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from aioproducer import KafkaProducer, OffsetAndMetadata, TopicPartition
from aioproducer.admin import AdminConfig, KafkaAdmin
from aioproducer.spark.content_digest import ContentDigest
from aioproducer.spark.marker import Marker
from aioproducer.spark.read_ahead import read_ahead
from aioproducer.spark.topic_streams import send_rows

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from aioproducer.spark.sink_options import SinkOptions
    from aioproducer.spark.task import Task

_ADMIN_CONFIGS = {field.name.replace("_", ".") for field in dataclasses.fields(AdminConfig)}


def name_of(options: SinkOptions, task: Task) -> str:
    """The task's transactional.id, and its group."""
    return f"{options.prefix}-{task.write}-{task.partition}"


async def write_once(
    options: SinkOptions, columns: Mapping[str, str], task: Task, batches: Iterator[RecordBatch]
) -> Marker:
    """Writes the rows, or finds them written; returns the marker that stands for them.

    ProducerFencedException if another attempt of the task has taken over; MarkerMismatchException if the task was
    written with other rows. Whatever is raised, nothing of this attempt will be read, unless it was that the end of the
    commit did not come in time (TimeoutException): the next attempt finds out.
    """
    name, where = name_of(options, task), str(task)
    assert options.marker_topic is not None
    place = TopicPartition(options.marker_topic, 0)
    digest = ContentDigest(columns.values())
    rows = read_ahead(digest.through(batches))
    async with KafkaProducer.from_config({**options.configs, "transactional.id": name}) as producer:
        await producer.init_transactions()
        last = Marker.read(await _committed(options.configs, name, place), where)
        if last is not None and last.is_of(task.epoch, where):
            async for _ in rows:
                pass
            last.check(Marker(task.epoch, digest.rows, digest.text()), where)
            return last
        async with producer.transaction():
            await send_rows(producer, rows, columns, options.topic, where)
            marker = Marker(task.epoch, digest.rows, digest.text())
            await producer.send_offsets_to_transaction({place: marker.as_offset()}, name)
        return marker


async def _committed(configs: Mapping[str, str], group: str, place: TopicPartition) -> OffsetAndMetadata | None:
    known = {name: value for name, value in configs.items() if name in _ADMIN_CONFIGS}
    async with KafkaAdmin.from_config(known) as admin:
        return (await admin.list_consumer_group_offsets(group, [place], require_stable=True))[place]
