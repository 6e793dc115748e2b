"""A schema registry refuses a request, or cannot be reached.

A producer raises these as the cause of the SerializationException of a record: ``error.__cause__``.
"""

from __future__ import annotations

from collections.abc import Sequence

from aioproducer.errors import KafkaError


class SchemaRegistryException(KafkaError):
    """The registry refused a request, or answered something that cannot be used.

    ``status`` is the HTTP status, 0 without an answer; ``error_code`` the registry's own number, such as 40401, 0
    without one.
    """

    def __init__(self, message: str, *, status: int = 0, error_code: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code


class SchemaRegistryUnavailableException(SchemaRegistryException):
    """No registry could be reached, or all are out of order, also after ``max.retries`` retries."""

    retriable = True


class SchemaRegistryAuthenticationException(SchemaRegistryException):
    """The registry does not accept the credentials (401), or does not allow the request (403)."""


class SchemaNotFoundException(SchemaRegistryException):
    """The registry has no such subject (40401), version (40402) or schema (40403)."""


class InvalidSchemaException(SchemaRegistryException):
    """The registry cannot read the schema, or lacks what it refers to (42201)."""


class IncompatibleSchemaException(SchemaRegistryException):
    """The schema cannot follow the versions that ``subject`` has (409).

    ``version`` is the latest of them, None if that is unknown; ``differences`` are sentences about what differs from
    it.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 409,
        error_code: int = 409,
        subject: str = "",
        version: int | None = None,
        differences: Sequence[str] = (),
    ) -> None:
        super().__init__(message, status=status, error_code=error_code)
        self.subject = subject
        self.version = version
        self.differences = tuple(differences)
