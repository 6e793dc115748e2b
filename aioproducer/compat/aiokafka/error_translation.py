"""The errors of a producer's calls, raised as aiokafka's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aioproducer import KafkaError
from aioproducer.compat.aiokafka import errors
from aioproducer.errors import IllegalStateException, SerializationException


class ErrorTranslation:
    """What an error means for one producer depends on whether it has a transactional.id, and whether it is closed."""

    def __init__(self, *, transactional: bool) -> None:
        self.closed = False
        self._transactional = transactional

    @contextmanager
    def translating(self, *, late: str = "") -> Iterator[None]:
        """In this block, errors of this package are raised as aiokafka's."""
        try:
            yield
        except KafkaError as error:
            raise self.translated(error, late=late) from error

    def translated(self, error: KafkaError, *, late: str = "") -> Exception:
        """As :func:`errors.translated`, but misuse has aiokafka's names for it."""
        if isinstance(error, SerializationException):
            return TypeError(str(error))
        if isinstance(error, IllegalStateException) and not isinstance(error.__cause__, KafkaError):
            if self.closed:
                return errors.ProducerClosed(str(error))
            if self._transactional:
                return errors.IllegalOperation(str(error))
        return errors.translated(error, late=late)
