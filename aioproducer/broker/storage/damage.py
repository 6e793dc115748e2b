"""What a start has found in a data directory that no crash explains, and so does not put right by itself."""

from __future__ import annotations

from collections.abc import Sequence

from aioproducer.errors import DataDirectoryException

_SHOWN = 20
"""Of what an error says; the rest is counted."""


def damaged(directory: object, damage: Sequence[str]) -> DataDirectoryException:
    """The error that says what is damaged, and what to do."""
    shown = list(damage[:_SHOWN])
    if len(damage) > _SHOWN:
        shown.append(f"and {len(damage) - _SHOWN} more")
    return DataDirectoryException(
        f"the data directory {directory} is damaged: {'; '.join(shown)}. Nothing was changed. Put the files back from "
        "a copy; or start with --recover (EmbeddedCluster(recover=True)): it keeps everything that can be read, under "
        "the same offsets, and sets aside what cannot"
    )
