"""The first record to read: ``--from``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from aioproducer.cli.running import InputError
from aioproducer.reader import PartitionReader

EARLIEST, LATEST = "earliest", "latest"

HELP = (
    "Where to begin: earliest; latest, which is the end; an offset; -N, the last N records of each partition; a time, "
    "as 2026-01-31T09:30 (in this machine's time zone, unless it names one) or as @ and milliseconds since the epoch."
)

_MOST_DIGITS = 18
"""Of an offset or a time: such a number is less than 2**63."""


@dataclass(frozen=True, slots=True)
class Start:
    """One of these is set; none means the earliest offset."""

    offset: int | None = None
    last: int | None = None
    """How many records before the end."""
    timestamp_ms: int | None = None

    @classmethod
    def parse(cls, text: str) -> Start:
        """Raises ValueError, which says what is allowed."""
        if text == EARLIEST:
            return cls()
        if text == LATEST:
            return cls(last=0)
        if found := re.fullmatch(rf"([-@]?)([0-9]{{1,{_MOST_DIGITS}}})", text):
            number = int(found[2])
            match found[1]:
                case "-":
                    return cls(last=number)
                case "@":
                    return cls(timestamp_ms=number)
            return cls(offset=number)
        try:
            milliseconds = round(datetime.fromisoformat(text).timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            milliseconds = -1
        if milliseconds < 0:
            raise ValueError(f"{text!r} is neither {EARLIEST}, {LATEST}, an offset, -N nor a time since 1970")
        return cls(timestamp_ms=milliseconds)

    async def of(self, reader: PartitionReader) -> int:
        """The offset in this reader's partition; raises InputError for an offset after the end."""
        if self.offset is not None:
            end = await reader.end_offset()
            if self.offset > end:
                topic, partition = reader.topic_partition
                raise InputError(f"offset {self.offset} is not in {topic}-{partition}, which ends at {end}")
            return self.offset
        if self.timestamp_ms is not None:
            found = await reader.offset_for_time(self.timestamp_ms)
            return await reader.end_offset() if found is None else found
        beginning = await reader.beginning_offset()
        return beginning if self.last is None else max(beginning, await reader.end_offset() - self.last)
