"""Why a connection is not read from."""

from __future__ import annotations

from enum import Enum

from aioproducer.errors import IllegalStateException


class ChannelMuteState(Enum):
    """Kafka's ``KafkaChannel.ChannelMuteState``. Its MUTED comes between two of these and lasts no time here."""

    NOT_MUTED = "not muted"
    MUTED_AND_RESPONSE_PENDING = "muted, response pending"
    MUTED_AND_THROTTLED = "muted, throttled"
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = "muted, throttled, response pending"


class ChannelMuteEvent(Enum):
    """Kafka's ``KafkaChannel.ChannelMuteEvent``."""

    REQUEST_RECEIVED = "a request was received"
    RESPONSE_SENT = "a response was sent"
    THROTTLE_STARTED = "throttling started"
    THROTTLE_ENDED = "throttling ended"


_TABLE = {
    (ChannelMuteState.NOT_MUTED, ChannelMuteEvent.REQUEST_RECEIVED): ChannelMuteState.MUTED_AND_RESPONSE_PENDING,
    (ChannelMuteState.MUTED_AND_RESPONSE_PENDING, ChannelMuteEvent.RESPONSE_SENT): ChannelMuteState.NOT_MUTED,
    (
        ChannelMuteState.MUTED_AND_RESPONSE_PENDING,
        ChannelMuteEvent.THROTTLE_STARTED,
    ): ChannelMuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
    (
        ChannelMuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
        ChannelMuteEvent.RESPONSE_SENT,
    ): ChannelMuteState.MUTED_AND_THROTTLED,
    (
        ChannelMuteState.MUTED_AND_THROTTLED_AND_RESPONSE_PENDING,
        ChannelMuteEvent.THROTTLE_ENDED,
    ): ChannelMuteState.MUTED_AND_RESPONSE_PENDING,
    (ChannelMuteState.MUTED_AND_THROTTLED, ChannelMuteEvent.THROTTLE_ENDED): ChannelMuteState.NOT_MUTED,
}


def next_mute_state(state: ChannelMuteState, event: ChannelMuteEvent) -> ChannelMuteState:
    """Raises :class:`IllegalStateException` for what cannot happen in a state."""
    following = _TABLE.get((state, event))
    if following is None:
        raise IllegalStateException(f"a channel that is {state.value} cannot be told that {event.value}")
    return following
