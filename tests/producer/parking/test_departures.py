from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.parking.departures import Departures


class Waiter:
    def __init__(self) -> None:
        self.is_done = False

    def done(self) -> bool:
        return self.is_done

    def set_result(self, result: None, /) -> None:
        assert not self.is_done
        self.is_done = True


@given(st.data())
def test_a_waiter_is_done_with_the_last_of_those_before_it(data: st.DataObject) -> None:
    departures = Departures()
    parked: list[int] = []
    waiting: list[tuple[int, Waiter]] = []
    newest = 0
    for step in data.draw(st.lists(st.sampled_from(["park", "leave", "wait", "cancel"]))):
        if step == "park":
            newest += 1
            parked.append(newest)
        elif step == "leave" and parked:
            departures.departed(parked.pop(data.draw(st.integers(0, len(parked) - 1))))
        elif step == "wait" and parked:
            waiting.append((newest, Waiter()))
            departures.wait(newest, len(parked), waiting[-1][1])
        elif step == "cancel" and waiting:
            waiting.pop()[1].is_done = True
        for before, waiter in waiting:
            assert waiter.is_done is not any(number <= before for number in parked)
