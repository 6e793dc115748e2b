"""What ends a relay."""

from __future__ import annotations

from aioproducer.errors import KafkaError


class OutboxException(KafkaError):
    """The relay cannot go on, and trying again would change nothing."""


class OutboxSchemaException(OutboxException):
    """The database, or the outbox table in it, is not what the relay needs."""


class PositionMismatchException(OutboxException):
    """The position was written for another database or table, this database is older than the position, or no position
    can have a row of the table, because it was copied from another database."""


class MissingPositionException(OutboxException):
    """Kafka has no position of this relay, which has relayed rows before."""


class RowRefusedException(OutboxException):
    """A row cannot be sent, and there is no topic for dead letters. ``row_id`` is its id; the cause is the error."""

    def __init__(self, message: str, row_id: int) -> None:
        super().__init__(message)
        self.row_id = row_id
