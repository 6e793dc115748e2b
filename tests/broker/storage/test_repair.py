from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress

import pytest

from aioproducer.broker.storage import repair
from aioproducer.broker.storage.repair import TORN, Cut, Keep, Repair, Restore, Rewrite
from tests.broker.storage.faulty_files import Crash, FaultyFiles

CONTENT = b"right" + b"wrong" * 1000 + b"right"

REPAIRS: list[tuple[Callable[[], Repair], str, bytes]] = [
    (lambda: Cut("d/f", 5), "f.5.torn", CONTENT[5:]),
    (lambda: Keep("d/f", 5, TORN), "f.5.torn", CONTENT[5:]),
    (lambda: Rewrite("d/f", [(0, 5), b"new", (len(CONTENT) - 5, len(CONTENT))]), "f.5.damaged", CONTENT[5:-5]),
    (lambda: Restore("d/f", b"new"), "f.0.damaged", CONTENT),
]
IDS = ["cut", "keep", "rewrite", "restore"]


def make_files(seed: int = 0) -> FaultyFiles:
    files = FaultyFiles(seed)
    files.make_directory("d")
    files.append("d/f", [CONTENT])
    files.sync("d/f")
    files.sync_directory("d")
    files.sync_directory("")
    return files


def operations_of(one: Repair) -> int:
    files = make_files()
    before = files.operations
    one.run(files)
    return files.operations - before


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "_CHUNK", 1000)


@pytest.mark.parametrize(("make", "copy", "kept"), REPAIRS, ids=IDS)
def test_a_repair_that_fails_again_and_again_leaves_one_copy(
    make: Callable[[], Repair], copy: str, kept: bytes
) -> None:
    for failing in range(1, operations_of(make()) + 1):
        files = make_files()
        for _ in range(3):
            files.error_at = {files.operations + failing: OSError(errno.ENOSPC, "No space left on device")}
            with suppress(OSError):
                make().run(files)
            if files.read("d/f", 0, len(CONTENT)) != CONTENT:  # only the sync after the change has failed
                break
        else:
            assert "f.partial" not in files.names("d")
            files.error_at = {}
            make().run(files)
        assert [name for name in files.names("d") if name != "f"] == [copy]
        assert files.read(f"d/{copy}", 0, len(CONTENT)) == kept


@pytest.mark.parametrize(("make", "copy", "kept"), REPAIRS, ids=IDS)
def test_a_crash_in_a_repair_loses_no_bytes(make: Callable[[], Repair], copy: str, kept: bytes) -> None:
    for crash_at in range(1, operations_of(make()) + 1):
        for seed in range(5):
            files = make_files(seed)
            files.crash_at = files.operations + crash_at
            with pytest.raises(Crash):
                make().run(files)
            files.crash()
            found = [files.read(f"d/{name}", 0, len(CONTENT)) for name in files.names("d")]
            assert CONTENT in found or kept in found


def test_other_bytes_are_kept_beside_the_first_ones() -> None:
    files = make_files()
    Keep("d/f", 5, TORN).run(files)
    Keep("d/f", 5, TORN).run(files)
    files.append("d/f", [b"more"])
    Keep("d/f", 5, TORN).run(files)
    Keep("d/f", 5, TORN).run(files)
    files.append("d/f", [b"more"])
    files.append("d/f.5.torn.old", [b"the user's"])
    Keep("d/f", 5, TORN).run(files)
    assert files.names("d") == ["f", "f.5.torn", "f.5.torn.1", "f.5.torn.2", "f.5.torn.old"]
