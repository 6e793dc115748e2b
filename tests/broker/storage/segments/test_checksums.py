from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.storage.segments.checksums import FileChecksums
from aioproducer.records.crc32c import crc32c
from tests.broker.storage.faulty_files import FaultyFiles

SIZE = 3_000_001


def make_file() -> tuple[FaultyFiles, bytes]:
    content = bytes(number * number % 251 for number in range(SIZE))
    files = FaultyFiles()
    files.append("file", [content])
    return files, content


FILES, CONTENT = make_file()
CHECKSUMS = FileChecksums(FILES, "file")
PLACES = st.integers(0, SIZE) | st.integers(0, SIZE // 4096).map(lambda block: 4096 * block)


@given(PLACES, PLACES)
def test_of_any_stretch(one: int, other: int) -> None:
    position, end = sorted((one, other))
    expected = crc32c(CONTENT[position:end])
    assert CHECKSUMS.of(position, end) == expected
    assert FileChecksums(FILES, "file").of(position, end) == expected
