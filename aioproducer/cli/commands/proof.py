"""Proves that what was read is what was sent: every record once, unchanged, in order.

For each partition, the records sent to it are one sequence of digests (of key and value), in the order of sending. The
records read must be exactly that sequence, at the acknowledged offsets. How the two differ is worked out only if they
do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b

DIGEST_SIZE = 16


def digest(key: bytes | None, value: bytes | None) -> bytes:
    """The digest of a record's content; None and empty differ."""
    sizes = (-1 if key is None else len(key), -1 if value is None else len(value))
    return blake2b(b"%d,%d:%b%b" % (*sizes, key or b"", value or b""), digest_size=DIGEST_SIZE).digest()


class PartitionProof:
    """One partition: 16 bytes for each record that was sent to it."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.wrong_acknowledgements: list[tuple[int, int]] = []
        """(number of the record, acknowledged offset) where these differ; in a new log they must not."""
        self.wrong_offsets: list[tuple[int, int]] = []
        """(expected offset, offset that was read)."""
        self._matching = 0
        self._next_offset = 0
        # All records read from the first unexpected one on; None while there is none.
        self._parted: list[tuple[int, bytes]] | None = None

    def add_sent(self, made: bytes, offset: int) -> None:
        """Adds the next record sent. ``offset`` is the acknowledged one, or -1 if the broker did not say."""
        index = self.sent_count
        self.sent += made
        if offset not in (-1, index):
            self.wrong_acknowledgements.append((index, offset))

    def add_read(self, made: bytes, offset: int) -> None:
        """Adds the next record read."""
        if offset != self._next_offset:
            self.wrong_offsets.append((self._next_offset, offset))
        self._next_offset = offset + 1
        if self._parted is None:
            start = self._matching * DIGEST_SIZE
            if self.sent[start : start + DIGEST_SIZE] == made:
                self._matching += 1
                return
            self._parted = []
        self._parted.append((offset, made))

    @property
    def sent_count(self) -> int:
        return len(self.sent) // DIGEST_SIZE

    @property
    def read_count(self) -> int:
        return self._matching + len(self._parted or ())

    def differences(self) -> list[str]:
        """Sentences about what is wrong; none if nothing is."""
        found = []
        if self.wrong_acknowledgements:
            index, offset = self.wrong_acknowledgements[0]
            found.append(
                f"{_records(self.wrong_acknowledgements)} acknowledged at another offset than its place in the order "
                f"of sending, first number {index} at offset {offset}"
            )
        if self.wrong_offsets:
            due, offset = self.wrong_offsets[0]
            found.append(f"offsets are not contiguous: {offset} was read where {due} was expected")
        if self._parted is None and self._matching == self.sent_count:
            return found
        due_digests = [
            bytes(self.sent[start : start + DIGEST_SIZE])
            for start in range(self._matching * DIGEST_SIZE, len(self.sent), DIGEST_SIZE)
        ]
        return found + self._what_differs(due_digests, self._parted or [])

    def _what_differs(self, due: Sequence[bytes], read: Sequence[tuple[int, bytes]]) -> list[str]:
        missing = _surplus(enumerate(due, self._matching), Counter(made for _, made in read))
        extra = _surplus(read, Counter(due))
        ever_sent = {bytes(self.sent[at : at + DIGEST_SIZE]) for at in range(0, len(self.sent), DIGEST_SIZE)}
        doubled = [(offset, made) for offset, made in extra if made in ever_sent]
        foreign = [(offset, made) for offset, made in extra if made not in ever_sent]
        found = []
        if missing:
            found.append(f"{_records(missing)} missing, first number {missing[0][0]} of those sent")
        if doubled:
            found.append(f"{_records(doubled)} in the log more often than sent, first at offset {doubled[0][0]}")
        if foreign:
            found.append(f"{_records(foreign)} in the log but never sent, first at offset {foreign[0][0]}")
        gone = {number for number, _ in missing}
        added = {offset for offset, _ in extra}
        in_order = [made for number, made in enumerate(due, self._matching) if number not in gone]
        as_read = [(offset, made) for offset, made in read if offset not in added]
        moved = [(offset, made) for (offset, made), right in zip(as_read, in_order, strict=True) if made != right]
        if moved:
            found.append(f"{_records(moved)} not in the order of sending, first at offset {moved[0][0]}")
        return found


class Proof:
    """Proves all partitions, and that no key is in two of them."""

    def __init__(self) -> None:
        self.partitions: defaultdict[int, PartitionProof] = defaultdict(PartitionProof)
        self._partition_of: dict[bytes, int] = {}
        self._split_keys: set[bytes] = set()

    def add_sent(self, partition: int, made: bytes, offset: int) -> None:
        """Adds an acknowledged record, in the order of sending; ``made`` is its digest."""
        self.partitions[partition].add_sent(made, offset)

    def add_read(self, partition: int, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Adds a record that was read, in the order of the log."""
        self.partitions[partition].add_read(digest(key, value), offset)
        if key is not None and self._partition_of.setdefault(key, partition) != partition:
            self._split_keys.add(key)

    @property
    def sent_count(self) -> int:
        return sum(partition.sent_count for partition in self.partitions.values())

    @property
    def read_count(self) -> int:
        return sum(partition.read_count for partition in self.partitions.values())

    @property
    def key_count(self) -> int:
        """Different keys that were read."""
        return len(self._partition_of)

    def differences(self) -> list[str]:
        """Sentences about what differs; none if every record arrived once and in order."""
        found = []
        if self.sent_count != self.read_count:
            found.append(f"{self.sent_count:,} records were sent and {self.read_count:,} read")
        for number, partition in sorted(self.partitions.items()):
            found += [f"partition {number}: {sentence}" for sentence in partition.differences()]
        if self._split_keys:
            found.append(f"{len(self._split_keys):,} keys are in several partitions, {min(self._split_keys)!r} for one")
        return found


def _surplus(items: Iterable[tuple[int, bytes]], others: Counter[bytes]) -> list[tuple[int, bytes]]:
    """The ``items`` that ``others`` lacks or has less often; of equal items, the last ones."""
    left = Counter(others)
    surplus = []
    for number, made in items:
        if left[made] > 0:
            left[made] -= 1
        else:
            surplus.append((number, made))
    return surplus


def _records(which: Sequence[object]) -> str:
    return "1 record is" if len(which) == 1 else f"{len(which):,} records are"
