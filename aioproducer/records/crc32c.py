"""CRC-32C (Castagnoli), the checksum of a record batch."""

from __future__ import annotations

from typing import Final, cast

import google_crc32c

_extend: Final = google_crc32c.extend


def crc32c(*parts: bytes | bytearray | memoryview) -> int:
    """The checksum (unsigned, 32 bits) of ``parts`` as if they were joined.

    The C function takes only bytes, so any other part is copied; at over 10 GB/s the copy costs as much as the
    checksum.
    """
    checksum = 0
    for part in parts:
        checksum = cast(int, _extend(checksum, part if isinstance(part, bytes) else bytes(part)))
    return checksum
