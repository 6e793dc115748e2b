"""Errors that arise in this process and have no number in Kafka's protocol."""

from __future__ import annotations

from aioproducer.errors.kafka_error import KafkaError


class ConfigException(KafkaError, ValueError):
    """A config is unknown, impossible, contradicts another one, or names something that is not supported.

    ``name`` and ``value`` tell which. What may be a secret is in neither of them, nor in the message.
    """

    def __init__(self, message: str, *, name: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.name = name
        self.value = value


class SerializationException(KafkaError, ValueError):
    """A key, value or header could not be turned into bytes."""


class IllegalArgumentException(KafkaError, ValueError):
    """An argument that can never be right: a negative partition or timestamp, say."""


class PartitionerException(IllegalArgumentException):
    """The user's partitioner failed, or returned what is not a partition of the topic."""


class IllegalStateException(KafkaError, RuntimeError):
    """The call is not allowed in the object's present state: closed, not started, another loop, another process."""


class SchemaException(KafkaError, ValueError):
    """Bytes that cannot be read as the message they should be; names the message, the field and the position."""


class InvalidReceiveException(KafkaError):
    """A frame length that is negative or beyond the limit: the other side does not speak Kafka's protocol here."""


class DataDirectoryException(KafkaError):
    """An embedded broker's data directory cannot be used: another broker has it, or it is of another cluster."""


class UnitTooLargeException(KafkaError):
    """The unit would hold more than buffer.memory, so it could never be committed as a whole."""


class TransactionAbortedException(KafkaError):
    """The record was not sent: its transaction was aborted."""
