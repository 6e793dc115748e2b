"""The contents of the records of ``aioproducer perf``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from random import Random

from aioproducer.cli.running import InputError

_LETTERS = bytes(65 + number % 26 for number in range(256))
_BLOCK = 4 << 20


def random_letters(size: int) -> Iterator[bytes]:
    """Records of ``size`` random letters: pieces of one block, because new letters cost more than sending."""
    random = Random(0)
    block = random.randbytes(_BLOCK + size).translate(_LETTERS)
    while True:
        start = int(random.random() * _BLOCK)
        yield block[start : start + size]


def from_file(path: Path, delimiter: str) -> list[bytes]:
    """The records in a file, with ``delimiter`` between them or after each. Raises InputError, or OSError."""
    records = path.read_bytes().split((delimiter.replace("\\n", "\n")).encode())
    if not records[-1]:
        records.pop()
    if not records:
        raise InputError(f"{path} is empty: there is nothing to send")
    return records


def drawn_from(records: list[bytes]) -> Iterator[bytes]:
    """Endless random choices from the records."""
    random = Random(0)
    while True:
        yield random.choice(records)


def counting() -> Iterator[bytes]:
    """``0``, ``1``, ``2``, …"""
    return (str(number).encode() for number in itertools.count())
