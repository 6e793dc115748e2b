"""Looks up in the cluster what a plan needs: partitions, their first and last offsets, the offset of a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aioproducer.admin import AdminConfig, KafkaAdmin, ListOffsetsResultInfo, OffsetSpec, TopicDescription
from aioproducer.admin.offsets import IsolationLevel
from aioproducer.configs.producer_config import known_to
from aioproducer.errors import IllegalArgumentException, UnknownTopicOrPartitionException
from aioproducer.reader import ReaderConfig
from aioproducer.spark.loop_thread import LoopThread
from aioproducer.spark.source.source_options import EARLIEST, LATEST, Position, SourceOptions
from aioproducer.types import TopicPartition

_SPECS = {EARLIEST: OffsetSpec.earliest(), LATEST: OffsetSpec.latest()}


class OffsetReader:
    """Looks up what ``options`` say should be read, on an event loop in its own thread, until it is closed."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._admin = KafkaAdmin.from_config(known_to(AdminConfig, options.configs, of=ReaderConfig))
        self._thread = LoopThread()
        try:
            self._thread.run(self._admin.start())
        except BaseException:
            self._thread.close()
            raise

    def close(self) -> None:
        """Ends connections and thread."""
        try:
            self._thread.run(self._admin.close())
        finally:
            self._thread.close()

    def partitions(self, *, gone: bool = False) -> list[TopicPartition]:
        """The partitions subscribed to, as they are now. UnknownTopicOrPartitionException for what does not exist,
        unless ``gone`` says that it may have existed before."""
        subscription = self._options.subscription
        if subscription.pattern is not None:
            topics = self._thread.run(self._admin.list_topics())
            return [
                partition
                for name, described in topics.items()
                if subscription.pattern.fullmatch(name)
                for partition in _partitions(described)
            ]
        wanted = subscription.topics or tuple(sorted({partition.topic for partition in subscription.partitions}))
        found = self._found(wanted, gone=gone)
        if not subscription.partitions:
            return found
        missing = subscription.partitions.difference(found)
        if missing and not gone:
            raise UnknownTopicOrPartitionException(
                f'option "assign" names {", ".join(map(str, sorted(missing)))}, which does not exist'
            )
        return sorted(subscription.partitions.intersection(found))

    def offsets(self, partitions: Iterable[TopicPartition], offset: int) -> dict[TopicPartition, int]:
        """The EARLIEST or the LATEST offset of each partition."""
        return self._listed(dict.fromkeys(partitions, _SPECS[offset]))

    def ends(self) -> dict[TopicPartition, int]:
        """The LATEST of all that is subscribed to and there."""
        return self._listed(dict.fromkeys(self.partitions(gone=True), _SPECS[LATEST]), gone=True)

    def beginnings(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The EARLIEST of those of the partitions that are still there."""
        wanted = set(partitions)
        there = wanted.intersection(self._found(sorted({partition.topic for partition in wanted}), gone=True))
        return self._listed(dict.fromkeys(there, _SPECS[EARLIEST]), gone=True)

    def resolve(
        self, positions: Mapping[TopicPartition, Position], option: str, *, latest_if_none: bool
    ) -> dict[TopicPartition, int]:
        """The positions as offsets. A time later than every record means the end of the partition if
        ``latest_if_none``; otherwise it raises IllegalArgumentException."""
        specs = {partition: spec for partition, at in positions.items() if (spec := _spec(at)) is not None}
        found = self._listed(specs)
        late = [partition for partition in specs if found[partition] < 0]
        if late and not latest_if_none:
            raise IllegalArgumentException(
                f'option "{option}": {", ".join(map(str, late))} has no record from that time on; with '
                "startingOffsetsByTimestampStrategy=latest reading begins at the end there"
            )
        found |= self.offsets(late, LATEST)
        return {partition: found.get(partition, at.value) for partition, at in positions.items()}

    def _found(self, topics: Iterable[str], *, gone: bool) -> list[TopicPartition]:
        """The topics' partitions; what there is not is left out, if it may be ``gone``."""
        found: list[TopicPartition] = []
        for name, described in self._thread.run(self._admin.describe_topics(topics)).items():
            if isinstance(described, TopicDescription):
                found += _partitions(described)
            elif not (gone and isinstance(described, UnknownTopicOrPartitionException)):
                described.add_note(f"the option that names topic {name!r} is subscribe, or assign")
                raise described
        return found

    def _listed(self, specs: Mapping[TopicPartition, OffsetSpec], *, gone: bool = False) -> dict[TopicPartition, int]:
        level: IsolationLevel = "read_committed" if self._options.read_committed else "read_uncommitted"
        answers = self._thread.run(self._admin.list_offsets(specs, isolation_level=level))
        offsets = {}
        for partition, answer in answers.items():
            if isinstance(answer, ListOffsetsResultInfo):
                offsets[partition] = answer.offset
            elif not (gone and isinstance(answer, UnknownTopicOrPartitionException)):
                raise answer
        return offsets


def _spec(position: Position) -> OffsetSpec | None:
    """What to request from the leader; None for what is an offset already."""
    if position.is_offset:
        return None
    return OffsetSpec.for_timestamp(position.value) if position.kind == "time" else _SPECS[position.value]


def _partitions(described: TopicDescription) -> list[TopicPartition]:
    return [TopicPartition(info.topic, info.partition) for info in described.partitions]
