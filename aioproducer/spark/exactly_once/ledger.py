"""The ledger of a write, kept by brokers: implements ``two_phases.Ledger`` with requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from aioproducer import KafkaProducer, OffsetAndMetadata
from aioproducer.admin import AdminConfig, KafkaAdmin, TransactionDescription
from aioproducer.configs.producer_config import known_to
from aioproducer.errors import (
    InvalidPidMappingException,
    InvalidProducerEpochException,
    InvalidTxnStateException,
    ProducerFencedException,
    UnknownTopicOrPartitionException,
)
from aioproducer.producer.producer import core_of
from aioproducer.producer.transactions.transaction_manager import TransactionManager
from aioproducer.spark.exactly_once.decision import Decision, forgotten
from aioproducer.spark.exactly_once.marker import Marker
from aioproducer.spark.exactly_once.prepared import ONGOING, Prepared, names_of, slot_named
from aioproducer.spark.sink.sink_options import SinkOptions
from aioproducer.types import TopicPartition

_WHOLE: Final = "all"
"""The end of the driver's name, where those of partitions have their numbers."""

_LONGEST_DECISION_MS: Final = 20_000
"""For how long tasks wait, at most, for a decision whose driver has crashed in the middle of it."""

_IS_OVER = (
    InvalidPidMappingException,
    InvalidProducerEpochException,
    InvalidTxnStateException,
    ProducerFencedException,
)


class KafkaLedger:
    """``where`` names the epoch in messages. Made by ``open_ledger``."""

    def __init__(self, admin: KafkaAdmin, options: SinkOptions, write: str, where: str) -> None:
        self.admin = admin
        self.options = options
        self.where = where
        self._prefix = names_of(options.prefix, write)

    @property
    def whole(self) -> str:
        """The driver's transactional.id, and the group of its decisions."""
        return self._prefix + _WHOLE

    @property
    def topic(self) -> str:
        return self.options.marker_place.topic

    def group_of(self, partition: int) -> str:
        """The group of a partition's markers."""
        return self._prefix + str(partition)

    def transactional_id(self, name: str) -> str:
        """That of a partition's slot."""
        return self._prefix + name

    async def decision(self, *, stable: bool = True) -> Decision | None:
        """As it was, if not ``stable`` and another one is being made."""
        place = self.options.marker_place
        head = (await self._committed([self.whole], place, stable=stable))[self.whole]
        return await self._decision_of(head, place, stable=stable)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def markers(self, partitions: Sequence[int]) -> dict[int, Marker | None]:
        groups = {self.group_of(partition): partition for partition in partitions}
        found = await self._committed(groups, self.options.marker_place, stable=False)
        return {groups[group]: Marker.read(committed, self.where) for group, committed in found.items()}

    async def markers_from(self, partitions: int) -> dict[int, Marker | None]:
        """The markers of partitions from this number on."""
        groups = await self.admin.list_groups(without_members=True)  # of a cluster's groups most have some
        known = [group.removeprefix(self._prefix) for group in groups if group.startswith(self._prefix)]
        numbers = sorted(int(name) for name in known if re.fullmatch("[0-9]+", name) and int(name) >= partitions)
        return await self.markers(numbers)

    async def transactions(self, *, states: Sequence[str] = ()) -> dict[str, TransactionDescription]:
        """The tasks' and the driver's, by the ends of their ids; with ``states`` only those in one of them."""
        found = await self.admin.list_transactions(states=states)
        mine = [name for name in found if name == self.whole or self._slot_of(name) is not None]
        described = await self.admin.describe_transactions(mine) if mine else {}
        return {name.removeprefix(self._prefix): one for name, one in described.items() if one is not None}

    async def end(self, prepared: Prepared, *, committed: bool) -> bool:
        try:
            await self.admin.end_transaction(
                self.transactional_id(prepared.name),
                (prepared.producer_id, prepared.producer_epoch),
                committed=committed,
                second_protocol=prepared.second_protocol,
            )
        except _IS_OVER:
            return False
        return True

    async def check_remembered(self, prepared: Prepared) -> None:
        name = self.transactional_id(prepared.name)
        found = (await self.admin.describe_transactions([name]))[name]
        if found is None or found.producer_id != prepared.producer_id:
            raise forgotten([prepared.partition], self.where)

    async def check_marker_topic(self) -> None:
        """Checks it now, because it would otherwise fail with the marker, after all rows were sent.

        The topic of the rows is not checked: the first row may create it."""
        if self.topic == self.options.topic:
            return
        try:
            await self.admin.describe_topic(self.topic)
        except UnknownTopicOrPartitionException as error:
            raise UnknownTopicOrPartitionException(
                f'{self.where}: option "markerTopic" names {self.topic!r}, and this topic does not exist; nothing was '
                "written"
            ) from error

    def _slot_of(self, transactional_id: str) -> tuple[int, int] | None:
        """None if no task of this write has it."""
        if not transactional_id.startswith(self._prefix):
            return None
        return slot_named(transactional_id.removeprefix(self._prefix))

    def _piece(self, number: int) -> str:
        return f"{self.whole}.{number}"

    async def _decision_of(
        self, head: OffsetAndMetadata | None, place: TopicPartition, *, stable: bool
    ) -> Decision | None:
        pieces: list[OffsetAndMetadata | None] = []
        if head is not None:
            groups = [self._piece(number) for number in range(1, Decision.pieces_of(head, self.where) + 1)]
            found = await self._committed(groups, place, stable=stable)
            pieces = [found[group] for group in groups]
        return Decision.read(head, pieces, self.where)

    async def _committed(
        self, groups: Iterable[str], place: TopicPartition, *, stable: bool
    ) -> dict[str, OffsetAndMetadata | None]:
        wanted = {group: [place] for group in groups}
        found = await self.admin.list_all_consumer_group_offsets(wanted, require_stable=stable)
        return {group: committed[place] for group, committed in found.items()}


class KafkaDriversLedger(KafkaLedger):
    """With the producer of decisions. Made by ``open_drivers_ledger``."""

    def __init__(
        self, producer: KafkaProducer, admin: KafkaAdmin, options: SinkOptions, write: str, where: str
    ) -> None:
        super().__init__(admin, options, write, where)
        self._producer = producer

    async def take_over(self) -> None:
        await self._producer.init_transactions()

    async def propose(self, decision: Decision) -> None:
        await self._producer.begin_transaction()
        for number, piece in enumerate(decision.as_offsets()):
            group = self._piece(number) if number else self.whole
            await self._producer.send_offsets_to_transaction({self.options.marker_place: piece}, group)

    async def set_back(self, markers: Mapping[int, Marker]) -> None:
        for partition, marker in markers.items():
            place = {self.options.marker_place: marker.as_offset()}
            await self._producer.send_offsets_to_transaction(place, self.group_of(partition))

    async def time_left(self, prepared: Sequence[Prepared]) -> list[int | None]:
        """By the clocks of brokers alone: the decision's own transaction has just begun."""
        names = [self.transactional_id(one.name) for one in prepared]
        found = await self.admin.describe_transactions([self.whole, *names])
        mine = found[self.whole]
        now = None if mine is None or mine.state != ONGOING else mine.start_time_ms
        left: list[int | None] = []
        for one, name in zip(prepared, names, strict=True):
            its = found[name]
            is_open = (
                its is not None
                and its.state == ONGOING
                and (its.producer_id, its.producer_epoch) == (one.producer_id, one.producer_epoch)
            )
            left.append(its.start_time_ms + its.timeout_ms - now if its and is_open and now is not None else None)
        return left

    async def decide(self) -> None:
        await self._producer.commit_transaction()

    async def left_open(self) -> list[Prepared]:
        found = await self.transactions(states=[ONGOING])
        # After that: what begins when another driver has taken over is none of this one's business.
        driver = (await self.admin.describe_transactions([self.whole]))[self.whole]
        manager = core_of(self._producer).transactions
        assert isinstance(manager, TransactionManager)
        if driver is None or (driver.producer_id, driver.producer_epoch) != tuple(manager.identity):
            return []
        kept = await self._decided_elsewhere()
        left = [
            Prepared(*slot, one.producer_id, one.producer_epoch, manager.second_protocol)
            for name, one in found.items()
            if one.state == ONGOING and (slot := slot_named(name)) is not None
        ]
        return [one for one in left if one.identity not in kept]

    async def _decided_elsewhere(self) -> set[tuple[int, int, int, int]]:
        """What was decided under this name with another marker topic: a ``foreachBatch`` may write to several topics
        one after the other."""
        heads = await self.admin.list_consumer_group_offsets(self.whole)
        heads.pop(self.options.marker_place, None)
        decisions = [await self._decision_of(head, place, stable=False) for place, head in heads.items()]
        return {one.identity for decision in decisions if decision is not None for one in decision.prepared}

    async def fence(self, prepared: Prepared) -> None:
        if not await self.end(prepared, committed=False) or prepared.second_protocol:
            return  # with the second protocol the end has fenced it
        name, identity = self.transactional_id(prepared.name), (prepared.producer_id, prepared.producer_epoch)
        try:
            await self.admin.fence_producer(name, identity, int(self.options.configs["transaction.timeout.ms"]))
        except _IS_OVER:
            pass  # another client has


@asynccontextmanager
async def open_ledger(options: SinkOptions, write: str, where: str) -> AsyncIterator[KafkaLedger]:
    """For a task."""
    async with _admin_of(options.configs) as admin:
        yield KafkaLedger(admin, options, write, where)


@asynccontextmanager
async def open_drivers_ledger(options: SinkOptions, write: str, where: str) -> AsyncIterator[KafkaDriversLedger]:
    """For the driver. If a decision was proposed, and is not in force, it is withdrawn."""
    name = names_of(options.prefix, write) + _WHOLE
    timeout = min(int(options.configs["transaction.timeout.ms"]), _LONGEST_DECISION_MS)
    configs = {**options.configs, "transactional.id": name, "transaction.timeout.ms": str(timeout)}
    async with KafkaProducer.from_config(configs) as producer, _admin_of(options.configs) as admin:
        yield KafkaDriversLedger(producer, admin, options, write, where)


def _admin_of(configs: Mapping[str, str]) -> KafkaAdmin:
    """An admin client, with those of a producer's configs that admin clients have."""
    return KafkaAdmin.from_config(known_to(AdminConfig, configs))
