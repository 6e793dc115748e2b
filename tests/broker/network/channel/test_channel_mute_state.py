from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.network.channel.channel_mute_state import ChannelMuteEvent, ChannelMuteState, next_mute_state
from aioproducer.errors import IllegalStateException


@given(st.lists(st.sampled_from(ChannelMuteEvent)))
def test_the_state_is_whether_a_response_is_pending_and_whether_the_client_is_throttled(
    events: list[ChannelMuteEvent],
) -> None:
    """Whether a response is pending and whether the client is throttled; throttling begins with a request pending."""
    state, pending, throttled = ChannelMuteState.NOT_MUTED, False, False
    for event in events:
        match event:
            case ChannelMuteEvent.REQUEST_RECEIVED:
                allowed, after = not pending and not throttled, (True, throttled)
            case ChannelMuteEvent.RESPONSE_SENT:
                allowed, after = pending, (False, throttled)
            case ChannelMuteEvent.THROTTLE_STARTED:
                allowed, after = pending and not throttled, (pending, True)
            case ChannelMuteEvent.THROTTLE_ENDED:
                allowed, after = throttled, (pending, False)
        if not allowed:
            with pytest.raises(IllegalStateException):
                next_mute_state(state, event)
            continue
        state = next_mute_state(state, event)
        pending, throttled = after
        assert ("RESPONSE_PENDING" in state.name, "THROTTLED" in state.name) == after
        assert (state is ChannelMuteState.NOT_MUTED) == (not pending and not throttled)


def test_every_state_can_be_left() -> None:
    for state in ChannelMuteState:
        assert any(_is_allowed(state, event) for event in ChannelMuteEvent)
    allowed = [pair for pair in itertools.product(ChannelMuteState, ChannelMuteEvent) if _is_allowed(*pair)]
    assert len(allowed) == 6


def _is_allowed(state: ChannelMuteState, event: ChannelMuteEvent) -> bool:
    try:
        next_mute_state(state, event)
    except IllegalStateException:
        return False
    return True
