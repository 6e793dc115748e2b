"""Benchmarks in which brokers are in trouble do not show what is logged about it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet(name: str = "aioproducer") -> Iterator[None]:
    """Loggers of that name and below log nothing but what is critical."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
