"""The clients that a subscription is for: its config ``match``."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping

from aioproducer.broker.configs.linear_pattern import LinearPattern

SELECTORS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""What is known of a client."""

MAX_MATCH = 1000
"""The most characters of all patterns of a subscription together."""

MAX_TEXT = 255
"""The most characters of what is matched; a longer text matches nothing."""


class ClientMatch:
    """Patterns by selector. Raises ValueError for a selector or a pattern that is invalid, and for too many of them.

    Simplification: patterns are a subset of RE2's, which is matched in linear time, and not of Java's.
    """

    def __init__(self, selectors: Iterable[str]) -> None:
        selectors = tuple(selectors)
        if sum(map(len, selectors)) > MAX_MATCH:
            raise ValueError(f"there are more than {MAX_MATCH} characters")
        self._patterns: dict[str, LinearPattern] = {}
        for selector in selectors:
            name, _, pattern = selector.rstrip("=").partition("=")
            if name.strip() not in SELECTORS or not pattern or "=" in pattern:
                raise ValueError(f"{selector!r} is no selector and pattern")
            self._patterns[name.strip()] = LinearPattern(pattern.strip())

    def matches(self, client: Mapping[str, str]) -> Generator[None, None, bool]:
        """Whether the client's values, by selector, match all patterns. Yields where other work may be done."""
        for selector, pattern in self._patterns.items():
            text = client.get(selector)
            if text is None or len(text) > MAX_TEXT or not (yield from pattern.fullmatch(text)):
                return False
        return True
