"""The class of the class KafkaProducer: how its methods look to mocks."""

from __future__ import annotations

import inspect
import sys
from abc import ABCMeta
from asyncio import coroutines
from collections.abc import Callable
from functools import lru_cache, wraps
from types import FunctionType, MethodDescriptorType
from typing import TYPE_CHECKING, Any, Final

AWAITED: Final = frozenset(("send", "enqueue", "flush", "close"))
"""The methods that are plain functions and return something to await."""


class ProducerType(ABCMeta):
    """Makes ``create_autospec(KafkaProducer)`` awaitable where a producer is, with a producer's signatures.

    A mock looks up each method on the class and asks whether it is a coroutine function. Some methods that are awaited
    are plain functions, and compiled ones are not even functions of Python. For these the class returns a function that
    calls the method and is marked as a coroutine function. Instances are unaffected: they return the method itself.
    """

    if not TYPE_CHECKING:  # type checkers would take it that the class has every attribute

        def __getattribute__(cls, name: str) -> Any:
            found = super().__getattribute__(name)
            return (
                _shown(found) if name in AWAITED and isinstance(found, FunctionType | MethodDescriptorType) else found
            )


@lru_cache
def _shown(method: Callable[..., Any]) -> Callable[..., Any]:
    """An equivalent function, marked as a coroutine function."""

    @wraps(method)
    def call(*arguments: Any, **more: Any) -> Any:
        return method(*arguments, **more)

    shown: Any = call
    if not isinstance(method, FunctionType):
        # A mock leaves self out itself if the class has a function of Python.
        signature = inspect.signature(method)
        shown.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
    if sys.version_info >= (3, 12):
        return inspect.markcoroutinefunction(call)
    shown._is_coroutine = vars(coroutines)["_is_coroutine"]
    return call
