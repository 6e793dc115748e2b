"""The mock for programs with threads: the producer of ``aioproducer.sync``, without brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, Unpack

from aioproducer.configs.producer_config import with_serializers
from aioproducer.errors import KafkaError, Outcome
from aioproducer.serializers import SerializerLike
from aioproducer.sync import KafkaProducer
from aioproducer.testing.mock.mock_errors import MockErrors
from aioproducer.testing.mock.mock_producer import MockConfigs, MockProducer
from aioproducer.types import K, ProducerRecord, V

T = TypeVar("T")


class SyncMockProducer(KafkaProducer[K, V]):
    """A :class:`aioproducer.sync.KafkaProducer` on a :class:`MockProducer`, with the same arguments.

    ::

        with SyncMockProducer() as producer:
            place_order(producer)
            assert [record.value for record in producer.history] == [b"an order"]

    Any thread may read the history, and sees at least its own records. The history stays readable after ``close``.
    """

    def __init__(
        self,
        *,
        auto_complete: bool = True,
        topics: Mapping[str, int] | Iterable[str] = (),
        key_serializer: SerializerLike[K] | None = None,
        value_serializer: SerializerLike[V] | None = None,
        **config: Unpack[MockConfigs],
    ) -> None:
        of_mock = {"auto_complete": auto_complete, "topics": topics}
        given: Any = with_serializers({**config, **of_mock}, key_serializer, value_serializer)
        super().__init__(**given)
        self._hands_over = False  # send waits for the mock, which keeps each record as it was given

    def _make_producer(self, config: Mapping[str, Any]) -> MockProducer[Any, Any]:
        self._mock: MockProducer[Any, Any] = MockProducer(**config)
        return self._mock

    def ask(self, question: Callable[[MockProducer[Any, Any]], T]) -> T:
        """Calls ``question(mock)`` in the mock's thread: for everything that has no method here."""
        if self._closed:
            self.close()  # waits for the end of the thread
            return question(self._mock)

        async def answer() -> T:
            return question(self._mock)

        return self._call(answer)

    @property
    def errors(self) -> MockErrors:
        """The errors that calls raise: ``errors.flush = error``."""
        return self._mock.errors

    @property
    def history(self) -> list[ProducerRecord]:
        """The records that were sent; those of a transaction once it is committed."""
        return self.ask(lambda mock: mock.history)

    def complete_next(self) -> bool:
        """Delivers the oldest record that has not ended; False if there is none."""
        return self.ask(lambda mock: mock.complete_next())

    def error_next(self, error: KafkaError, *, outcome: Outcome = Outcome.NOT_SENT) -> bool:
        """Ends the oldest record with this error; False if there is none."""
        return self.ask(lambda mock: mock.error_next(error, outcome=outcome))

    def clear(self) -> None:
        """Forgets history, offsets, and the records that have not ended."""
        self.ask(lambda mock: mock.clear())

    def fence_producer(self) -> None:
        """Act as if a newer producer had taken over: calls raise ProducerFencedException."""
        self.ask(lambda mock: mock.fence_producer())
