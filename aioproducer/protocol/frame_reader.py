"""A stream of bytes, cut into frames."""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from aioproducer.errors import InvalidReceiveException

_SIZE = struct.Struct(">i")

_NO_BUFFER: Final = bytearray()

SPARE_BUFFERS: Final = 4
"""How many are kept for the next reader."""

_FOREIGN = (
    (b"HTTP", "an HTTP server"),
    (b"GET ", "an HTTP client"),
    (b"POST", "an HTTP client"),
    (b"HEAD", "an HTTP client"),
    (b"PUT ", "an HTTP client"),
    (b"SSH-", "an SSH server"),
    (b"\x15\x03", "a TLS alert: the other side expects TLS"),
    (b"\x16\x03", "a TLS handshake: the other side expects TLS"),
)


class FrameReader:
    """Cuts a stream into frames, for ``asyncio.BufferedProtocol``: bytes in, frames out, without their size.

    One buffer is used again and again. It never reserves what a size only announces: a frame larger than the buffer
    makes it grow in steps, to at most twice what has arrived, and it is small again once the frame is complete.

    With ``spare``, buffers that several readers share, a reader has one only while a frame of its is incomplete: of
    thousands of connections most have nothing to receive.
    """

    INITIAL_SIZE: ClassVar[int] = 64 * 1024

    def __init__(self, max_size: int, spare: list[bytearray] | None = None) -> None:
        self.max_size = max_size
        """Of a frame, without its size. May be raised."""
        self._spare = spare
        self._buffer = bytearray(self.INITIAL_SIZE) if spare is None else _NO_BUFFER
        self._start = 0
        self._end = 0

    @property
    def pending(self) -> int:
        """How many bytes of an incomplete frame have come, with its size."""
        return self._end - self._start

    def get_buffer(self, sizehint: int = -1) -> memoryview:
        """Where the next bytes of the stream go; never empty."""
        if self._buffer is _NO_BUFFER:
            self._buffer = self._spare.pop() if self._spare else bytearray(self.INITIAL_SIZE)
        return memoryview(self._buffer)[self._end :]

    def buffer_updated(self, count: int) -> list[bytes]:
        """Says that ``count`` bytes came; returns the frames that are complete now.

        Raises ``InvalidReceiveException`` for a size that is negative or above the limit. The stream is of no use then.
        """
        self._end += count
        frames = []
        wanted = 4
        while self._end - self._start >= 4:
            wanted = 4 + self._frame_size()
            end = self._start + wanted
            if end > self._end:
                break
            with memoryview(self._buffer) as view:
                frames.append(bytes(view[self._start + 4 : end]))
            self._start = end
            wanted = 4
        self._make_room(wanted)
        return frames

    def _frame_size(self) -> int:
        (size,) = _SIZE.unpack_from(self._buffer, self._start)
        if 0 <= size <= self.max_size:
            return int(size)
        first = bytes(self._buffer[self._start : self._start + 4])
        problem = "is negative" if size < 0 else f"is above the limit of {self.max_size}"
        hint = next((f"; it looks like {who}" for start, who in _FOREIGN if first.startswith(start)), "")
        raise InvalidReceiveException(f"the size of a frame {problem}: {size} ({first!r}){hint}")

    def _make_room(self, wanted: int) -> None:
        """Sees to it that more of the incomplete frame, which will have ``wanted`` bytes, can be received.

        A buffer that is exchanged here may still be in the hands of the transport, which forbids to resize it.
        """
        arrived = self._end - self._start
        if arrived == 0:
            self._start = self._end = 0
            if self._spare is not None:
                if len(self._buffer) == self.INITIAL_SIZE and len(self._spare) < SPARE_BUFFERS:
                    self._spare.append(self._buffer)
                self._buffer = _NO_BUFFER
            elif len(self._buffer) > self.INITIAL_SIZE:
                self._buffer = bytearray(self.INITIAL_SIZE)
        elif arrived == len(self._buffer):
            grown = bytearray(min(wanted, 2 * arrived))
            grown[:arrived] = self._buffer
            self._buffer = grown
        elif self._start + wanted > len(self._buffer):
            self._buffer[:arrived] = self._buffer[self._start : self._end]
            self._start, self._end = 0, arrived
