"""Tells the end of a task's rows from an interruption.

When Spark fails, kills or cancels a task, it closes the socket from which the task's Python worker reads its rows.
Between two messages of an Arrow stream this looks like the end of the stream, and pyarrow reports it as that. But after
the last row, and only then, Spark writes a mark of its own behind the Arrow stream. PySpark's worker reads it when the
task's function has returned, which is too late for a function that has committed before.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from aioproducer.errors import IllegalStateException, KafkaError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

END_OF_STREAM: Final = b"\xff\xff\xff\xfc"
"""Spark's mark: SpecialLengths.END_OF_STREAM, -4, as four bytes."""

_INPUT: Final = "infile"
"""PySpark's name for the stream that its worker reads."""


class InputBrokeOffException(KafkaError):
    """Spark ended a task before it had all of its rows, so the task has not succeeded."""


class Peekable(Protocol):
    """A buffered stream of bytes."""

    def peek(self, size: int, /) -> bytes:
        """Bytes that are to be read next, and are not read by this; none only at the stream's end."""


def input_of_worker() -> Peekable:
    """The stream that the PySpark worker reads that has called this function; IllegalStateException if none is found.

    PySpark hands its rows on without the stream, so it is looked for among the variables of the callers.
    """
    frame = inspect.currentframe()
    while frame is not None:
        stream: Any = frame.f_locals.get(_INPUT)
        if callable(getattr(stream, "peek", None)):
            return stream  # type: ignore[no-any-return]
        frame = frame.f_back
    raise IllegalStateException(
        f"the worker of PySpark {_version()} has no buffered stream {_INPUT!r}, in which the end of a task's rows is "
        "marked; nothing was written, because rows that break off look like rows that end: use a version "
        "of PySpark that this version of aioproducer supports (4.1 or 4.2)"
    )


def whole(batches: Iterator[RecordBatch], stream: Peekable, where: str) -> Iterator[RecordBatch]:
    """The batches; InputBrokeOffException, which begins with ``where``, in the place of their end if they broke off.

    ``stream`` is what they are read from. The mark is left there, for PySpark's worker. A part of it is enough: Spark
    writes nothing of it before the last row, and a stream's buffer may end within it.
    """
    from pyarrow import ArrowException

    rows = 0
    try:
        for batch in batches:
            rows += batch.num_rows
            yield batch
        mark = stream.peek(len(END_OF_STREAM))[: len(END_OF_STREAM)]
    except (ArrowException, OSError) as error:
        raise _broke_off(where, rows, f" ({type(error).__name__}: {error})") from error
    if not mark:
        raise _broke_off(where, rows)
    if not END_OF_STREAM.startswith(mark):
        raise IllegalStateException(
            f"{where}: the {rows} rows are followed by {mark!r}, which is not the mark of their end that Spark writes "
            f"({END_OF_STREAM!r}); nothing was committed: this version of aioproducer does not support PySpark "
            f"{_version()}"
        )


def _broke_off(where: str, rows: int, why: str = "") -> InputBrokeOffException:
    return InputBrokeOffException(
        f"{where}: the input broke off after {rows} rows{why}: Spark has failed, killed or cancelled the task. This "
        "attempt commits nothing; if Spark runs the task again, that attempt writes all rows"
    )


def _version() -> str:
    from pyspark import __version__

    return str(__version__)
