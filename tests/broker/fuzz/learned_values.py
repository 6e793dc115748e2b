"""Values that a broker has sent, by the names of their fields: ids, epochs and offsets that no generator guesses."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from random import Random
from typing import Any

from aioproducer.protocol.schema import Array, Struct

_KEPT = 16
"""Values of one field; newer ones take the place of older ones."""


class LearnedValues:
    """What responses had. A struct whose ``name`` or ``topic`` is among ``hidden`` is not learned from."""

    def __init__(self, random: Random, hidden: Collection[str] = ()) -> None:
        self._random = random
        self._hidden = frozenset(hidden)
        self._values: dict[str, deque[Any]] = {}

    def learn(self, struct: Struct) -> None:
        """Remembers the values of all fields of a message, and of the structs in it."""
        if {getattr(struct, "name", None), getattr(struct, "topic", None)} & self._hidden:
            return
        for wire in struct.FIELDS:
            value = getattr(struct, wire.name)
            for one in (value or [])[:_KEPT] if isinstance(wire.type, Array) else [value]:
                if isinstance(one, Struct):
                    self.learn(one)
                elif one is not None:
                    self._values.setdefault(wire.name, deque(maxlen=_KEPT)).append(one)

    def pick(self, *names: str) -> Any:
        """A value of one of these fields; None if none was learned."""
        known = [self._values[name] for name in names if name in self._values]
        return self._random.choice(self._random.choice(known)) if known else None
