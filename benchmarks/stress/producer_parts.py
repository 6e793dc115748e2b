"""The inside of a producer, for benchmarks that measure or disturb it."""

from __future__ import annotations

from typing import Any

from aioproducer import KafkaProducer
from aioproducer.producer.producer import core_of
from aioproducer.producer.sender.sender import Sender, SenderParts


def sender_of(producer: KafkaProducer[Any, Any]) -> Sender:
    """The Sender of a started producer."""
    sender = core_of(producer).sender
    assert isinstance(sender, Sender)
    return sender


def parts_of(producer: KafkaProducer[Any, Any]) -> SenderParts:
    """What it drives."""
    return sender_of(producer).parts
