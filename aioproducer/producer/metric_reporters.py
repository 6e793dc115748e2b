"""The reporters of ``metric.reporters``: they start and end with the producer, and their errors do not affect it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from aioproducer.configs.plugins import made
from aioproducer.metrics.reporter import MetricsReporter

log = logging.getLogger(__name__)

GRACE = 5.0
"""Seconds for reporters to end when the producer closes without a shorter time-out."""


class Reporters:
    """Calls each reporter, and logs what it raises."""

    def __init__(self, plugins: Sequence[Any]) -> None:
        self._reporters: list[MetricsReporter] = [made(plugin, config="metric.reporters") for plugin in plugins]
        self._begun: list[MetricsReporter] = []

    def init(self, producer: object) -> None:
        for reporter in self._reporters:
            try:
                reporter.init(producer)
            except Exception:
                log.exception("the metrics reporter %r could not start and is not used", reporter)
            else:
                self._begun.append(reporter)

    async def close(self, grace: float = GRACE) -> None:
        """Ends them all, cancelling those that take longer than ``grace`` seconds; a second call finds none."""
        begun, self._begun = self._begun, []
        await asyncio.gather(*(self._close(reporter, grace) for reporter in begun))

    async def _close(self, reporter: MetricsReporter, grace: float) -> None:
        try:
            async with asyncio.timeout(grace):
                await reporter.close()
        except TimeoutError:
            if grace > 0:
                log.warning("the metrics reporter %r did not end within %g s", reporter, grace)
        except Exception:
            log.exception("unforeseen error at the end of the metrics reporter %r", reporter)
