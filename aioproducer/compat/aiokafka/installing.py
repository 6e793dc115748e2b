"""Replaces aiokafka's producer, for libraries that import it themselves."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

from aioproducer.compat.aiokafka.producer import AIOKafkaProducer
from aioproducer.errors import IllegalStateException

_NAME: Final = "AIOKafkaProducer"
_HOMES: Final = ("aiokafka", "aiokafka.producer", "aiokafka.producer.producer")


def install() -> None:
    """From now on ``from aiokafka import AIOKafkaProducer`` gives this package's class. Calling it twice is harmless.

    Call it first: IllegalStateException names modules that have already imported aiokafka's class and would keep it.
    ImportError if aiokafka is not installed, because then there is nothing to replace. aiokafka's consumer and admin
    client stay as they are.
    """
    replaced = getattr(import_module(_HOMES[0]), _NAME)
    if replaced is AIOKafkaProducer:
        return
    early = sorted(
        name
        for name, module in tuple(sys.modules.items())
        if name not in _HOMES and getattr(module, "__dict__", {}).get(_NAME) is replaced
    )
    if early:
        raise IllegalStateException(
            f"{', '.join(early)} had imported aiokafka's producer before install(): call install() before that import"
        )
    for home in _HOMES:
        setattr(import_module(home), _NAME, AIOKafkaProducer)
