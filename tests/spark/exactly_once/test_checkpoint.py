"""The next start of a query, as its checkpoint determines it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.exactly_once.checkpoint import Checkpoint
from tests.spark.writes.checkpoints import write_checkpoint


@pytest.mark.parametrize(
    ("planned", "committed", "epoch", "again"),
    [
        ((), (), 0, False),
        ((0,), (), 0, True),
        ((0, 1), (0,), 1, True),
        ((8, 9, 10), (8, 9, 10), 11, False),
        ((9, 10, 11), (9, 10), 11, True),
    ],
)
def test_the_next_epoch(
    tmp_path: Path, planned: tuple[int, ...], committed: tuple[int, ...], epoch: int, again: bool
) -> None:
    write_checkpoint(tmp_path, "an-id", planned, committed)
    assert Checkpoint.read(tmp_path) == Checkpoint("an-id", epoch, again)


def test_before_its_first_epoch_a_checkpoint_has_no_more_than_an_id(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"an-id"}')
    assert Checkpoint.read(tmp_path).next_epoch == 0


@pytest.mark.parametrize("metadata", [None, "", "{}", "[1]", "\x00"])
def test_a_directory_that_is_none(tmp_path: Path, metadata: str | None) -> None:
    if metadata is not None:
        (tmp_path / "metadata").write_text(metadata)
    with pytest.raises(IllegalArgumentException, match="is not the checkpoint of a streaming query"):
        Checkpoint.read(tmp_path)
