"""Recovers the segments of a partition's log at a start: reads them, and finds torn and damaged batches.

It changes nothing, but collects repairs. What a crash may have torn is cut off and set aside. Other damage fails the
start, unless the cluster is started with ``recover``: then readable batches keep their offsets, and empty batches, such
as Kafka's compaction leaves, replace the others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aioproducer.broker.log.appended_batch import empty_batch, set_place
from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.repair import DAMAGED, TORN, Cut, Remove, Repair, Rewrite, SetAside
from aioproducer.broker.storage.segments.segment import Bad, read_segment, segment_path
from aioproducer.errors import CorruptRecordException
from aioproducer.protocol.primitives import Buffer
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.record_batch import RecordBatch

log = logging.getLogger(__name__)

_MOST = 2**31 - 1
"""How many offsets a batch may span."""

_LARGEST = 128 * 1024 * 1024
"""Bytes of the largest batch that is corrected."""


class Found(NamedTuple):
    """A batch of the log, and the base offset of the segment that has it, or will have it after the repairs."""

    segment: int
    batch: RecordBatch


class LogRecovery:
    """Reads one log. ``base_offsets`` are those of its segments, the log begins at ``log_start_offset``, and everything
    before the offset ``synced_to`` was certainly on disk."""

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offsets: Sequence[int],
        log_start_offset: int,
        synced_to: int,
        *,
        recover: bool = False,
    ) -> None:
        self._files = files
        self._base_offsets = base_offsets
        self._directory = directory
        self._start = log_start_offset
        self._synced_to = synced_to
        self._recover = recover
        self._next = log_start_offset
        self._epoch = -1
        self._transactions: dict[int, int] = {}
        self._ended = False
        self.damage: list[str] = []
        """What is damaged, in lines for the user."""
        self.repairs: list[Repair] = []

    def read(self) -> Iterator[Found]:
        """Every batch that the log has after the repairs, in order."""
        found = list(self._base_offsets)
        while len(found) > 1 and found[1] <= self._start:
            # A crash interrupted the deletion of this file.
            self.repairs.append(Remove(self._path(found.pop(0))))
        if found:
            self._begin(found[0])
        for at, base_offset in enumerate(found):
            later = found[at + 1 :]
            if base_offset < self._next:
                self._surplus(base_offset)
                continue
            if base_offset > self._next:
                if self._is_torn:
                    self._cut(base_offset, 0, f"it begins with {base_offset} where {self._next} follows", later)
                else:
                    yield from self._missing_file(base_offset)
            if not self._ended:
                yield from self._segment(base_offset, later)
            if self._ended:
                return
        if self._next < self._synced_to:
            yield from self._missing_file(self._synced_to)

    def _path(self, base_offset: int) -> str:
        return segment_path(self._directory, base_offset)

    @property
    def _is_torn(self) -> bool:
        """Whether a crash may have torn the next batch, because it was not certainly on disk."""
        return self._next >= self._synced_to

    def _begin(self, first: int) -> None:
        """Checks that the first segment begins at the start of the log, or before it."""
        if first > self._start:
            where = f"the first file is {self._path(first)}"
            if self._is_torn:
                log.error("%s: records %d to %d are missing: %s", self._directory, self._start, first - 1, where)
            else:
                self._lost(first, where)
        self._next = first

    def _segment(self, base_offset: int, later: list[int]) -> Iterator[Found]:
        """The batches of a segment. If this sets :attr:`_ended`, the log ends with it."""
        path = self._path(base_offset)
        parts: list[tuple[int, int] | Buffer] = []
        bad: Bad | None = None
        for piece in read_segment(self._files, path, base_offset):
            if isinstance(piece, Bad):
                if self._is_torn:
                    self._cut(base_offset, piece.position, piece.reason, later)
                    return
                bad = piece
                continue
            if bad is not None:
                for batch in self._in_place_of(path, bad, piece.batch.base_offset):
                    parts.append(batch.data)
                    yield Found(base_offset, batch)
                bad = None
            _add(parts, piece.position, piece.batch.size_in_bytes)
            self._passed(piece.batch)
            yield Found(base_offset, piece.batch)
        if bad is not None:
            for batch in self._in_place_of(path, bad, later[0] if later else self._synced_to):
                parts.append(batch.data)
                yield Found(base_offset, batch)
        size = self._files.size(path)
        if not size and self._is_torn:
            self._cut(base_offset, 0, "it is empty", later)
        elif size and parts != [(0, size)]:
            self.repairs.append(Rewrite(path, parts))

    def _passed(self, batch: RecordBatch) -> None:
        self._next = batch.last_offset + 1
        self._epoch = max(self._epoch, batch.partition_leader_epoch)
        if batch.is_control:
            self._transactions.pop(batch.producer_id, None)
        elif batch.is_transactional:
            self._transactions.setdefault(batch.producer_id, batch.base_offset)

    # what is wrong

    def _cut(self, base_offset: int, position: int, reason: str, later: list[int]) -> None:
        """Ends the log before bad bytes, which a crash left together with everything after them."""
        path = self._path(base_offset)
        also = f", and {len(later)} later files" if later else ""
        log.warning(
            "%s is cut off at byte %d: %s. The log ends at offset %d; the rest is kept in *%s%s",
            path,
            position,
            reason,
            self._next,
            TORN,
            also,
        )
        # The last files come first: after a crash in between, the next start cuts off the others in the same way.
        self.repairs += [SetAside(self._path(one), TORN) for one in reversed(later)]
        self.repairs.append(Cut(path, position))
        self._ended = True

    def _surplus(self, base_offset: int) -> None:
        path = self._path(base_offset)
        log.error("%s is set aside: other files have offsets up to %d", path, self._next - 1)
        self.repairs.append(SetAside(path, DAMAGED))

    def _lost(self, beyond: int, where: str) -> None:
        lines = [f"{self._directory}: records {self._next} to {beyond - 1} cannot be read: {where}"]
        lines += [
            f"{self._directory}: whether records {first} to {self._next - 1} of producer {producer_id} were committed "
            "cannot be read: the end of their transaction may have been there, too"
            for producer_id, first in self._transactions.items()
        ]
        self.damage += lines
        if self._recover:
            for line in lines:
                log.error("%s", line)

    def _in_place_of(self, path: str, bad: Bad, beyond: int) -> Iterator[RecordBatch]:
        """The batches that replace bad bytes: the corrected batch if only fields outside its CRC were wrong, and empty
        batches for offsets that are lost."""
        whole = self._corrected(path, bad, beyond)
        if whole is not None:
            log.warning("%s, byte %d: corrected, and no record is lost: %s", path, bad.position, bad.reason)
            self._passed(whole)
            yield whole
        if self._next < beyond:
            self._lost(beyond, f"{path}, byte {bad.position}: {bad.reason}")
            yield from self._fill(beyond)

    def _corrected(self, path: str, bad: Bad, beyond: int) -> RecordBatch | None:
        size = bad.end - bad.position
        if not BATCH_OVERHEAD <= size <= _LARGEST:
            return None
        data = bytearray(self._files.read(path, bad.position, size))
        set_place(data, self._next)
        batch = RecordBatch(data)
        try:
            batch.verify()
        except CorruptRecordException:
            return None
        return batch if batch.base_offset <= batch.last_offset < beyond else None

    def _fill(self, beyond: int) -> Iterator[RecordBatch]:
        """With ``recover``, empty batches up to an offset."""
        while self._recover and self._next < beyond:
            count = min(beyond - self._next, _MOST)
            batch = RecordBatch(empty_batch(self._next, count, self._epoch))
            self._passed(batch)
            yield batch
        self._next = beyond

    def _missing_file(self, beyond: int) -> Iterator[Found]:
        """The batches that replace a missing segment, which had the offsets up to ``beyond``."""
        base_offset = self._next
        self._lost(beyond, f"{self._path(base_offset)} or its end is missing")
        batches = list(self._fill(beyond))
        if batches:
            self.repairs.append(Rewrite(self._path(base_offset), [batch.data for batch in batches]))
        for batch in batches:
            yield Found(base_offset, batch)


def _add(parts: list[tuple[int, int] | Buffer], position: int, size: int) -> None:
    """Adds a stretch of the file, and joins it to the last one if they are adjacent."""
    last = parts[-1] if parts else None
    if isinstance(last, tuple) and last[1] == position:
        parts[-1] = last[0], position + size
    else:
        parts.append((position, position + size))
