from __future__ import annotations

from aioproducer.protocol.codec import decode_prefix, encode
from aioproducer.protocol.headers import RequestHeader, ResponseHeader


def test_the_client_id_is_never_compact() -> None:
    header = RequestHeader(3, 12, 7, "me")
    assert b"".join(encode(header, 1)) == bytes.fromhex("0003 000c 00000007 0002 6d65")
    assert b"".join(encode(header, 2)) == bytes.fromhex("0003 000c 00000007 0002 6d65 00")
    assert b"".join(encode(RequestHeader(client_id=None), 2)) == bytes.fromhex("0000 0000 00000000 ffff 00")


def test_the_body_begins_where_the_header_ends() -> None:
    frame = bytes.fromhex("00000007 01 4d01 aa") + b"body"
    header, body = decode_prefix(ResponseHeader, 1, frame)
    assert header == ResponseHeader(7, unknown_tagged_fields={77: b"\xaa"})
    assert frame[body:] == b"body"
    assert decode_prefix(ResponseHeader, 0, frame) == (ResponseHeader(7), 4)
