"""What wraps aiokafka's class before ``install()`` wraps the class that takes its place."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer.compat.aiokafka.instrumentation import carry_over


class FunctionWrapper:
    """As wrapt's, as far as it matters here; ``test_frameworks.py`` has wrapt's own."""

    def __init__(self, wrapped: Any, wrapper: Callable[..., Any], enabled: Any = None) -> None:
        self.__wrapped__ = wrapped
        self._self_wrapper = wrapper
        self._self_enabled = enabled

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        bound = self.__wrapped__.__get__(instance, owner)
        return lambda *args, **kwargs: self._self_wrapper(bound, instance, args, kwargs)


def adds(text: str) -> Callable[..., Any]:
    return lambda wrapped, instance, args, kwargs: text + wrapped(*args, **kwargs)


def classes() -> tuple[Any, Any]:
    class Replaced:
        def send(self) -> str:
            return "replaced"

        def _hidden(self) -> str:
            return "hidden"

    class Replacement:
        def send(self) -> str:
            return "sent"

    return Replaced, Replacement


def test_wrappers_are_carried_over_in_their_order() -> None:
    replaced, replacement = classes()
    untouched = replacement.send
    carry_over(replaced, replacement)
    assert replacement.send is untouched
    replaced.send = FunctionWrapper(replaced.send, adds("inner "))
    replaced.send = FunctionWrapper(vars(replaced)["send"], adds("outer "))
    carry_over(replaced, replacement)
    assert replacement().send() == "outer inner sent"
    assert vars(replacement)["send"].__wrapped__.__wrapped__ is untouched, "so it can be unwrapped"


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@pytest.mark.parametrize("by", [decorated, lambda _: functools.partial(print)], ids=["decorated", "replaced"])
def test_what_was_replaced_in_another_way_is_named(by: Callable[..., Any]) -> None:
    replaced, replacement = classes()
    replaced.send = FunctionWrapper(by(replaced.send), adds("inner "))
    with pytest.warns(RuntimeWarning, match=r"aiokafka's Replaced\.send was replaced before install\(\)"):
        carry_over(replaced, replacement)
    assert replacement().send() == "inner sent", "wrappers around it are carried over all the same"


def test_a_wrapped_method_that_is_missing_is_named() -> None:
    replaced, replacement = classes()
    replaced._hidden = FunctionWrapper(replaced._hidden, adds("traced "))
    with pytest.warns(RuntimeWarning, match=r"Replaced\._hidden"):
        carry_over(replaced, replacement)
    assert not hasattr(replacement, "_hidden")


def test_aiokafkas_own_class_needs_no_warning() -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        carry_over(aiokafka.AIOKafkaProducer, classes()[1])
