"""The command that shows and repairs a write, named by the errors after which a query would fail again and again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aioproducer.spark.exactly_once.decision import EpochIncompleteException, EpochLostException
from aioproducer.spark.exactly_once.marker import MarkerMismatchException, MissingMarkerException
from aioproducer.spark.exactly_once.prepared import TooManyOpenException
from aioproducer.spark.sink.sink_options import DEFAULT_PREFIX, SinkOptions

_STUCK: Final = (
    EpochIncompleteException,
    EpochLostException,
    MarkerMismatchException,
    MissingMarkerException,
    TooManyOpenException,
)


def command(options: SinkOptions, write: str, action: str = "show") -> str:
    """A line for a shell."""
    parts = ["aioproducer", "spark", action]
    parts += [write] if options.write_id is None else ["--write-id", write]
    parts += ["--topic", options.marker_place.topic]
    if options.prefix != DEFAULT_PREFIX:
        parts += ["--prefix", options.prefix]
    return shlex.join([*parts, "--bootstrap-server", options.configs["bootstrap.servers"]])


@contextmanager
def with_way_out(options: SinkOptions, write: str) -> Iterator[None]:
    """Adds the command to the errors that need it."""
    try:
        yield
    except _STUCK as error:
        raise type(error)(f"{error}. To see what brokers know, and to repair it: {command(options, write)}") from error
