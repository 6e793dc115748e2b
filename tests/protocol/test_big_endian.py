from __future__ import annotations

import pytest

from aioproducer.protocol.big_endian import int16_at, int32_at, int64_at


@pytest.mark.parametrize(("read", "size"), [(int16_at, 2), (int32_at, 4), (int64_at, 8)])
def test_numbers_are_read_where_they_stand(read: object, size: int) -> None:
    assert callable(read)
    for number in (0, 1, -1, 2 ** (8 * size - 1) - 1, -(2 ** (8 * size - 1)), 0x0102030405060708 >> (64 - 8 * size)):
        data = b"\x55" * 3 + number.to_bytes(size, "big", signed=True) + b"\xaa"
        assert read(data, 3) == number
