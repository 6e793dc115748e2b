"""What a task's transaction writes besides its rows: the marker by which the task is recognised if it is run again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Final, Self

from aioproducer.errors import KafkaError
from aioproducer.types import OffsetAndMetadata

VERSION: Final = 2
"""The version of the markers' form and of their digests, so that others can be recognised."""

_OLDER: Final = (1,)
"""Versions with the same form and another digest."""


class MarkerMismatchException(KafkaError):
    """A task was run again and has other rows than before, or later epochs were written since."""


class MissingMarkerException(KafkaError):
    """The markers of earlier epochs are gone, so nobody knows whether this one was written before."""


@dataclass(frozen=True)
class Marker:
    """The metadata of an offset that the task's own group commits; the offset itself is the epoch."""

    epoch: int
    rows: int
    digest: str
    version: int = field(default=VERSION, kw_only=True)

    @classmethod
    def read(cls, committed: OffsetAndMetadata | None, where: str) -> Self | None:
        """The last one, or None if there has been none yet; MarkerMismatchException if it cannot be read."""
        if committed is None:
            return None
        try:
            told = json.loads(committed.metadata)
            version = told["version"]
            if version == VERSION or version in _OLDER:
                return cls(**told)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise MarkerMismatchException(
                f"{where}: its group has committed {committed.metadata!r}, which is no marker of this sink: "
                'somebody else uses the name; set another "transactionalIdPrefix"'
            ) from error
        raise MarkerMismatchException(
            f"{where}: its marker has version {version!r}, and this sink reads version {VERSION} and older: "
            "use the version of aioproducer that has written it"
        )

    def as_offset(self) -> OffsetAndMetadata:
        """The marker in the form in which it is committed."""
        return OffsetAndMetadata(self.epoch, json.dumps(asdict(self), separators=(",", ":")))

    def is_of(self, epoch: int, where: str) -> bool:
        """Whether the epoch was written; MarkerMismatchException if a later one was."""
        if self.epoch > epoch:
            raise MarkerMismatchException(
                f"{where}: epoch {self.epoch} was written already: the checkpoint is older than the topic, or two "
                "writes have its name; nothing was written"
            )
        return self.epoch == epoch

    def shows_what_was_before(self, epoch: int, *, consecutive: bool) -> bool:
        """Whether a marker of this epoch would still be there if it had been written: this one is older.

        ``consecutive``: each epoch follows the one before it, as those of streams do."""
        return not consecutive or self.epoch >= epoch - 1

    def check(self, again: Marker, where: str) -> None:
        """MarkerMismatchException unless the repeated task had the same rows."""
        if self.version != again.version:
            raise MarkerMismatchException(
                f"{where}: it was committed by an older version of aioproducer. Its marker has version {self.version} "
                "and a digest that this version does not make, so the rows cannot be compared: finish this epoch with "
                "the version that began it; epochs after it may be written with this one"
            )
        if again != self:
            raise MarkerMismatchException(
                f"{where}: it was committed with {self}, and has {again} now: the query gives other rows when it is "
                "run again, so it cannot be written exactly once"
            )

    def __str__(self) -> str:
        return f"{self.rows} rows (digest {self.digest})"


@dataclass(frozen=True)
class WholeMarker(Marker):
    """The driver's marker of a whole epoch, or a whole batch, when all of its tasks have committed."""

    partitions: int
    run: str = field(compare=False)
    """The run of the streaming query that wrote it: each start of the query is another run. Empty for a batch."""

    def __str__(self) -> str:
        return f"{super().__str__()} in {self.partitions} partitions"
