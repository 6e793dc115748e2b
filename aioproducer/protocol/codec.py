"""Messages to bytes and back, in any version."""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar, final

from aioproducer.errors import SchemaException, UnsupportedVersionException
from aioproducer.protocol.compile_reader import compile_reader, compile_stepwise_reader
from aioproducer.protocol.compile_writer import compile_stepwise_writer, compile_writer
from aioproducer.protocol.compiler import Compiled
from aioproducer.protocol.schema import Message

M = TypeVar("M", bound=Message)

NO_LIMIT: Final = 1 << 62

Functions = dict[tuple[type[Message], int], Compiled]

_READERS: Functions = {}
_STEPWISE_READERS: Functions = {}
_WRITERS: Functions = {}
_STEPWISE_WRITERS: Functions = {}


def encode(message: Message, version: int) -> list[bytes | memoryview]:
    """The message as ``version`` writes it, in parts to be sent one after the other.

    Values of type ``records`` are parts of their own, the very buffers that were given, never copied.

    Raises ``UnsupportedVersionException`` when the message has no such version, or when a field that this version lacks
    and that is not ignorable has another value than its default; ``SchemaException`` for a value that does not fit.
    """
    write = _WRITERS.get((type(message), version)) or _compiled(_WRITERS, compile_writer, type(message), version)
    try:
        parts: list[bytes | memoryview] = write.function(message)
        return parts
    except (SchemaException, struct.error, TypeError, ValueError, AttributeError) as error:
        raise _unwritable(write, error, message, version) from error


ELEMENTS: Final = 100
"""Of arrays, in one step of an :class:`Encoding`. A step takes some 0.1 ms."""


@final
class Encoding:
    """As ``encode``, for a large message: in many steps, between which others have a turn of the event loop.

    The message must not change before the last step.
    """

    def __init__(self, message: Message, version: int) -> None:
        self._message = message
        self._version = version
        self._write = _STEPWISE_WRITERS.get((type(message), version)) or _compiled(
            _STEPWISE_WRITERS, compile_stepwise_writer, type(message), version
        )
        self._steps: Generator[None, None, list[bytes | memoryview]] = self._write.function(message, ELEMENTS)
        self.parts: list[bytes | memoryview] = []
        """What ``encode`` returns, after the last step."""

    def steps(self) -> Generator[None, None, list[bytes | memoryview]]:
        """All of them, one after the other; the value at the end is what ``encode`` returns."""
        while not self.step():
            yield
        return self.parts

    def step(self) -> bool:
        """Writes on; True if that was the last step. Raises what ``encode`` does."""
        try:
            next(self._steps)
            return False
        except StopIteration as stop:
            self.parts = stop.value
            return True
        except (SchemaException, struct.error, TypeError, ValueError, AttributeError) as error:
            raise _unwritable(self._write, error, self._message, self._version) from error


def _unwritable(write: Compiled, error: Exception, message: Message, version: int) -> SchemaException:
    field, _ = _where(write, error)
    return SchemaException(f"cannot write {type(message).__name__} v{version}: {field}: {error}")


def decode(cls: type[M], version: int, data: bytes | memoryview, pos: int = 0) -> M:
    """The message that ``data`` is, from byte ``pos`` to its last.

    Fields of type ``records`` are views into ``data``. Raises ``SchemaException``, naming message, version, field and
    position, for anything that is not such a message; ``UnsupportedVersionException`` when it has no such version.
    """
    message, end = decode_prefix(cls, version, data, pos)
    if end != len(data):
        raise SchemaException(f"{cls.__name__} v{version} ends at byte {end} of {len(data)}")
    return message


def decode_prefix(
    cls: type[M], version: int, data: bytes | memoryview, pos: int = 0, max_elements: int = NO_LIMIT
) -> tuple[M, int]:
    """As ``decode``, for what stands before something else: the message at byte ``pos``, and where it ends.

    Raises ``SchemaException`` as well if its arrays have more than ``max_elements`` together.
    """
    read = _READERS.get((cls, version)) or _compiled(_READERS, compile_reader, cls, version)
    try:
        message: M
        message, end = read.function(data, pos, max_elements)
        return message, end
    except (SchemaException, struct.error, IndexError, UnicodeDecodeError) as error:
        problem = _problem(read, error, cls, version, len(data))
    # Not within the except block: as its context, the error would keep the data alive for as long as this one lives.
    raise SchemaException(problem)


STEP: Final = 2048
"""Bytes. The shortest elements of an array have one, and even of those a step takes less than a millisecond."""


@final
class Decoding:
    """As ``decode``, for a large message: in many steps, between which others have a turn of the event loop.

    With ``is_prefix`` it reads what ``decode_prefix`` does.
    """

    def __init__(
        self,
        cls: type[Message],
        version: int,
        data: bytes | memoryview,
        pos: int,
        max_elements: int = NO_LIMIT,
        *,
        is_prefix: bool = False,
    ) -> None:
        self._cls = cls
        self._version = version
        self._data = data
        self._is_prefix = is_prefix
        self._read = _STEPWISE_READERS.get((cls, version)) or _compiled(
            _STEPWISE_READERS, compile_stepwise_reader, cls, version
        )
        steps: Generator[int, int | None, tuple[Message, int]] = self._read.function(data, pos, max_elements, pos)
        self._steps = steps
        self._pause: int | None = None
        self.message: Any = None
        """What was read, after the last step."""

    def step(self) -> bool:
        """Reads on; True if that was the last step. Raises what ``decode`` does."""
        try:
            self._pause = self._steps.send(self._pause) + STEP
            return False
        except StopIteration as stop:
            self.message, end = stop.value
            if self._is_prefix or end == len(self._data):
                return True
            problem = f"{self._cls.__name__} v{self._version} ends at byte {end} of {len(self._data)}"
        except (SchemaException, struct.error, IndexError, UnicodeDecodeError) as error:
            problem = _problem(self._read, error, self._cls, self._version, len(self._data))
        raise SchemaException(problem)


def _problem(compiled: Compiled, error: Exception, cls: type[Message], version: int, size: int) -> str:
    """What is wrong with data of ``size`` bytes, and where."""
    field, at = _where(compiled, error, size)
    reason = str(error) if isinstance(error, SchemaException) else "the data ends here"
    if isinstance(error, UnicodeDecodeError):
        reason = f"not UTF-8: {error.reason}"
    return f"{cls.__name__} v{version}, {field} at byte {at} of {size}: {reason}"


def _compiled(
    known: Functions, compile_: Callable[[type[Message], int], Compiled], cls: type[Message], version: int
) -> Compiled:
    if version not in cls.VALID_VERSIONS:
        raise UnsupportedVersionException(f"{cls.__name__} has versions {cls.VALID_VERSIONS}, not {version}")
    return known.setdefault((cls, version), compile_(cls, version))


def _where(compiled: Compiled, error: Exception, size: int = 0) -> tuple[str, int]:
    """The field that the compiled function was at when it raised, and its position in the data (of ``size`` bytes)."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not compiled.function.__code__:
        trace = trace.tb_next
    assert trace is not None
    frame: Any = trace.tb_frame  # lest its f_locals must be a dict when compiled: from Python 3.13 on they are none
    pos = frame.f_locals.get("pos", 0)
    spans = compiled.spans[trace.tb_lineno]
    for field, width in spans[:-1]:
        if pos + width > size:
            return field, pos
        pos += width
    return spans[-1][0], pos
