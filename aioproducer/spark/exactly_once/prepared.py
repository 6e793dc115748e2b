"""Transactions that tasks have written and left open, so that the driver ends them; and how a marker holds thousands.

Rules only.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Self

from aioproducer.errors import KafkaError

ONGOING: Final = "Ongoing"
"""Kafka's name for the state of a transaction that has not ended."""

_NAME: Final = re.compile(r"([0-9]+)\.([0-9]+)")


class TooManyOpenException(KafkaError):
    """Attempts of a task have left so many transactions open that there is no free transactional id."""


class Prepared(NamedTuple):
    """A transaction of one partition's rows that is complete, and open."""

    partition: int
    slot: int
    """Which of the partition's transactional ids it has: attempts that run side by side have different ones."""
    producer_id: int
    producer_epoch: int
    second_protocol: bool
    """Whether its producer spoke the protocol of KIP-890."""

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """What no other transaction has."""
        return self[:4]

    @property
    def name(self) -> str:
        """The end of its transactional id, behind ``names_of`` the write."""
        return name_of_slot(self.partition, self.slot)


def names_of(prefix: str, write: str) -> str:
    """What the groups and transactional ids of a write begin with; no other prefix and write have a name in common.

    A prefix with dashes is followed by their number as well: ``a-b`` and ``c`` are not ``a`` and ``b-c``.
    """
    dashes = prefix.count("-")
    return f"{prefix}-{write}-" + (f"{dashes}_" if dashes else "")


def name_of_slot(partition: int, slot: int) -> str:
    """The end of the transactional id."""
    return f"{partition}.{slot}"


def slot_named(name: str) -> tuple[int, int] | None:
    """Partition and slot; None for any other name."""
    found = _NAME.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2]))


def packed(all_prepared: Sequence[Prepared]) -> str:
    """A text for those of the partitions 0, 1, 2, …: about eight characters each, because ids of producers that begin
    at the same time lie close together."""
    data = bytearray()
    last = 0
    for partition, one in enumerate(all_prepared):
        assert one.partition == partition
        step = one.producer_id - last
        last = one.producer_id
        for number in (one.slot * 2 + one.second_protocol, step * 2 if step >= 0 else -step * 2 - 1):
            data += _varint(number)
        data += _varint(one.producer_epoch)
    return b64encode(data).decode()


def unpacked(text: str) -> tuple[Prepared, ...]:
    """What was packed; ValueError for any other text."""
    numbers = list(_numbers(b64decode(text, validate=True)))
    if len(numbers) % 3:
        raise ValueError("a number is missing")
    found: list[Prepared] = []
    last = 0
    for place in range(0, len(numbers), 3):
        slot, step, epoch = numbers[place : place + 3]
        last += -(step + 1) // 2 if step & 1 else step // 2
        found.append(Prepared(place // 3, slot >> 1, last, epoch, bool(slot & 1)))
    return tuple(found)


class Outcome(NamedTuple):
    """What a task reports to the driver."""

    partition: int
    rows: int
    digest: str
    prepared: Prepared | None
    """None if the rows were decided before: there is nothing to end."""

    @classmethod
    def held(cls, rows: int, digest: str, prepared: Prepared) -> Self:
        return cls(prepared.partition, rows, digest, prepared)


def prepared_of(outcomes: Iterable[Outcome]) -> list[Prepared]:
    """The transactions that tasks have left open."""
    return [one.prepared for one in outcomes if one.prepared is not None]


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def _numbers(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number = shift = 0
    if shift:
        raise ValueError("the last number breaks off")
