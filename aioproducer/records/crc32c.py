"""CRC-32C (Castagnoli), the checksum of a record batch."""

from __future__ import annotations

from typing import Final

from fastcrc import crc32

_extend: Final = crc32.iscsi
"""CRC-32C under the name that the catalogue of CRCs gives it. It reads any buffer without a copy."""


def crc32c(*parts: bytes | bytearray | memoryview) -> int:
    """The checksum (unsigned, 32 bits) of ``parts`` as if they were joined."""
    checksum = 0
    for part in parts:
        checksum = _extend(part, checksum)
    return checksum
