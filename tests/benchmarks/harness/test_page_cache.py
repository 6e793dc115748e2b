from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import page_cache
from benchmarks.harness.page_cache import ready_page_cache

MIB = 1 << 20


class Files:
    """The sizes of the temporary files, when they were closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self.sizes: list[int] = []
        self.synced: list[int] = []
        """How many there had been when the disks were written."""
        self._directory = directory
        self._open = tempfile.NamedTemporaryFile
        monkeypatch.setattr(tempfile, "TemporaryFile", self.open)
        monkeypatch.setattr(os, "sync", lambda: self.synced.append(len(self.sizes)), raising=False)

    def open(self, **options: Any) -> Any:
        file: Any = self._open(dir=self._directory, **options)
        close = file.close

        def closed() -> None:
            self.sizes.append(Path(file.name).stat().st_size)
            close()

        file.close = closed
        return file


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Files:
    return Files(monkeypatch, tmp_path)


async def test_the_disks_are_written_before_memory_is_asked_for(files: Files) -> None:
    await ready_page_cache(3 * MIB - 1)
    assert (files.synced, files.sizes) == ([0], [3 * MIB])


async def test_what_is_asked_for_is_bounded(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "MOST", 2 * MIB)
    await ready_page_cache(1 << 40)
    assert files.sizes == [2 * MIB]


async def test_systems_without_such_a_call_go_without(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sync", raising=False)
    await ready_page_cache(MIB)
    assert (files.synced, files.sizes) == ([], [MIB])
