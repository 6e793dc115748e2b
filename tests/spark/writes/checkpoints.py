"""Checkpoints as Spark writes them, as far as the package reads them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def write_checkpoint(directory: Path, query_id: str, planned: Iterable[int], committed: Iterable[int]) -> None:
    (directory / "metadata").write_text(f'{{"id":"{query_id}"}}')
    for name, epochs in (("offsets", planned), ("commits", committed)):
        (directory / name).mkdir()
        for epoch in epochs:
            (directory / name / str(epoch)).write_text("v1\n{}")
            (directory / name / f".{epoch}.crc").write_bytes(b"crc\x00")
