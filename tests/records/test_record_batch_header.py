"""The header of a batch, byte for byte."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.compression import CompressionType
from aioproducer.records.crc32c import crc32c
from aioproducer.records.record_batch_header import encode_batch_header

BODY = bytes.fromhex("0c000000010100")


def encode(**changes: Any) -> bytes:
    return encode_batch_header(
        BODY, **{"count": 1, "base_timestamp": 1_700_000_000_000, "max_timestamp": 1_700_000_000_000, **changes}
    )


def test_defaults() -> None:
    header = encode()
    assert len(header) == BATCH_OVERHEAD
    assert header[:8] == bytes(8)  # base offset
    assert header[8:12] == (len(header) + len(BODY) - 12).to_bytes(4, "big")
    assert header[12:16] == b"\xff" * 4  # no leader epoch
    assert header[16] == 2
    assert header[17:21] == crc32c(header[21:] + BODY).to_bytes(4, "big")
    assert header[21:27] == bytes(6)  # attributes, last offset delta
    assert header[27:43] == (1_700_000_000_000).to_bytes(8, "big") * 2
    assert header[43:57] == b"\xff" * 14  # no producer id, epoch, sequence
    assert header[57:] == b"\0\0\0\1"


def test_every_field() -> None:
    header = encode(
        count=2**31 - 1,
        base_timestamp=-(2**63),
        max_timestamp=2**63 - 1,
        producer_id=2**62,
        producer_epoch=32767,
        base_sequence=2**31 - 1,
        base_offset=2**61,
        partition_leader_epoch=2**31 - 1,
    )
    assert struct.unpack(">qii", header[:16]) == (2**61, 56, 2**31 - 1)
    assert struct.unpack(">hiqqqhii", header[21:]) == (
        0, 2**31 - 2, -(2**63), 2**63 - 1, 2**62, 32767, 2**31 - 1, 2**31 - 1,
    )  # fmt: skip
    assert header[17:21] == crc32c(header[21:], BODY).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("changes", "attributes"),
    [({"codec": codec}, codec.value) for codec in CompressionType]
    + [
        ({"log_append_time": True}, 0x08),
        ({"transactional": True}, 0x10),
        ({"control": True}, 0x20),
        ({"codec": CompressionType.ZSTD, "log_append_time": True, "transactional": True, "control": True}, 0x3C),
    ],
)
def test_attributes(changes: dict[str, Any], attributes: int) -> None:
    assert encode(**changes)[21:23] == attributes.to_bytes(2, "big")


def test_place_and_leader_epoch_are_outside_the_crc() -> None:
    assert encode()[17:] == encode(base_offset=99, partition_leader_epoch=5)[17:]
    assert encode()[17:21] != encode(base_sequence=1)[17:21]
