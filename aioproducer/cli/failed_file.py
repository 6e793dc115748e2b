"""Keeps records that were not delivered, in the format of the input, so that the file can be sent again."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path

from aioproducer.cli.running import InputError

REASONS_SUFFIX = ".reasons.ndjson"


class FailedFile:
    """Two files: the records, and a line of JSON for each with its reason.

    They are created empty at once, so that an unwritable place is noticed before anything is sent, and removed again if
    they stay empty. Raises InputError, or OSError, and then leaves nothing behind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reasons_path = path.with_name(path.name + REASONS_SUFFIX)
        self.count = 0
        self._heading: bytes | None = None
        for file in (self.path, self.reasons_path):
            if file.exists() and (not file.is_file() or file.stat().st_size > 0):
                raise InputError(f"{file} exists already: send its records, or move it away, or name another file")
        with ExitStack() as files:
            self._records = files.enter_context(open(self.path, "wb"))
            files.callback(os.unlink, self.path)
            self._reasons = files.enter_context(open(self.reasons_path, "w", encoding="utf-8"))
            files.pop_all()

    def keep(self, raw: bytes, *, heading: bytes | None, line: int, outcome: str, cause: str, message: str) -> None:
        """Adds a record as it was in the input; ``heading`` goes before the first one."""
        if self.count == 0 and heading is not None:
            self._records.write(heading + b"\n")
        self.count += 1
        self._records.write(raw + b"\n")
        reason = {"line": line, "outcome": outcome, "cause": cause, "message": message}
        self._reasons.write(json.dumps(reason, ensure_ascii=False) + "\n")

    def close(self) -> None:
        """Closes the files, and removes them if nothing was kept."""
        self._records.close()
        self._reasons.close()
        if self.count == 0:
            os.unlink(self.path)
            os.unlink(self.reasons_path)
