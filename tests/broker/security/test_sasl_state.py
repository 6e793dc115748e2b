from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.security.sasl_state import SaslEvent, SaslState, next_sasl_state

EVENTS = st.lists(st.sampled_from(SaslEvent), max_size=12)


def walk(events: list[SaslEvent]) -> list[SaslState]:
    states = [SaslState.INITIAL_REQUEST]
    for event in events:
        states.append(next_sasl_state(states[-1], event))
    return states


@given(EVENTS)
def test_authentication_needs_a_mechanism_and_a_right_token(events: list[SaslEvent]) -> None:
    states = walk(events)
    if SaslState.COMPLETE in states:
        before = events[: states.index(SaslState.COMPLETE)]
        assert before[-1] is SaslEvent.TOKEN_ACCEPTED
        assert SaslEvent.HANDSHAKE in before


@given(EVENTS, EVENTS)
def test_a_failure_is_for_good(before: list[SaslEvent], after: list[SaslEvent]) -> None:
    states = walk(before + after)
    if SaslState.FAILED in states:
        assert set(states[states.index(SaslState.FAILED) :]) == {SaslState.FAILED}


@given(EVENTS)
def test_an_enabled_mechanism_cannot_be_chosen_twice_in_one_exchange(events: list[SaslEvent]) -> None:
    states = walk(events)
    for index, event in enumerate(events):
        if event is SaslEvent.HANDSHAKE and states[index] is SaslState.AUTHENTICATE:
            assert states[index + 1] is SaslState.FAILED
