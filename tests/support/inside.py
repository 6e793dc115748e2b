"""The inside of a producer, for tests of what does not show outside."""

from __future__ import annotations

from typing import Any

from aioproducer import KafkaProducer
from aioproducer.producer.producer import core_of
from aioproducer.producer.sender.sender import Sender, SenderParts
from aioproducer.producer.transactions.transaction_manager import TransactionManager


def sender_of(producer: KafkaProducer[Any, Any]) -> Sender:
    """The Sender of a started producer."""
    sender = core_of(producer).sender
    assert isinstance(sender, Sender)
    return sender


def parts_of(producer: KafkaProducer[Any, Any]) -> SenderParts:
    """What its Sender drives."""
    return sender_of(producer).parts


def manager_of(producer: KafkaProducer[Any, Any]) -> TransactionManager:
    """Its transactions."""
    transactions = core_of(producer).transactions
    assert isinstance(transactions, TransactionManager)
    return transactions
