"""The reasons why a channel is muted."""

from __future__ import annotations

from enum import IntEnum

from aioproducer.errors import IllegalStateException


class ChannelMuteState(IntEnum):
    """Kafka's ``KafkaChannel.ChannelMuteState``. Its MUTED, between two of these, does not occur here."""

    NOT_MUTED = 0
    MUTED_AND_RESPONSE_PENDING = 1
    MUTED_AND_THROTTLED = 2
    MUTED_AND_THROTTLED_AND_RESPONSE_PENDING = 3


class ChannelMuteEvent(IntEnum):
    """Kafka's ``KafkaChannel.ChannelMuteEvent``."""

    REQUEST_RECEIVED = 0
    RESPONSE_SENT = 1
    THROTTLE_STARTED = 2
    THROTTLE_ENDED = 3


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
    """Raises :class:`IllegalStateException` for an event that cannot happen in this state."""
    following = _TABLE.get((state, event))
    if following is None:
        raise IllegalStateException(f"{event.name} cannot happen to a channel that is {state.name}")
    return following
