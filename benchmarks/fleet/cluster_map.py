"""Who leads which partition, for a million of them: kept as the very bytes with which Metadata says it."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from aioproducer.errors.error_code import ErrorCode

METADATA_VERSION: Final = 12
"""The one version of Metadata that these bytes are of."""

REPLICAS: Final = 3
PORT: Final = 9092

_PARTITION: Final = struct.Struct(">hiiiB3iB3iBB")
"""Error, index, leader, leader epoch, replicas, in-sync replicas, offline replicas (none), tags (none)."""
_LED: Final = struct.Struct(">hiii")
_COUNT: Final = REPLICAS + 1
"""How a compact array of so many elements begins."""
_NO_OPERATIONS: Final = struct.pack(">i", -0x80000000)


@dataclass(frozen=True)
class Topic:
    """``first`` is the number of its first partition in the cluster."""

    name: str
    topic_id: UUID
    first: int
    partitions: int
    head: bytes
    body: bytearray
    """All partitions."""


class ClusterMap:
    """Partition ``n`` of the cluster has its replicas on brokers n, n + 1 and n + 2, modulo their number; the first is
    the preferred leader. The in-sync replicas stay these three: no rule of a producer reads them."""

    def __init__(self, brokers: int, topics: Sequence[str], partitions: int) -> None:
        """``partitions`` of each topic."""
        if brokers < REPLICAS:
            raise ValueError(f"{brokers} brokers: partitions have {REPLICAS} replicas")
        self.brokers = brokers
        self.alive = set(range(brokers))
        self.topics: dict[str, Topic] = {}
        self.by_id: dict[UUID, Topic] = {}
        self._by_place: list[Topic] = []
        self._partitions = partitions
        self._nodes = b""
        for name in topics:
            self.create(name)

    def host(self, broker: int) -> str:
        return f"10.{1 + (broker >> 16)}.{broker >> 8 & 255}.{broker & 255}"

    def create(self, name: str) -> Topic:
        first = len(self._by_place) * self._partitions
        topic_id = UUID(int=len(self._by_place) + 1)
        body = bytearray(_PARTITION.size * self._partitions)
        for index in range(self._partitions):
            replicas = self._replicas(first + index)
            leader = self._elect(replicas)
            place = index * _PARTITION.size
            _PARTITION.pack_into(
                body, place, _error(leader), index, leader, 0, _COUNT, *replicas, _COUNT, *replicas, 1, 0
            )
        head = b"".join((bytes(2), _string(name), topic_id.bytes, bytes(1), _uvarint(self._partitions + 1)))
        topic = Topic(name, topic_id, first, self._partitions, head, body)
        self.topics[name] = self.by_id[topic_id] = topic
        self._by_place.append(topic)
        return topic

    def delete(self, name: str) -> None:
        topic = self.topics.pop(name)
        del self.by_id[topic.topic_id]

    def leader(self, topic: Topic, partition: int) -> tuple[int, int]:
        """The leader, -1 if there is none, and its epoch."""
        _, _, leader, epoch = _LED.unpack_from(topic.body, partition * _PARTITION.size)
        return leader, epoch

    # Leaders move

    def stop(self, brokers: Collection[int]) -> None:
        """These brokers are gone; other replicas lead their partitions."""
        self.alive.difference_update(brokers)
        self._nodes = b""
        self.give_away(brokers)

    def give_away(self, brokers: Collection[int]) -> None:
        """Other replicas lead what these brokers lead."""
        gone = set(brokers)
        for number in self._held(gone):
            topic, index = self._place(number)
            if self.leader(topic, index)[0] in gone:
                self._lead(topic, index, self._elect(self._replicas(number), gone))

    def start(self, brokers: Collection[int]) -> None:
        """These brokers are back; they lead nothing unless nobody else can."""
        self.alive.update(brokers)
        self._nodes = b""
        for number in self._held(brokers):
            topic, index = self._place(number)
            if self.leader(topic, index)[0] < 0:
                self._lead(topic, index, self._elect(self._replicas(number)))

    def prefer(self) -> None:
        """Preferred leaders lead again, where they can."""
        for topic in self._by_place:
            for index in range(topic.partitions):
                preferred = (topic.first + index) % self.brokers
                if preferred in self.alive and self.leader(topic, index)[0] != preferred:
                    self._lead(topic, index, preferred)

    def _held(self, brokers: Collection[int]) -> Iterator[int]:
        """The numbers of the partitions of which these brokers have a replica; one may come twice."""
        size = len(self._by_place) * self._partitions
        for broker in brokers:
            for behind in range(REPLICAS):
                yield from range((broker - behind) % self.brokers, size, self.brokers)

    def _place(self, number: int) -> tuple[Topic, int]:
        place, index = divmod(number, self._partitions)
        return self._by_place[place], index

    def _replicas(self, number: int) -> tuple[int, ...]:
        return tuple((number + ahead) % self.brokers for ahead in range(REPLICAS))

    def _elect(self, replicas: Sequence[int], but: Collection[int] = ()) -> int:
        return next((one for one in replicas if one in self.alive and one not in but), -1)

    def _lead(self, topic: Topic, index: int, leader: int) -> None:
        epoch = self.leader(topic, index)[1]
        _LED.pack_into(topic.body, index * _PARTITION.size, _error(leader), index, leader, epoch + 1)

    # Metadata

    def metadata(self, names: Sequence[str]) -> bytes:
        """The body of a Metadata response about these topics."""
        parts: list[bytes | bytearray] = [bytes(4), self._brokers(), _string("fleet")]
        parts += [struct.pack(">i", min(self.alive)), _uvarint(len(names) + 1)]
        for name in names:
            topic = self.topics.get(name)
            if topic is None:
                code = struct.pack(">h", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                parts += [code, _string(name), bytes(16), bytes(1), _uvarint(1)]
            else:
                parts += [topic.head, topic.body]
            parts += [_NO_OPERATIONS, bytes(1)]
        parts.append(bytes(1))
        return b"".join(parts)

    def _brokers(self) -> bytes:
        if not self._nodes:
            parts = [_uvarint(len(self.alive) + 1)]
            for broker in sorted(self.alive):
                node, port = struct.pack(">i", broker), struct.pack(">i", PORT)
                parts += [node, _string(self.host(broker)), port, _string(f"rack-{broker % REPLICAS}"), bytes(1)]
            self._nodes = b"".join(parts)
        return self._nodes


def _error(leader: int) -> int:
    return int(ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE)


def _string(text: str) -> bytes:
    """A compact string."""
    return _uvarint(len(text.encode()) + 1) + text.encode()


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])
