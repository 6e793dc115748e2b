"""The driver's decision about an epoch: all of its rows are to be read, and these transactions hold them.

A decision is kept as metadata of an offset, as markers are. One that names many transactions has further pieces, each
with a group of its own. Rules only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from aioproducer.errors import IllegalStateException, KafkaError
from aioproducer.spark.exactly_once.content_digest import digest_of_all
from aioproducer.spark.exactly_once.marker import (
    VERSION,
    Marker,
    MarkerMismatchException,
    MissingMarkerException,
    as_text,
    fields_of,
    no_marker,
)
from aioproducer.spark.exactly_once.prepared import Outcome, Prepared, packed, unpacked
from aioproducer.types import OffsetAndMetadata

ANY_ROWS: Final = ""
"""The digest of an epoch that is never compared."""

PIECE: Final = 3500
"""Characters of transactions in one piece: brokers take 4,096 bytes (offset.metadata.max.bytes)."""

_RESERVE: Final = 10
"""The part of a transaction's time that must be left when an epoch is decided: a tenth."""


class EpochNotCommittedException(KafkaError):
    """A task's transaction was no longer open when the driver was to commit the epoch; no row of it can be read."""


class EpochIncompleteException(KafkaError):
    """The epoch is decided, and the transaction of some partitions was aborted before the driver had committed it."""


class EpochLostException(KafkaError):
    """The transactions of an epoch are committed, and their markers are gone: the topic was deleted meanwhile."""


@dataclass(frozen=True)
class Decision:
    """That an epoch is to be read, by the driver of a whole write."""

    epoch: int
    rows: int
    digest: str
    partitions: int
    prepared: tuple[Prepared, ...]
    """The transactions of all partitions, in their order; none of an older version, whose tasks had ended them."""
    version: int = VERSION

    @classmethod
    def of(cls, epoch: int, outcomes: Iterable[Outcome], where: str) -> Decision:
        """The decision that these are the rows of the epoch; IllegalStateException unless they are all there."""
        prepared = []
        in_order = _in_order(outcomes, where)
        for one in in_order:
            if one.prepared is None:
                raise IllegalStateException(f"{where}: partition {one.partition} found a decision that is gone now")
            prepared.append(one.prepared)
        return cls(epoch, *_sum(in_order), len(prepared), tuple(prepared))

    @classmethod
    def set_by_hand(cls, epoch: int) -> Decision:
        """The decision that the epoch is written, whatever rows it has: nothing is compared when it is run again.

        With epoch -1, that none is written."""
        return cls(epoch, 0, ANY_ROWS, 0, ())

    # As it is kept

    @classmethod
    def pieces_of(cls, head: OffsetAndMetadata, where: str) -> int:
        """How many pieces follow the head."""
        return int(fields_of(head, where).get("pieces", 0))

    @classmethod
    def read(
        cls, head: OffsetAndMetadata | None, pieces: Sequence[OffsetAndMetadata | None], where: str
    ) -> Decision | None:
        """The last one, or None if there has been none yet; MarkerMismatchException if it cannot be read."""
        if head is None:
            return None
        fields = fields_of(head, where)
        try:
            text = str(fields.get("prepared", ""))
            if pieces:
                text += "".join("" if piece is None else piece.metadata for piece in pieces)
            if fields.get("check", 0) != (crc32(text.encode()) if text else 0):
                raise MarkerMismatchException(
                    f"{where}: the pieces of its decision about epoch {head.offset} do not belong together: another "
                    "driver is writing it, or brokers have forgotten some"
                )
            return cls(
                int(fields["epoch"]),
                int(fields["rows"]),
                str(fields["digest"]),
                int(fields["partitions"]),
                unpacked(text),
                fields["version"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise no_marker(head, where) from error

    def as_offsets(self) -> list[OffsetAndMetadata]:
        """The head, and the pieces that follow it, as they are committed."""
        text = packed(self.prepared)
        first, *others = [text[begin : begin + PIECE] for begin in range(0, len(text), PIECE)] or [""]
        fields = {
            "version": self.version,
            "epoch": self.epoch,
            "rows": self.rows,
            "digest": self.digest,
            "partitions": self.partitions,
            "pieces": len(others),
            "check": crc32(text.encode()) if text else 0,
            "prepared": first,
        }
        offset = max(self.epoch, 0)
        return [OffsetAndMetadata(offset, as_text(fields)), *(OffsetAndMetadata(offset, one) for one in others)]

    # What follows from it

    def check(self, outcomes: Iterable[Outcome], where: str) -> None:
        """MarkerMismatchException unless the repeated epoch has the same rows, however they are divided now."""
        if self.version != VERSION:
            raise MarkerMismatchException(
                f"{where}: it was committed by an older version of aioproducer. Its marker has version {self.version} "
                "and a digest that this version does not make, so the rows cannot be compared: finish this epoch with "
                "the version that began it; epochs after it may be written with this one"
            )
        rows, digest = _sum(_in_order(outcomes, where))
        if self.digest == ANY_ROWS:
            return
        if (rows, digest) != (self.rows, self.digest):
            raise MarkerMismatchException(
                f"{where}: it was committed with {self}, and has {rows} rows (digest {digest}) now: the query gives "
                "other rows when it is run again, so it cannot be written exactly once; nothing was written now"
            )

    def again(
        self, lost: Sequence[Prepared], there: Mapping[int, Marker | None], outcomes: Sequence[Outcome], where: str
    ) -> Decision:
        """The decision with what repeated tasks have written in the place of what was lost.

        ``there``: the markers of the partitions that are not lost. EpochIncompleteException unless the rows would be
        those that were decided.
        """
        by_partition = {one.partition: one for one in outcomes}
        others = {one.partition: by_partition.get(one.partition) for one in lost}
        parts: list[tuple[int, str]] = [(one.rows, one.digest) for one in there.values() if one is not None]
        parts += [(one.rows, one.digest) for one in others.values() if one is not None and one.prepared is not None]
        together = sum(rows for rows, _ in parts), digest_of_all(digest for _, digest in parts)
        if len(outcomes) != self.partitions or len(parts) != self.partitions or together != (self.rows, self.digest):
            raise incomplete(lost, where, self.partitions, "this run divides the rows otherwise")
        prepared = list(self.prepared)
        for partition, one in others.items():
            assert one is not None
            assert one.prepared is not None
            prepared[partition] = one.prepared
        return Decision(self.epoch, self.rows, self.digest, self.partitions, tuple(prepared))

    def __str__(self) -> str:
        if self.digest == ANY_ROWS:
            return "whatever rows it has, because its marker was set by hand"
        return f"{self.rows} rows (digest {self.digest}) in {self.partitions} partitions"


def check_order(last: Decision | None, epoch: int, where: str) -> None:
    """MarkerMismatchException if a later epoch was decided."""
    if last is not None and last.epoch > epoch:
        raise MarkerMismatchException(
            f"{where}: epoch {last.epoch} was written already: the checkpoint is older than the topic, or two "
            "writes have its name; nothing was written"
        )


def check_none_is_missing(
    last: Decision | None, epoch: int, where: str, *, group: str, place: str, streaming: bool
) -> None:
    """MissingMarkerException unless the last decision shows that this epoch was not decided before: brokers forget
    older ones first. Epochs of a stream follow each other without a gap."""
    if epoch == 0 or (last is not None and (not streaming or last.epoch >= epoch - 1)):
        return
    before = f"epoch {epoch - 1}" if streaming else "any earlier epoch"
    raise MissingMarkerException(
        f"{where}: group {group!r} has no marker of {before} at {place}, so it is not known whether "
        "this epoch was written before; nothing was written. Brokers forget markers after "
        "offsets.retention.minutes; another prefix, writeId or marker topic has other markers. Undo such a change. "
        "Otherwise make sure that no rows of this epoch are in the topic, and set the marker by hand, or option "
        '"allowMissingMarker" to "true" until the epoch is committed'
    )


def check_not_begun(marker: Marker | None, partition: int, epoch: int, where: str) -> None:
    """MarkerMismatchException if the rows of a partition are there although the epoch is not decided: tasks of an
    older version ended their own transactions."""
    if marker is not None and marker.epoch >= epoch:
        raise MarkerMismatchException(
            f"{where}: partition {partition} was committed with {marker} in epoch {marker.epoch}, and the whole epoch "
            "was not: an older version of aioproducer has begun it, which has to finish it, or brokers have forgotten "
            "the marker of the whole; nothing was written"
        )


def check_open(prepared: Sequence[Prepared], left_ms: Sequence[int | None], timeout_ms: int, where: str) -> None:
    """EpochNotCommittedException unless all transactions are open, and for long enough to be ended in time."""
    for one, left in zip(prepared, left_ms, strict=True):
        if left is None:
            why = (
                f"the transaction of partition {one.partition} is no longer open: brokers have aborted it after "
                f"transaction.timeout.ms = {timeout_ms}, or another attempt, driver or write of this name has ended it"
            )
        elif left * _RESERVE < timeout_ms:
            why = (
                f"the transaction of partition {one.partition} has {left} ms left, "
                f"of transaction.timeout.ms = {timeout_ms}"
            )
        else:
            continue
        raise EpochNotCommittedException(
            f"{where}: {why}. Nothing of the epoch can be read; run it again. If that happens again, "
            "raise the option kafka.transaction.timeout.ms (brokers allow at most their transaction.max.timeout.ms), "
            "or give the epoch fewer rows: all of its tasks must finish within that time"
        )


def incomplete(lost: Sequence[Prepared], where: str, partitions: int, why: str) -> EpochIncompleteException:
    """The error for an epoch of which some rows are there and some are not."""
    some = _numbers([one.partition for one in lost])
    return EpochIncompleteException(
        f"{where}: the rows of {len(lost)} of {partitions} partitions ({some}) were aborted after the epoch had been "
        f"decided ({why}); those of the others can be read. Run the epoch again, from the same checkpoint or with "
        f"the same writeId and writeEpoch, with the same {partitions} partitions: only what is missing is written "
        "then. Let less time pass between the tasks and the restart than transaction.timeout.ms, or raise that config"
    )


def gone(committed: Sequence[Prepared], epoch: int, where: str, topic: str) -> EpochLostException:
    """The error for transactions that are committed, and whose markers are gone.

    A marker is an offset of the topic, and its group loses it with the topic, as readers lose the rows.
    """
    some = _numbers([one.partition for one in committed])
    return EpochLostException(
        f"{where}: the transactions of epoch {epoch} are committed, and the markers of {len(committed)} partitions "
        f"({some}), which are offsets of topic {topic!r}, are gone. So the topic was deleted, or deleted and created "
        "anew, after tasks had written to it, and the rows that it had cannot be read; or the offsets of the write's "
        "groups were deleted. Find out which rows of the epoch are in the topic, and set the marker by hand: to the "
        "epoch before it if none are, and run it again; to this epoch if all are, or to do without those that are "
        "missing"
    )


def forgotten(partitions: Sequence[int], where: str) -> MissingMarkerException:
    """The error for transactions that were decided, and of which brokers know nothing any more."""
    return MissingMarkerException(
        f"{where}: the rows of partitions {_numbers(partitions)} were decided, and brokers have forgotten the "
        "transactions (transactional.id.expiration.ms) and have no markers of them (offsets.retention.minutes), so it "
        "is not known whether these rows can be read; nothing was written. Find that out, and set the marker by hand: "
        "to the epoch of the decision if all of its rows are in the topic, or to the one before if none are"
    )


def _numbers(partitions: Sequence[int]) -> str:
    return ", ".join(map(str, partitions[:20])) + (", …" if len(partitions) > 20 else "")


def _in_order(outcomes: Iterable[Outcome], where: str) -> list[Outcome]:
    found = sorted(outcomes, key=lambda one: one.partition)
    if [one.partition for one in found] != list(range(len(found))):
        raise IllegalStateException(
            f"{where}: Spark has handed over the partitions {[one.partition for one in found]}: some are missing"
        )
    return found


def _sum(outcomes: Sequence[Outcome]) -> tuple[int, str]:
    return sum(one.rows for one in outcomes), digest_of_all(one.digest for one in outcomes)
