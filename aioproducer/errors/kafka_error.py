"""The root of all errors, and what is known of a record whose delivery failed."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Self, TypeVar

from aioproducer.errors.error_code import ErrorCode
from aioproducer.errors.printable import printable


class Outcome(Enum):
    """What is known about a record whose delivery failed."""

    NOT_SENT = "not_sent"
    """Proven absent: it is not in the log and never will be."""
    UNKNOWN = "unknown"
    """It may be in the log: its bytes left, and no answer settled what became of them."""


class KafkaError(Exception):
    """The root of every error this package raises on purpose. Its text is one line, whatever a broker has answered."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    retriable: ClassVar[bool] = False
    refresh_metadata: ClassVar[bool] = False
    abortable: ClassVar[bool] = False
    fatal: ClassVar[bool] = False
    advice: ClassVar[str] = ""
    """What to do about it, where general advice is possible."""
    refused_records: Mapping[int, str] = MappingProxyType({})
    """By index in the batch, why the broker refuses a record (KIP-467); the batch's other records are fine."""

    def __str__(self) -> str:
        return printable(super().__str__())

    def fresh(self) -> Self:
        """A copy without traceback or context, to be raised.

        One failure may be raised for thousands of waiters; with each of them, a shared exception object's traceback
        would grow.
        """
        return copied(self).with_traceback(None)


E = TypeVar("E", bound=KafkaError)


def copied(error: E) -> E:
    twin = copy.copy(error)
    if error.__cause__ is not None:  # setting it at all would hide the context that the copy is raised in
        twin.__cause__ = error.__cause__
    return twin
