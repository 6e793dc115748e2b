"""What a producer is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.hooks.hooks import Hooks
from aioproducer.timing.clock import Clock

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inputs:
    """``check_place`` raises unless the caller is in the producer's loop and process."""

    config: ProducerConfig
    hooks: Hooks
    metrics: ProducerMetrics
    clock: Clock
    random: Random
    check_place: Callable[[], object]
