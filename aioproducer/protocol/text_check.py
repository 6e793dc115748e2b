"""Checks texts that users give before they become a part of a request.

A request is written as a whole. A text that cannot be written would take along everything else in the request: a topic,
for instance, the metadata of all others.
"""

from __future__ import annotations

from typing import Any, Final

from aioproducer.errors import IllegalArgumentException

MAX_STRING_LENGTH: Final = 0x7FFF
"""Bytes in a string, compact or not (Kafka's Short.MAX_VALUE)."""

_SHOWN: Final = 100
"""Characters of a wrong text that its error shows."""


def check_topic(topic: Any) -> None:
    """Raises IllegalArgumentException unless ``topic`` may be named in a request. Whether its name is allowed, the
    brokers decide.
    """
    if not isinstance(topic, str):
        raise IllegalArgumentException(f"the topic is of type {type(topic).__name__}; it must be a str")
    if not topic:
        raise IllegalArgumentException("the topic is empty")
    check_text("the topic", topic)


def check_text(what: str, text: Any) -> None:
    """Raises IllegalArgumentException unless ``text`` is a str that a request can have: at most 32,767 bytes in UTF-8.

    ``what`` names it in the error.
    """
    if not isinstance(text, str):
        raise IllegalArgumentException(f"{what} is of type {type(text).__name__}; it must be a str")
    size = len(text)
    if size <= MAX_STRING_LENGTH and not text.isascii():
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise IllegalArgumentException(
                f"{what} is {text[:_SHOWN]!r}; it cannot be encoded as UTF-8: {error.reason} (character {error.start})"
            ) from None
    if size > MAX_STRING_LENGTH:
        raise IllegalArgumentException(
            f"{what} is {text[:_SHOWN]!r}… and longer than the {MAX_STRING_LENGTH} bytes that a request can have"
        )
