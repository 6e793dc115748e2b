"""Spark's errors in one readable line, without the stack traces of two languages."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

SPARK_ERRORS = (PySparkException, Py4JError)
_TRACEBACK = "Traceback (most recent call last):"
_OF_JAVA = ": "
"""What begins the second line of an error that Py4J has passed on; the first names what was called."""


def explained(error: BaseException) -> str:
    """Spark's first line; and where Python has failed in a task or a plan, the error that it ended with."""
    first, *rest = str(error).strip().splitlines() or [type(error).__name__]
    if rest and rest[0].startswith(_OF_JAVA):
        first, *rest = rest
        first = first.removeprefix(_OF_JAVA)
    begun = first.endswith(_TRACEBACK)
    last = ""
    for line in rest:
        if line.endswith(_TRACEBACK):
            begun = True
        elif begun and line and not line[0].isspace():
            begun, last = False, line
    said = first.removesuffix(_TRACEBACK).rstrip(" :\n")
    return f"{said}: {last}" if last else said
