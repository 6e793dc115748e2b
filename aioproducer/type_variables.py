"""The type variables of keys and values, and their defaults, which only type checkers see.

At run time they have none, because Python has them only from 3.13 on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

Data = bytes | bytearray | memoryview
"""A key or value that needs no serializer."""

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", contravariant=True, default=Data)
    V = TypeVar("V", contravariant=True, default=Data)
    RecordKey = TypeVar("RecordKey", covariant=True, default=Any)
    RecordValue = TypeVar("RecordValue", covariant=True, default=Any)
    D = TypeVar("D", contravariant=True, default=Any)
else:
    from typing import TypeVar

    K = TypeVar("K", contravariant=True)
    """What a producer takes as keys, besides None."""
    V = TypeVar("V", contravariant=True)
    """What a producer takes as values, besides None."""
    RecordKey = TypeVar("RecordKey", covariant=True)
    """The type of a record's key."""
    RecordValue = TypeVar("RecordValue", covariant=True)
    """The type of a record's value."""
    D = TypeVar("D", contravariant=True)
    """What a serializer takes."""
