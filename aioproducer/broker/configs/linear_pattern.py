"""Regular expressions of clients, matched in time proportional to the text, as RE2 does: Python's may take for ever.

RE2's syntax without flags, word boundaries, named classes and Unicode classes. ``\\d``, ``\\s`` and ``\\w`` mean ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple

MAX_LENGTH = 1000
"""Characters of a pattern."""

MAX_STATES = 1000
"""Instructions that a pattern is compiled to. Repetitions such as ``{100}`` need one for each."""

_MAX_DEPTH = 50
_MOVES_AT_ONCE = 500

_Test = Callable[[str], bool]


class _Char(NamedTuple):
    """Matches one character."""

    test: _Test


class _Edge(NamedTuple):
    """Matches the begin or the end of the text."""

    is_end: bool


class _Sequence(NamedTuple):
    parts: list[_Node]


class _Choice(NamedTuple):
    parts: list[_Node]


class _Repeat(NamedTuple):
    part: _Node
    least: int
    most: int | None


class _Split(NamedTuple):
    """Continues at both instructions."""

    targets: tuple[int, ...]


_Node = _Char | _Edge | _Sequence | _Choice | _Repeat
_Instruction = _Char | _Edge | _Split

_DIGITS = frozenset("0123456789")
_WORD = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_SPACE = frozenset("\t\n\f\r ")
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROL = {"t": "\t", "n": "\n", "f": "\f", "r": "\r", "v": "\v", "a": "\a"}


class LinearPattern:
    """A compiled pattern. Raises ValueError for one that is invalid, too long or not supported."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ValueError(f"the pattern has more than {MAX_LENGTH} characters")
        self._code: list[_Instruction] = []
        self._emit(_Parser(text).parse())

    def fullmatch(self, text: str) -> Generator[None, None, bool]:
        """Whether all of the text matches. Yields where other work may be done."""
        moves = 0
        states = self._reached([0], 0, len(text))
        for at, char in enumerate(text, start=1):
            following = []
            for state in states:
                instruction = self._code[state] if state < len(self._code) else None
                if isinstance(instruction, _Char) and instruction.test(char):
                    following.append(state + 1)
            states = self._reached(following, at, len(text))
            if not states:
                return False
            moves += len(states)
            if moves >= _MOVES_AT_ONCE:
                moves = 0
                yield
        return len(self._code) in states

    def _reached(self, states: Iterable[int], at: int, end: int) -> list[int]:
        """The states that can be reached without another character."""
        seen: dict[int, None] = {}
        left = list(states)
        while left:
            state = left.pop()
            if state in seen:
                continue
            seen[state] = None
            instruction = self._code[state] if state < len(self._code) else None
            if isinstance(instruction, _Split):
                left += instruction.targets
            elif isinstance(instruction, _Edge) and at == (end if instruction.is_end else 0):
                left.append(state + 1)
        return list(seen)

    def _emit(self, node: _Node) -> None:
        code = self._code
        if len(code) > MAX_STATES:
            raise ValueError("the pattern is too complex")
        match node:
            case _Char() | _Edge():
                code.append(node)
            case _Sequence(parts):
                for part in parts:
                    self._emit(part)
            case _Choice(parts):
                split = len(code)
                code.append(_Split(()))
                starts, ends = [], []
                for part in parts:
                    starts.append(len(code))
                    self._emit(part)
                    ends.append(len(code))
                    code.append(_Split(()))
                code[split] = _Split(tuple(starts))
                for end in ends:
                    code[end] = _Split((len(code),))
            case _Repeat(part, least, most):
                for _ in range(least):
                    self._emit(part)
                if most is None:
                    split = len(code)
                    code.append(_Split(()))
                    self._emit(part)
                    code.append(_Split((split,)))
                    code[split] = _Split((split + 1, len(code)))
                else:
                    splits = []
                    for _ in range(most - least):
                        splits.append(len(code))
                        code.append(_Split(()))
                        self._emit(part)
                    for split in splits:
                        code[split] = _Split((split + 1, len(code)))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def parse(self) -> _Node:
        node = self._choice()
        if self._at < len(self._text):
            raise ValueError("a ) has no (")
        return node

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        """Whether the text is next, which is passed then."""
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise ValueError("the pattern ends early")
        self._at += 1
        return char

    def _choice(self) -> _Node:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else _Choice(parts)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._peek() not in ("", "|", ")"):
            part = self._atom()
            while (bounds := self._bounds()) is not None:
                self._take("?")  # not greedy: the same text matches
                part = _Repeat(part, *bounds)
            parts.append(part)
        return _Sequence(parts)

    def _bounds(self) -> tuple[int, int | None] | None:
        """How often the last atom may come, if that is next."""
        for text, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(text):
                return bounds
        end = self._text.find("}", self._at)
        if self._peek() != "{" or end < 0:
            return None
        least, comma, most = self._text[self._at + 1 : end].partition(",")
        if not (least.isdecimal() and (most.isdecimal() or not most)):
            return None  # a literal {
        self._at = end + 1
        low = int(least)
        high = low if not comma else int(most) if most else None
        if low > MAX_STATES or (high is not None and not low <= high <= MAX_STATES):
            raise ValueError("a repetition is out of range")
        return low, high

    def _atom(self) -> _Node:
        char = self._next()
        match char:
            case "(":
                return self._group()
            case "[":
                return _Char(self._class())
            case ".":
                return _Char(lambda char: char != "\n")
            case "^":
                return _Edge(is_end=False)
            case "$":
                return _Edge(is_end=True)
            case "*" | "+" | "?":
                raise ValueError("a repetition has nothing to repeat")
            case "\\":
                if self._peek() in ("A", "z"):
                    return _Edge(is_end=self._next() == "z")
                return _Char(_test_of(self._escape()))
            case _:
                return _Char(lambda one: one == char)

    def _group(self) -> _Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("the pattern is too deep")
        if self._take("?P<") or (not self._is_lookbehind() and self._take("?<")):
            while self._next() != ">":
                pass
        elif self._take("?") and not self._take(":"):
            raise ValueError("flags and assertions are not supported")
        node = self._choice()
        if not self._take(")"):
            raise ValueError("a ( has no )")
        self._depth -= 1
        return node

    def _is_lookbehind(self) -> bool:
        return self._text.startswith(("?<=", "?<!"), self._at)

    def _escape(self) -> str | _Test:
        """A character, or the test for a class of them."""
        char = self._next()
        if char.lower() in _CLASSES:
            of, is_negated = _CLASSES[char.lower()], char.isupper()
            return lambda one: (one in of) is not is_negated
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "x":
            return self._hexadecimal()
        if char.isalnum():
            raise ValueError(f"\\{char} is not supported")
        return char

    def _hexadecimal(self) -> str:
        if self._take("{"):
            end = self._text.find("}", self._at)
            digits, self._at = self._text[self._at : max(end, 0)], end + 1
        else:
            digits, self._at = self._text[self._at : self._at + 2], self._at + 2
        if not digits or len(digits) > 6 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise ValueError("\\x needs hexadecimal digits")
        return chr(min(int(digits, 16), 0x10FFFF))

    def _class(self) -> _Test:
        is_negated = self._take("^")
        tests: list[_Test] = []
        is_first = True
        while is_first or self._peek() != "]":
            is_first = False
            if self._take("[:"):
                raise ValueError("named classes are not supported")
            low = self._member()
            if isinstance(low, str) and self._peek() == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                high = self._member()
                if not isinstance(high, str) or high < low:
                    raise ValueError("a range is invalid")
                tests.append(_range(low, high))
            else:
                tests.append(_test_of(low))
        self._at += 1
        return lambda char: any(test(char) for test in tests) is not is_negated

    def _member(self) -> str | _Test:
        return self._escape() if self._take("\\") else self._next()


def _test_of(what: str | _Test) -> _Test:
    return (lambda char: char == what) if isinstance(what, str) else what


def _range(low: str, high: str) -> _Test:
    return lambda char: low <= char <= high
