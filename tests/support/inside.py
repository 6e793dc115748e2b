"""The parts of a producer, for tests of behaviour that is not visible from outside."""

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
    """The parts that the Sender of a started producer works with."""
    return sender_of(producer).parts


def manager_of(producer: KafkaProducer[Any, Any]) -> TransactionManager:
    """The transactions of a started producer."""
    transactions = core_of(producer).transactions
    assert isinstance(transactions, TransactionManager)
    return transactions
