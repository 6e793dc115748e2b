from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.log.transaction_index import AbortedTransaction, TransactionIndex


def test_the_first_unstable_offset_is_where_the_oldest_transaction_under_way_began() -> None:
    index = TransactionIndex()
    assert index.first_unstable_offset is None
    index.wrote(1, 10)
    index.wrote(2, 20)
    index.wrote(1, 30)
    assert index.first_unstable_offset == 10
    index.ended(1, 40, committed=True)
    assert index.first_unstable_offset == 20
    index.ended(2, 50, committed=False)
    assert index.first_unstable_offset is None


def test_aborted_ones_are_found_by_what_they_cover() -> None:
    index = TransactionIndex()
    index.wrote(1, 10)
    index.ended(1, 19, committed=False)
    index.wrote(1, 20)
    index.ended(1, 29, committed=True)
    (aborted,) = index.aborted(0, 100)
    assert aborted == AbortedTransaction(1, 10, 19)
    assert [bool(index.aborted(*span)) for span in ((0, 10), (0, 11), (19, 20), (20, 30))] == [False, True, True, False]
    index.delete_before(20)
    assert index.aborted(0, 100) == []


def test_a_marker_for_a_transaction_that_wrote_nothing_here_changes_nothing() -> None:
    index = TransactionIndex()
    index.ended(1, 5, committed=False)
    assert (index.first_unstable_offset, index.aborted(0, 10)) == (None, [])


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["write", "commit", "abort"])), max_size=60))
def test_transactions_before_the_first_unstable_offset_have_ended(steps: list[tuple[int, str]]) -> None:
    index = TransactionIndex()
    under_way: dict[int, int] = {}
    aborted: list[tuple[int, int, int]] = []
    for offset, (producer, step) in enumerate(steps):
        if step == "write":
            index.wrote(producer, offset)
            under_way.setdefault(producer, offset)
        else:
            index.ended(producer, offset, committed=step == "commit")
            began = under_way.pop(producer, None)
            if began is not None and step == "abort":
                aborted.append((producer, began, offset))
    assert index.first_unstable_offset == min(under_way.values(), default=None)
    assert index.aborted(0, len(steps)) == aborted
