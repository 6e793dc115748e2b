"""aiokafka's own modules, where it is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def aiokafka_module(module: str) -> Any:
    """``aiokafka.<module>``; None where aiokafka is not installed."""
    return None if find_spec("aiokafka") is None else import_module(f"aiokafka.{module}")
