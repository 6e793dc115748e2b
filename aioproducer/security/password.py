"""Secrets among the configs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final


@final
class Password:
    """A secret. Only :attr:`value` gives its text: no ``str``, ``repr``, log or traceback shows it.

    Kafka's ``Password``.
    """

    __slots__ = ("value",)

    HIDDEN = "[hidden]"

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return self.HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


def without_secrets(words: str, secrets: Iterable[str]) -> str:
    """A server's words, which may repeat what it was sent."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):  # one may be a part of another
        words = words.replace(secret, Password.HIDDEN)
    return words
