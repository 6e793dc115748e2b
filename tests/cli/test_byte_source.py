from __future__ import annotations

import asyncio
import gzip
import io
import lzma
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aioproducer.cli import byte_source
from aioproducer.cli.byte_source import CHUNK, ByteSource
from aioproducer.cli.running import InputError

DATA = b"".join(b"line %d\n" % number for number in range(40_000))


async def read(path: Path | str) -> bytes:
    source = ByteSource(str(path))
    return b"".join([chunk async for chunk in source])


async def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(DATA)
    source = ByteSource(str(path))
    assert source.size == len(DATA)
    chunks = [chunk async for chunk in source]
    assert b"".join(chunks) == DATA
    assert max(map(len, chunks)) <= CHUNK
    assert source.position == len(DATA)


async def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert await read(path) == b""


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
async def test_packed_files(tmp_path: Path, suffix: str, pack: type[bytes]) -> None:
    path = tmp_path / f"data.txt{suffix}"
    packed = pack(DATA)
    path.write_bytes(packed + pack(b"more\n"))
    source = ByteSource(str(path))
    assert b"".join([chunk async for chunk in source]) == DATA + b"more\n"
    assert source.position == path.stat().st_size


async def test_zstd(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "data.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(DATA))
    assert await read(path) == DATA


async def test_zstd_without_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(byte_source, "import_module", missing)
    path = tmp_path / "data.zst"
    path.touch()
    with pytest.raises(InputError, match=r"aioproducer\[zstd\]"):
        await read(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.gz", b"no gzip"),
        ("x.gz", gzip.compress(DATA)[:-100]),
        ("x.gz", gzip.compress(DATA)[:50] + bytes(100)),
        ("x.xz", b"no xz"),
        ("x.xz", lzma.compress(DATA)[:-100]),
    ],
)
async def test_a_packed_file_that_is_broken(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be decompressed"):
        await read(path)


async def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ByteSource(str(tmp_path / "nosuch"))
    with pytest.raises(IsADirectoryError):
        ByteSource(str(tmp_path))


async def test_a_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "x")

    path = tmp_path / "x"
    path.touch()
    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(PermissionError):
        await read(path)


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.FileIO]:
    """What is written to it is standard input."""
    reading, writing = os.pipe()
    with open(reading, "rb") as stdin, open(writing, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield pipe


async def test_standard_input_is_given_on_as_it_comes(pipe: io.FileIO) -> None:
    source = ByteSource("-")
    assert source.size is None
    chunks = aiter(source)
    pipe.write(b"first")
    assert await anext(chunks) == b"first"
    pipe.write(b"second")
    assert await anext(chunks) == b"second"
    pipe.close()
    assert [chunk async for chunk in chunks] == []


async def test_standard_input_that_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text")))
    assert await read("-") == b"text"


async def test_no_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="there is none"):
        ByteSource("-")


async def test_stopping_ends_it_while_it_waits(pipe: io.FileIO) -> None:
    source = ByteSource("-")
    waiting = asyncio.ensure_future(anext(aiter(source), None))
    await asyncio.sleep(0)
    source.stop()
    assert await waiting is None


async def test_no_more_is_read_than_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_source, "CHUNK", 1000)
    path = tmp_path / "data.txt"
    path.write_bytes(DATA)
    source = ByteSource(str(path))
    chunks = aiter(source)
    for _ in range(20):
        await anext(chunks)
        assert len(source._chunks) <= byte_source.READ_AHEAD
    source.stop()
    assert [chunk async for chunk in chunks] == []
    for thread in threading.enumerate():
        if thread.name == "aioproducer input":
            thread.join()
