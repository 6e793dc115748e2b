from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer import PreparedTxnState
from aioproducer.errors import IllegalArgumentException


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1))
def test_the_text_is_the_state(producer_id: int, epoch: int) -> None:
    state = PreparedTxnState(producer_id, epoch)
    assert str(state) == f"{producer_id}:{epoch}"
    assert PreparedTxnState.parse(str(state)) == state
    assert state.has_transaction
    assert state


def test_no_transaction_is_the_empty_text() -> None:
    state = PreparedTxnState()
    assert str(state) == ""
    assert PreparedTxnState.parse("") == state == PreparedTxnState(-1, -1)
    assert not state.has_transaction
    assert not state


@pytest.mark.parametrize(
    "text",
    [
        *("1", "1:", ":1", "1:2:3", "a:1", "1:b", " 1:2", "1:2\n", "1 :2", "+1:2", "-1:-1", "-1:0", "1:-1", "1_0:2"),
        *("9223372036854775808:0", "0:32768", "1" * 100_000 + ":0", "٣:1"),
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(IllegalArgumentException, match="'producerId:epoch', or empty") as raised:
        PreparedTxnState.parse(text)
    assert len(str(raised.value)) < 300
