"""CRC-32C against its published values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.records.crc32c import crc32c


@pytest.mark.parametrize(
    ("data", "checksum"),
    [  # the first is the algorithm's check value, the others are from RFC 3720, B.4
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"", 0),
    ],
)
def test_known_values(data: bytes, checksum: int) -> None:
    assert crc32c(data) == checksum
    assert crc32c(bytearray(data)) == checksum
    assert crc32c(memoryview(data)) == checksum


@given(parts=st.lists(st.binary(max_size=50)))
def test_parts_count_as_if_joined(parts: list[bytes]) -> None:
    assert crc32c(*parts) == crc32c(b"".join(parts))
    assert crc32c(*(memoryview(part) for part in parts)) == crc32c(b"".join(parts))
