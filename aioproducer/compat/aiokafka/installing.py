"""Replaces aiokafka's producer, for libraries that import it themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Final

from aioproducer.compat.aiokafka.instrumentation import carry_over
from aioproducer.compat.aiokafka.producer import AIOKafkaProducer
from aioproducer.errors import IllegalStateException

_NAME: Final = "AIOKafkaProducer"
_HOMES: Final = ("aiokafka", "aiokafka.producer", "aiokafka.producer.producer")


def install() -> None:
    """From now on ``from aiokafka import AIOKafkaProducer`` gives this package's class. Calling it twice is harmless.

    Call it first: IllegalStateException names the modules that have already imported aiokafka's class, and the classes
    that are derived from it, because they would keep it. Only instrumentation may come earlier: what it has wrapped of
    aiokafka's class, it wraps of this class, too; RuntimeWarning names what cannot be carried over. ImportError if
    aiokafka is not installed, because then there is nothing to replace. aiokafka's consumer and admin client stay as
    they are.
    """
    replaced = getattr(import_module(_HOMES[0]), _NAME)
    if replaced is AIOKafkaProducer:
        return
    if early := sorted(_users(replaced)):
        raise IllegalStateException(
            f"{', '.join(early)} had imported aiokafka's producer before install(): call install() before that import"
        )
    carry_over(replaced, AIOKafkaProducer)
    for home in _HOMES:
        setattr(import_module(home), _NAME, AIOKafkaProducer)


def _users(replaced: type) -> Iterator[str]:
    """Modules that have imported the class, and classes derived from it."""
    for name, module in tuple(sys.modules.items()):
        if name not in _HOMES and getattr(module, "__dict__", {}).get(_NAME) is replaced:
            yield name
    derived: type
    for derived in replaced.__subclasses__():
        yield f"{derived.__module__}.{derived.__qualname__}"
