from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

from aioproducer.broker.log.appended_batch import set_base_offset
from aioproducer.broker.storage.segments import segment
from aioproducer.broker.storage.segments.segment import Bad, Good, read_segment
from aioproducer.errors import CorruptRecordException
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from tests.broker.raw_clients.batches import make_batch
from tests.broker.storage.faulty_files import FaultyFiles

PATH = "00000000000000000000.log"
MIB = 1024 * 1024


class CountingFiles(FaultyFiles):
    """Counts the bytes that are read, and notes the most that are read at once."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_read = 0
        self.largest_read = 0

    def read(self, path: str, position: int, size: int) -> bytes:
        data = super().read(path, position, size)
        self.bytes_read += len(data)
        self.largest_read = max(self.largest_read, len(data))
        return data


def make_segment(values: list[bytes]) -> bytearray:
    """A batch of one record for each value."""
    content = bytearray()
    for offset, value in enumerate(values):
        batch = bytearray(make_batch(value))
        set_base_offset(batch, offset, 0)
        content += batch
    return content


def pieces(files: FaultyFiles) -> list[tuple[int, int, str]]:
    """What is found: the position and the end of each piece, and why it is bad."""
    return [
        (one.position, one.end, one.reason) if isinstance(one, Bad) else (one.position, _end_of(one), "")
        for one in read_segment(files, PATH, 0)
    ]


def _end_of(good: Good) -> int:
    return good.position + good.batch.size_in_bytes


def by_trying_every_byte(content: bytes) -> Iterator[tuple[int, int]]:
    """The good batches of a segment by its definition, however long that takes."""
    position = next_offset = 0
    after_bad = False
    while position < len(content):
        size = _whole_batch(content, position, next_offset, or_later=after_bad)
        if size:
            yield position, position + size
            next_offset, after_bad = RecordBatch(content[position : position + size]).last_offset + 1, False
            position += size
            continue
        claimed = position + 12 + int.from_bytes(content[position + 8 : position + 12], "big", signed=True)
        first = [claimed] if claimed >= position + BATCH_OVERHEAD else []
        places = [*first, *range(position + 1, len(content))]
        found = (one for one in places if _whole_batch(content, one, next_offset, or_later=True))
        position, after_bad = next(found, len(content)), True


def _whole_batch(content: bytes, position: int, next_offset: int, *, or_later: bool) -> int:
    """The size of the batch at a position; 0 if there is none."""
    size = 12 + int.from_bytes(content[position + 8 : position + 12], "big", signed=True)
    if not BATCH_OVERHEAD <= size <= len(content) - position:
        return 0
    try:
        batch = RecordBatch(content[position : position + size])
        batch.verify()
    except CorruptRecordException:
        return 0
    follows = batch.base_offset == next_offset or (or_later and batch.base_offset > next_offset)
    return size if follows and batch.last_offset_delta >= 0 else 0


@pytest.mark.parametrize("chunk", [100, 1000, MIB])
def test_the_same_batches_are_found_as_by_trying_every_byte(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "_CHUNK", chunk)
    random = Random(chunk)
    for _ in range(150):
        nested = bytes(make_segment([b"within", b"another"]))
        content = make_segment([random.choice([b"", b"\2" * 100, random.randbytes(300), nested]) for _ in range(10)])
        for _ in range(random.randrange(4)):
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        if random.random() < 0.3:
            del content[random.randrange(len(content)) :]
        if random.random() < 0.3:
            at = random.randrange(len(content) + 1)
            content[at:at] = random.randbytes(random.randrange(200))
        files = FaultyFiles()
        files.append(PATH, [content])
        found = pieces(files)
        assert [(position, end) for position, end, reason in found if not reason] == list(
            by_trying_every_byte(bytes(content))
        )
        edges = [0, *(end for _, end, _ in found)]
        assert [position for position, _, _ in found] == edges[:-1]
        assert edges[-1] == len(content)


def flip_length(content: bytearray) -> None:
    content[9] ^= 0x40


def claim_the_rest(content: bytearray) -> None:
    content[8:12] = (len(content) - 12).to_bytes(4, "big")


def other_magic_and_the_rest(content: bytearray) -> None:
    claim_the_rest(content)
    content[16] = 3


def make_hostile(size: int) -> bytes:
    """Headers of batches one after the other, each of which claims all that follows but a few bytes."""
    content = bytearray()
    while len(content) < size:
        header = bytearray(encode_batch_header(b"", count=1, base_timestamp=0, max_timestamp=0, base_offset=10_000))
        header[8:12] = (8 * MIB - len(content)).to_bytes(4, "big")
        content += header
    return bytes(content)


@pytest.mark.parametrize("damage", [flip_length, claim_the_rest, other_magic_and_the_rest])
def test_a_wrong_length_has_the_file_read_a_few_times_at_most(damage: Callable[[bytearray], None]) -> None:
    values = [Random(number).randbytes(20_000) for number in range(100)]
    values += [Random(number).randbytes(2 * MIB) for number in range(3)]
    content = make_segment(values)
    files = CountingFiles()
    damage(content)
    files.append(PATH, [content])
    first, *others = pieces(files)
    assert (first[0], first[1]) == (0, len(make_batch(values[0])))
    assert first[2]
    assert [reason for _, _, reason in others] == [""] * 102
    assert files.bytes_read < 6 * len(content)
    assert files.largest_read <= 3 * MIB


def test_bytes_that_look_like_headers_cost_two_blocks_each() -> None:
    hostile = make_hostile(60_000)
    content = make_segment([hostile, *(Random(number).randbytes(MIB) for number in range(9))])
    flip_length(content)
    files = CountingFiles()
    files.append(PATH, [content])
    assert [reason != "" for _, _, reason in pieces(files)] == [True] + [False] * 9
    candidates = len(hostile) // BATCH_OVERHEAD
    assert files.bytes_read < 6 * len(content) + candidates * 2 * 4096


def test_a_large_batch_says_why_it_is_bad_as_a_small_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def reasons() -> list[str]:
        found = []
        for at in range(len(make_batch(b"0" * 100))):
            content = make_segment([b"0" * 100, b"1" * 100])
            content[at] ^= 0x40
            files = FaultyFiles()
            files.append(PATH, [content])
            found += [reason for _, _, reason in pieces(files)]
        return found

    small = reasons()
    monkeypatch.setattr(segment, "_CHUNK", 100)
    assert reasons() == small
