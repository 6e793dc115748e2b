"""Reads records from the (decompressed) body of a batch; trusts none of the lengths in it."""

from __future__ import annotations

from collections.abc import Iterator

from aioproducer.errors import CorruptRecordException
from aioproducer.records.record import Record

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def read_records(
    body: bytes,
    *,
    count: int,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    log_append_time: int | None = None,
) -> Iterator[Record]:
    """The ``count`` records in ``body``; the offset of each is ``base_offset`` plus its own delta.

    ``log_append_time`` (ms), if given, is the timestamp of all. Offsets must rise and stay within the batch; they may
    have gaps (a compacted log). Raises CorruptRecordException for malformed records.
    """
    pos = 0
    previous_delta = -1
    for index in range(count):
        try:
            record, pos, offset_delta = _read_record(body, pos, base_offset, base_timestamp, log_append_time)
        except IndexError:
            raise CorruptRecordException(
                f"batch at offset {base_offset}: record {index} of {count} runs beyond the batch's {len(body)} bytes"
            ) from None
        except CorruptRecordException as broken:
            raise CorruptRecordException(
                f"batch at offset {base_offset}: record {index} of {count}: {broken}"
            ) from None
        if not previous_delta < offset_delta <= last_offset_delta:
            raise CorruptRecordException(
                f"batch at offset {base_offset}: record {index} of {count}: offset delta {offset_delta} after "
                f"{previous_delta}, the batch's last is {last_offset_delta}"
            )
        previous_delta = offset_delta
        yield record
    if pos != len(body):
        raise CorruptRecordException(
            f"batch at offset {base_offset}: {len(body) - pos} bytes follow the last of {count} records"
        )


def _read_record(
    body: bytes, pos: int, base_offset: int, base_timestamp: int, log_append_time: int | None
) -> tuple[Record, int, int]:
    """A record, the position after it and its offset delta; IndexError if the body ends before."""
    size, pos = _read_varint(body, pos, 32)
    end = pos + size
    if size < 0 or end > len(body):
        raise CorruptRecordException(f"size {size}, {len(body) - pos} bytes left")
    timestamp_delta, pos = _read_varint(body, pos + 1, 64)  # the byte before it, the attributes, has no meaning yet
    timestamp = base_timestamp + timestamp_delta if log_append_time is None else log_append_time
    if not _INT64_MIN <= timestamp <= _INT64_MAX:
        raise CorruptRecordException(f"timestamp {timestamp} does not fit 64 bits")
    offset_delta, pos = _read_varint(body, pos, 32)
    key, pos = _read_bytes(body, pos, end)
    value, pos = _read_bytes(body, pos, end)
    header_count, pos = _read_varint(body, pos, 32)
    if not header_count:
        headers: tuple[tuple[str, bytes | None], ...] = ()
    elif 0 < header_count <= (end - pos) // 2:
        headers, pos = _read_headers(body, pos, end, header_count)
    else:
        raise CorruptRecordException(f"{header_count} headers in {end - pos} bytes")
    if pos != end:
        raise CorruptRecordException(f"its fields take {size + pos - end} bytes, its size says {size}")
    return Record(base_offset + offset_delta, timestamp, key, value, headers), pos, offset_delta


def _read_headers(body: bytes, pos: int, end: int, count: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    headers = []
    for _ in range(count):
        name, pos = _read_bytes(body, pos, end)
        if name is None:
            raise CorruptRecordException("a header has no name")
        value, pos = _read_bytes(body, pos, end)
        # As in Java, bytes that are not UTF-8 are replaced in the name, so that the log stays readable.
        headers.append((name.decode(errors="replace"), value))
    return tuple(headers), pos


def _read_bytes(body: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    size, pos = _read_varint(body, pos, 32)
    if size == -1:
        return None, pos
    after = pos + size
    if size < 0 or after > end:
        raise CorruptRecordException(f"a length of {size}, {end - pos} bytes left")
    return body[pos:after], after


def _read_varint(data: bytes, pos: int, bits: int) -> tuple[int, int]:
    """A signed number of at most ``bits`` bits in zigzag form, and the position after it."""
    byte = data[pos]
    pos += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos
    rest = byte & 0x7F
    for shift in range(7, bits, 7):
        byte = data[pos]
        pos += 1
        rest |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        raise CorruptRecordException(f"a varint has more than {bits} bits")
    if rest >> bits:
        raise CorruptRecordException(f"a varint has more than {bits} bits")
    return (rest >> 1) ^ -(rest & 1), pos
