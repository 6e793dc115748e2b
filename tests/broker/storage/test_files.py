from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from aioproducer.broker.storage import files as files_module
from aioproducer.broker.storage.files import Files, OsFiles
from aioproducer.errors import DataDirectoryException
from tests.broker.storage.faulty_files import FaultyFiles


@pytest.fixture(params=["real", "faulty"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return OsFiles(tmp_path) if request.param == "real" else FaultyFiles()


def test_a_file_is_written_read_and_cut(files: Files) -> None:
    assert files.size("f") == 0
    files.append("f", [b"ab", bytearray(b"cd"), memoryview(b"ef")])
    files.append("f", [b"g"])
    assert files.size("f") == 7
    assert files.read("f", 2, 3) == b"cde"
    assert files.read("f", 5, 10) == b"fg"
    files.truncate("f", 3)
    assert files.read("f", 0, 10) == b"abc"
    files.sync("f")


def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files = OsFiles(tmp_path / "data")
        files.lock()
        files.append("f", [b"secret"])
        files.make_directory("d")
        files.unlock()
    finally:
        os.umask(before)
    modes = {name: (tmp_path / "data" / name).stat().st_mode & 0o777 for name in (".", ".lock", "f", "d")}
    assert modes == {".": 0o700, ".lock": 0o600, "f": 0o600, "d": 0o700}


def test_directories(files: Files) -> None:
    assert files.names("d") == []
    files.make_directory("d")
    files.make_directory("d")
    files.append("d/b", [b"1"])
    files.append("d/a", [b"2"])
    files.sync_directory("d")
    files.sync_directory("")
    assert files.names("d") == ["a", "b"]
    files.rename("d/a", "d/b")
    assert files.names("d") == ["b"]
    assert files.read("d/b", 0, 9) == b"2"
    files.rename("d", "e")
    assert (files.names("d"), files.names("e")) == ([], ["b"])
    files.remove("e/b")
    files.remove("e/b")
    files.append("e/c", [b"3"])
    files.remove("e")
    files.remove("e")
    assert files.names("") == []


def test_missing_files_raise(files: Files) -> None:
    for operation in (
        lambda: files.read("d/f", 0, 1),
        lambda: files.append("d/f", [b"x"]),
        lambda: files.truncate("f", 0),
        lambda: files.sync("f"),
        lambda: files.sync_directory("d"),
    ):
        with pytest.raises(OSError):
            operation()


@pytest.mark.parametrize("there", [True, False])
def test_of_a_link_the_link_alone_is_removed(tmp_path: Path, there: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    if there:
        elsewhere.mkdir()
        (elsewhere / "f").write_text("x")
    data = tmp_path / "data"
    data.mkdir()
    (data / "link").symlink_to(elsewhere)
    OsFiles(data).remove("link")
    assert list(data.iterdir()) == []
    assert [(elsewhere / "f").read_text()] == ["x"] if there else not elsewhere.exists()


class TestLock:
    def test_one_process_per_directory(self, tmp_path: Path) -> None:
        directory = tmp_path / "deep" / "data"
        first = OsFiles(directory)
        first.lock()
        code = f"""
from pathlib import Path
from aioproducer.broker.storage.files import OsFiles
OsFiles(Path({str(directory)!r})).lock()
"""
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert f"the data directory {directory} is in use" in other.stderr
        with pytest.raises(DataDirectoryException, match="in use"):
            OsFiles(directory).lock()
        first.unlock()
        first.unlock()
        second = OsFiles(directory)
        second.lock()
        second.unlock()

    def test_a_directory_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(DataDirectoryException, match="cannot use the data directory"):
            OsFiles(tmp_path / "file" / "data").lock()


class TestCrash:
    def test_synced_bytes_stay(self) -> None:
        for seed in range(50):
            files = FaultyFiles(seed)
            files.make_directory("d")
            files.sync_directory("")
            files.append("d/f", [b"a" * 100])
            files.sync("d/f")
            files.sync_directory("d")
            files.append("d/f", [b"b" * 100])
            files.crash()
            assert files.read("d/f", 0, 100) == b"a" * 100

    def test_unsynced_bytes_may_be_lost_torn_or_kept_in_a_crash(self) -> None:
        found = set()
        for seed in range(300):
            files = FaultyFiles(seed)
            files.append("f", [b"a" * 64])
            files.sync("f")
            files.sync_directory("")
            files.append("f", [b"b" * 128])
            files.append("g", [b"c"])
            files.rename("f", "h")
            files.crash()
            contents = tuple(files.read(name, 0, 999).replace(bytes(64), b"0") for name in files.names(""))
            found.add((tuple(files.names("")), contents))
        names = {names for names, _ in found}
        assert names == {("f",), ("h",), ("f", "g"), ("g", "h")}
        torn = {contents[0] for (first, *_), contents in found if first in "fh"}
        a, b = b"a" * 64, b"b" * 64
        assert torn == {a, a + b, a + b"0" + b, a + b + b}


class TestDescriptors:
    """That there is none left passes, and a commit waits for it; reads do not, as they hold up the loop."""

    @pytest.fixture
    def scarce(self, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """How often a file cannot be opened any more, and every pause after that."""
        left = [3]
        real, real_os = open, os.open

        def scarcely(name: object) -> None:
            if left[0] > 0:
                left[0] -= 1
                raise OSError(errno.EMFILE, "Too many open files", str(name))

        def opened(path: Path, *more: Any, **kwargs: Any) -> Any:
            scarcely(path)
            return real(path, *more, **kwargs)

        def os_opened(path: Path, *more: Any) -> int:
            scarcely(path)
            return real_os(path, *more)

        monkeypatch.setattr(files_module, "open", opened, raising=False)
        monkeypatch.setattr(os, "open", os_opened)
        monkeypatch.setattr(time, "sleep", left.append)
        return left

    def test_writes_wait(self, tmp_path: Path, scarce: list[int]) -> None:
        files = OsFiles(tmp_path)
        files.append("a", [b"x"])
        assert scarce == [0, 0.05, 0.05, 0.05]
        scarce[0] = 2
        files.sync("a")
        scarce[0] = 1
        files.sync_directory("")
        assert len(scarce) == 7
        assert (tmp_path / "a").read_bytes() == b"x"

    def test_but_not_for_ever(self, tmp_path: Path, scarce: list[int]) -> None:
        scarce[0] = 10**6
        with pytest.raises(OSError, match="Too many open files"):
            OsFiles(tmp_path).append("a", [b"x"])
        assert sum(scarce[1:]) == pytest.approx(30)

    def test_reads_do_not(self, tmp_path: Path, scarce: list[int]) -> None:
        scarce[0] = 1
        with pytest.raises(OSError, match="Too many open files"):
            OsFiles(tmp_path).read("a", 0, 1)
        assert scarce == [0]

    def test_other_errors_are_errors_at_once(self, tmp_path: Path, scarce: list[int]) -> None:
        scarce[0] = 0
        with pytest.raises(FileNotFoundError):
            OsFiles(tmp_path).append("no/a", [b"x"])
        assert scarce == [0]
