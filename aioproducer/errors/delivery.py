"""``DeliveryError``: mixed into the error that ends a delivery, with what is known of the record."""

from __future__ import annotations

from typing import Any

from aioproducer.errors.kafka_error import KafkaError, Outcome, copied


class DeliveryError(KafkaError):
    """Mixed into the error that ends a delivery, so ``except TimeoutException`` and ``except DeliveryError`` both work.

    ``outcome`` says whether the record is proven absent from the log or may be in it.
    """

    outcome: Outcome = Outcome.UNKNOWN
    topic_partition: tuple[str, int] | None = None

    def for_record(self, index: int) -> DeliveryError:
        """The error for the record at ``index`` of the batch: a new one each time, like ``fresh``."""
        own = self.fresh()
        if not self.refused_records:
            return own
        if index in self.refused_records:
            own.args = (f"{self._where()}: {self.refused_records[index] or type(self).__doc__}",)
            return own
        refused = ", ".join(map(str, sorted(self.refused_records)))
        alone = KafkaError(f"{self._where()}: not appended, as its batch had records that were refused: {refused}")
        return DeliveryError.of(alone, self.outcome, self.topic_partition)

    def _where(self) -> str:
        return "{}-{}".format(*self.topic_partition) if self.topic_partition else "the record"

    @staticmethod
    def of(error: KafkaError, outcome: Outcome, topic_partition: tuple[str, int] | None = None) -> DeliveryError:
        """``error`` as the end of a delivery: same class, message and cause, plus the outcome."""
        ended: KafkaError = copied(error)
        if not isinstance(ended, DeliveryError):
            ended.__class__ = _delivery_class(type(error))
        assert isinstance(ended, DeliveryError)
        ended.outcome = outcome
        ended.topic_partition = topic_partition
        return ended

    def __reduce__(self) -> tuple[Any, ...]:
        plain = _PLAIN_CLASS.get(type(self), type(self))
        return _rebuild, (plain, self.args, self.__dict__)


_DELIVERY_CLASS: dict[type[KafkaError], type[KafkaError]] = {}
_PLAIN_CLASS: dict[type[KafkaError], type[KafkaError]] = {}


def _delivery_class(plain: type[KafkaError]) -> type[KafkaError]:
    made = _DELIVERY_CLASS.get(plain)
    if made is None:
        namespace = {"__module__": plain.__module__, "__doc__": plain.__doc__, "__qualname__": plain.__qualname__}
        made = type(plain.__name__, (DeliveryError, plain), namespace)
        _DELIVERY_CLASS[plain] = made
        _PLAIN_CLASS[made] = plain
    return made


def _rebuild(plain: type[KafkaError], args: tuple[Any, ...], state: dict[str, Any]) -> KafkaError:
    error = plain.__new__(plain)
    error.args = args
    if not issubclass(plain, DeliveryError):
        error.__class__ = _delivery_class(plain)
    error.__dict__.update(state)
    return error
