from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import DeliveryError, KafkaError, Outcome, TimeoutException
from aioproducer.errors.printable import MOST, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-3: 17 records, größer als 1 MB …", "orders-3: 17 records, größer als 1 MB …"),
        ("one\ntwo\r\tthree", r"one\ntwo\r\tthree"),
        ("\x1b[31mred\x1b[0m\x9b2J\x7f", r"\x1b[31mred\x1b[0m\x9b2J\x7f"),
        ("\u202edrowssap\u2028", r"\u202edrowssap\u2028"),
        ("\ud800", r"\ud800"),
    ],
)
def test_line_breaks_and_terminal_commands_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_its_length_is_bounded() -> None:
    shown = printable("\n" + "x" * 10**6 + " (error 7)")
    assert shown.startswith("\\nxxx")
    assert shown.endswith("xxx (error 7)")
    assert "x … (" in shown
    assert len(shown) < MOST + 50
    assert printable("x" * MOST) == "x" * MOST


@given(st.text())
def test_it_is_one_line_of_printable_text_and_itself_when_it_was(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)
    assert (printable(text) == text) == text.isprintable()
    assert printable(text).encode() is not None  # no surrogates


def test_the_text_of_an_error_is_one_line_wherever_the_error_goes() -> None:
    error = TimeoutException("told:\n\x1b[2J")
    ended = DeliveryError.of(error, Outcome.NOT_SENT, ("t", 0))
    for one in (error, error.fresh(), ended, copy.copy(ended), pickle.loads(pickle.dumps(ended))):
        assert str(one) == r"told:\n\x1b[2J"
    assert str(KafkaError()) == ""
