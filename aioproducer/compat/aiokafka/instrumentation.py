"""What instrumentation has done to aiokafka's producer, done to this package's as well.

Instrumentation that is loaded first (``ddtrace-run``, ``opentelemetry-instrument``) has wrapped methods of aiokafka's
class before a program calls ``install()``.
"""

from __future__ import annotations

import warnings
from typing import Any


def carry_over(replaced: type, replacement: type) -> None:
    """Wraps methods of ``replacement`` by wrapt as those of ``replaced`` are wrapped.

    RuntimeWarning for a method that was replaced in another way, or wrapped but is missing in ``replacement``.
    """
    for name, method in vars(replaced).items():
        wrappers = []
        while hasattr(method, "_self_wrapper"):  # a FunctionWrapper of wrapt, or of a copy of it
            wrappers.append(method)
            method = method.__wrapped__
        own = vars(replacement).get(name)
        if _is_foreign(method, replaced) or (wrappers and own is None):
            warnings.warn(
                f"aiokafka's {replaced.__name__}.{name} was replaced before install(), and what it was replaced by is "
                "not called for aioproducer's class: replace it after install(), or give the producer interceptors "
                "(interceptor_classes)",
                RuntimeWarning,
                stacklevel=3,
            )
        if wrappers and own is not None:
            for wrapper in reversed(wrappers):
                own = type(wrapper)(own, wrapper._self_wrapper, wrapper._self_enabled)
            setattr(replacement, name, own)


def _is_foreign(method: Any, owner: type) -> bool:
    """Whether other code than the owner's has put the method there, or decorated it."""
    return callable(method) and (hasattr(method, "__wrapped__") or method.__module__ != owner.__module__)
