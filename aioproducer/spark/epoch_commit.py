"""What the driver does when every task of an epoch has committed: it checks that these are all, and writes that down.

A task does not know how many tasks there are. So only the driver can see that an epoch that is run again has fewer
tasks than before: the rows of a task that no longer exists are in the topic, and among the rows of another task as
well. The number of tasks is kept like the tasks' markers, by a group of the whole write.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from aioproducer import KafkaProducer
from aioproducer.admin import KafkaAdmin
from aioproducer.spark.content_digest import digest_of_all
from aioproducer.spark.exactly_once import WHOLE, admin_of, committed, name_of
from aioproducer.spark.marker import Marker, MarkerMismatchException, WholeMarker

if TYPE_CHECKING:
    from aioproducer.spark.sink_options import SinkOptions
    from aioproducer.spark.task import Task

Done: TypeAlias = "tuple[Task, Marker]"
"""A task, and the marker that stands for its rows."""


async def commit_epoch(options: SinkOptions, done: Sequence[Done]) -> None:
    """MarkerMismatchException if the epoch was committed before with other rows or partitions, or if tasks of it are
    left from an attempt that had more partitions."""
    task = done[0][0]
    name, where = name_of(options, task.write, WHOLE), f"epoch {task.epoch} of {task.write}"
    place = options.marker_place
    markers = [marker for _, marker in done]
    whole = WholeMarker(
        task.epoch,
        sum(marker.rows for marker in markers),
        digest_of_all(marker.digest for marker in markers),
        len(done),
        task.run,
    )
    async with (
        KafkaProducer.from_config({**options.configs, "transactional.id": name}) as producer,
        admin_of(options.configs) as admin,
    ):
        await producer.init_transactions()
        last = WholeMarker.read(await committed(admin, name, place), where)
        if last is not None and last.is_of(task.epoch, where):
            last.check(whole, where)
            return
        if last is None or not task.run or (last.epoch, last.run) != (task.epoch - 1, task.run):
            # Otherwise this run has completed the epoch before, so nobody can have begun this one earlier.
            await _check_that_none_is_left(admin, options, whole, task)
        async with producer.transaction():
            await producer.send_offsets_to_transaction({place: whole.as_offset()}, name)


async def _check_that_none_is_left(admin: KafkaAdmin, options: SinkOptions, whole: WholeMarker, task: Task) -> None:
    beginning = name_of(options, task.write, "")
    groups = await admin.list_groups(without_members=True)  # of a cluster's groups most have some
    known = [group.removeprefix(beginning) for group in groups if group.startswith(beginning)]
    for partition in sorted(int(number) for number in known if re.fullmatch("[0-9]+", number)):
        if partition < whole.partitions:
            continue
        name = name_of(options, task.write, partition)
        marker = Marker.read(await committed(admin, name, options.marker_place), name)
        if marker is not None and marker.epoch >= task.epoch:
            raise MarkerMismatchException(
                f"epoch {task.epoch} of {task.write}: partition {partition} was committed with {marker}, and there are "
                f"only {whole.partitions} partitions now: the query divides its rows otherwise when it is run again, "
                "so it cannot be written exactly once, and some of those rows are in the topic twice"
            )
