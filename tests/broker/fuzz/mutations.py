"""Bytes that were right, a little wrong."""

from __future__ import annotations

from random import Random

_NUMBERS = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\0\0\0",
    b"\0\0\0\0",
    b"\0\x01\x86\xa0",
    b"\x7f\xff",
    b"\xff\xff\xff\xff\x0f",  # the largest varint of 32 bits
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # and of 64
)


def mutated(random: Random, data: bytes) -> bytes:
    """The same bytes after one to five changes: bits flip; bytes are replaced, lost, inserted, or come twice."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 5)):
        at = random.randrange(len(changed) + 1)
        match random.randrange(7):
            case 0 | 1 if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            case 2 if at < len(changed):
                changed[at] = random.choice((0, 1, 127, 128, 255))
            case 3:
                number = random.choice(_NUMBERS)
                changed[at : at + len(number)] = number
            case 4:
                changed[at:at] = random.randbytes(random.randint(1, 20))
            case 5:
                del changed[at : at + random.choice((1, 2, 4, 8, len(changed)))]
            case _:
                changed[at:at] = changed[at : at + 1000]
    return bytes(changed)
