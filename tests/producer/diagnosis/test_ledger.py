from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.diagnosis.ledger import MAX_ENTRIES, OTHER, Ledger, in_words
from aioproducer.types import LedgerEntry


@given(
    st.floats(0, 1000),
    st.lists(st.tuples(st.floats(-5, 100), st.sampled_from([f"cause {n}" for n in range(20)]), st.integers(0, 2))),
)
def test_the_entries_add_up_to_the_time_booked(start: float, bookings: list[tuple[float, str, int]]) -> None:
    ledger = Ledger(start)
    now = start
    for step, cause, count in bookings:
        ledger.book(now + step, cause, count)  # a step back books nothing
        now = max(now, now + step)
    entries = ledger.entries()
    assert math.isclose(sum(entry.seconds for entry in entries), now - start, abs_tol=1e-6)
    assert all(entry.seconds >= 0 for entry in entries)
    assert sum(entry.count for entry in entries) == sum(count for _, _, count in bookings)
    assert len(entries) <= MAX_ENTRIES
    assert len({cause for _, cause, _ in bookings}) < MAX_ENTRIES or OTHER in {entry.cause for entry in entries}


def test_a_copy_is_kept_on_its_own() -> None:
    ledger = Ledger(10.0)
    ledger.book(12.0, "before")
    copied = ledger.copy()
    assert (copied.booked_until, copied.entries()) == (12.0, (LedgerEntry("before", 2.0, 1),))
    ledger.book(15.0, "here")
    copied.book(13.0, "there")
    copied.book(14.0, "before")
    assert ledger.entries() == (LedgerEntry("before", 2.0, 1), LedgerEntry("here", 3.0, 1))
    assert copied.entries() == (LedgerEntry("before", 3.0, 2), LedgerEntry("there", 1.0, 1))


# Words


def test_in_words() -> None:
    entries = (
        LedgerEntry("linger", 0.0004, 1),
        LedgerEntry("no leader", 34.2, 1),
        LedgerEntry("NOT_ENOUGH_REPLICAS", 85.8, 3),
    )
    assert in_words(entries) == "34 s no leader, 86 s NOT_ENOUGH_REPLICAS x3"
    assert in_words(entries[:1]) == "0 ms linger"
