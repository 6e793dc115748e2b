"""The checkpoint of a streaming query, in a directory of this machine: which query it is of, and how far that has come.

Spark keeps the query's id in ``metadata``, and a file for each epoch, whose name is its number: in ``offsets`` when it
is planned, in ``commits`` when its commit has returned.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from aioproducer.errors import IllegalArgumentException


@dataclass(frozen=True)
class Checkpoint:
    """What the next start of the query will do."""

    query_id: str
    next_epoch: int
    again: bool
    """Whether that epoch was planned before."""

    @classmethod
    def read(cls, directory: Path) -> Self:
        """IllegalArgumentException if the directory is not a checkpoint; OSError if it cannot be read."""
        try:
            query_id = json.loads((directory / "metadata").read_text(encoding="utf-8"))["id"]
        except (FileNotFoundError, KeyError, TypeError, ValueError) as error:
            raise IllegalArgumentException(
                f"{directory} is not the checkpoint of a streaming query: {error}"
            ) from error
        planned, committed = _last(directory / "offsets"), _last(directory / "commits")
        return cls(str(query_id), max(planned, committed + 1), planned > committed)


def _last(directory: Path) -> int:
    """The last epoch that has a file there; -1 if none has."""
    if not directory.is_dir():
        return -1
    return max((int(file.name) for file in directory.iterdir() if file.name.isdecimal()), default=-1)
