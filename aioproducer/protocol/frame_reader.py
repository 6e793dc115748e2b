"""A stream of bytes, cut into frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from mypy_extensions import i64

from aioproducer.errors import InvalidReceiveException

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

    A frame of more than ``LARGE`` bytes is gathered beside the buffer if ``gathers``, for ``take_large``: copying it
    when the buffer grows, and once more at its end, would hold up the event loop.

    ``limit_of(number)`` is the limit of a frame that is larger than ``max_size`` and comes after so many complete ones.

    With ``spare``, buffers that several readers share, a reader has one only while one of its frames is incomplete: of
    thousands of connections most have nothing to receive.
    """

    INITIAL_SIZE: ClassVar[int] = 64 * 1024
    LARGE: ClassVar[int] = 1024 * 1024

    def __init__(
        self,
        max_size: int,
        spare: list[bytearray] | None = None,
        *,
        gathers: bool = False,
        limit_of: Callable[[int], int] | None = None,
    ) -> None:
        self.max_size = max_size
        """Of a frame, without its size. May be raised."""
        self._limit_of = limit_of
        self._gathers = gathers
        self._gathered = bytearray()
        self._missing: i64 = 0
        """Bytes of the frame that is being gathered."""
        self.large: memoryview | None = None
        """The large frame that is complete since the last update, if one is: it came before the others."""
        self._spare = spare
        self._use(bytearray(self.INITIAL_SIZE) if spare is None else _NO_BUFFER)
        self._start: i64 = 0
        self._end: i64 = 0
        self.error: InvalidReceiveException | None = None
        """A size that is negative or above the limit, if one has come: the stream is of no use from there on, and the
        reader drops it. The frames before it are complete."""

    def _use(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._view = memoryview(buffer)

    @property
    def pending(self) -> int:
        """How many bytes of an incomplete frame have come, with its size."""
        gathered: i64 = 4 + len(self._gathered) if self._missing > 0 else 0
        return gathered + self._end - self._start

    def take_large(self) -> memoryview:
        """``large``, which must be there, and is not any more."""
        large, self.large = self.large, None
        assert large is not None
        return large

    def get_buffer(self, sizehint: int = -1) -> memoryview:
        """Where the next bytes of the stream go; never empty."""
        if self._buffer is _NO_BUFFER:
            self._use(self._spare.pop() if self._spare else bytearray(self.INITIAL_SIZE))
        return self._view if self._end == 0 else self._view[self._end :]

    def buffer_updated(self, count: int) -> list[bytes]:
        """Says that ``count`` bytes came; returns the frames that are complete now, up to an ``error``."""
        self._end += count
        frames: list[bytes] = []
        wanted: i64 = 4
        if self._missing > 0:
            self._gather()
        while self._end - self._start >= 4:
            size = self._frame_size(len(frames) if self.large is None else len(frames) + 1)
            if size < 0:
                self._start = self._end
                break
            wanted = 4 + size
            end = self._start + wanted
            if end > self._end:
                if self._gathers and wanted > self.LARGE:
                    self._missing = wanted - 4
                    self._start += 4
                    wanted = 4
                    self._gather()
                break
            frames.append(bytes(self._view[self._start + 4 : end]))
            self._start = end
            wanted = 4
        self._make_room(wanted)
        return frames

    def _gather(self) -> None:
        """Takes what has come of a large frame out of the buffer."""
        end = min(self._start + self._missing, self._end)
        self._gathered += self._view[self._start : end]
        self._missing -= end - self._start
        self._start = end
        if self._missing == 0:
            self.large = memoryview(self._gathered)
            self._gathered = bytearray()

    def close(self) -> None:
        """Nothing more comes: the buffer is free for others, who share it, and what is incomplete is dropped."""
        self._start = self._end = self._missing = 0
        self._gathered = bytearray()
        self._make_room(4)

    def _frame_size(self, number: int) -> i64:
        """Of the frame that begins; -1 if there is an ``error``."""
        if self.error is not None:
            return -1
        buffer, start = self._buffer, self._start
        # By bytes: compiled, that takes a third of what struct does.
        size: i64 = buffer[start] << 24 | buffer[start + 1] << 16 | buffer[start + 2] << 8 | buffer[start + 3]
        if size <= self.max_size:
            return size
        limit = self.max_size if self._limit_of is None else self._limit_of(number)
        if size <= limit:
            return size
        first = bytes(buffer[start : start + 4])
        if size >= 1 << 31:
            size -= 1 << 32
        problem = "is negative" if size < 0 else f"is above the limit of {limit}"
        hint = next((f"; it looks like {who}" for start, who in _FOREIGN if first.startswith(start)), "")
        self.error = InvalidReceiveException(f"the size of a frame {problem}: {size} ({first!r}){hint}")
        return -1

    def _make_room(self, wanted: i64) -> None:
        """Sees to it that more of the incomplete frame, which will have ``wanted`` bytes, can be received.

        A buffer that is exchanged here may still be in the hands of the transport, which forbids to resize it.
        """
        arrived = self._end - self._start
        size: i64 = len(self._buffer)
        if arrived == 0:
            self._start = self._end = 0
            if self._spare is not None:
                if size == self.INITIAL_SIZE and len(self._spare) < SPARE_BUFFERS:
                    self._spare.append(self._buffer)
                self._use(_NO_BUFFER)
            elif size > self.INITIAL_SIZE:
                self._use(bytearray(self.INITIAL_SIZE))
        elif arrived == size:
            grown = bytearray(min(int(wanted), int(2 * arrived)))
            grown[:arrived] = self._buffer
            self._use(grown)
        elif self._start + wanted > size:
            self._buffer[:arrived] = self._buffer[self._start : self._end]
            self._start, self._end = 0, arrived
