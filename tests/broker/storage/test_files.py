from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


def test_what_is_not_there_is_an_error(files: Files) -> None:
    for operation in (
        lambda: files.read("d/f", 0, 1),
        lambda: files.append("d/f", [b"x"]),
        lambda: files.truncate("f", 0),
        lambda: files.sync("f"),
        lambda: files.sync_directory("d"),
    ):
        with pytest.raises(OSError):
            operation()


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
    def test_what_was_synced_stays(self) -> None:
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

    def test_anything_may_become_of_the_rest(self) -> None:
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
