"""The marker: the relay's progress as the metadata of an offset, committed in the transaction of the rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Self

from aioproducer.errors.printable import printable
from aioproducer.outbox.errors import PositionMismatchException
from aioproducer.outbox.position import Position, Progress
from aioproducer.types import OffsetAndMetadata

VERSION: Final = 1
MOST_BYTES: Final = 4096
"""Kafka's default for offset.metadata.max.bytes."""


@dataclass(frozen=True)
class Marker:
    """Which rows of which database are relayed. The offset itself is the highest id among them."""

    table: str
    """The system identifier of the database server, and the oids of database and table: ids are the same elsewhere."""
    progress: Progress

    def as_offset(self) -> OffsetAndMetadata:
        """The form in which it is committed."""
        since, until = self.progress.since, self.progress.until
        fields: dict[str, object] = {"v": VERSION, "table": self.table, "since": since.pack()}
        if until is not None:
            fields |= {"until": until.pack(), "after": self.progress.after}
        return OffsetAndMetadata(self.progress.newest, json.dumps(fields, separators=(",", ":")))

    def fits(self) -> bool:
        """Whether a broker with Kafka's defaults takes it; with thousands of transactions open at once it may not."""
        return len(self.as_offset().metadata) <= MOST_BYTES

    @classmethod
    def read(cls, committed: OffsetAndMetadata, name: str) -> Self:
        """The marker that a relay has committed; PositionMismatchException if this relay cannot read it."""
        try:
            fields = json.loads(committed.metadata)
            if fields["v"] != VERSION:
                raise PositionMismatchException(
                    f"the position of {name!r} has version {printable(str(fields['v']))}, and this relay reads version "
                    f"{VERSION}: use the version of aioproducer that has written it"
                )
            until = Position.unpack(fields["until"]) if "until" in fields else None
            return cls(
                str(fields["table"]), Progress(Position.unpack(fields["since"]), until, int(fields.get("after", 0)))
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise PositionMismatchException(
                f"the group {name!r} has committed {printable(committed.metadata)!r}, which is no position of an "
                "outbox: another program uses the group; give the relay another name"
            ) from error
