"""The futures, callbacks and hooks that the results of one producer notify.

The garbage collector does not look into results, nor into what holds them: deliveries, batches, queues. So a result
must not refer to what may lead back to its holder, or a producer that is dropped would never be freed: it refers
weakly to the audience, which its producer holds, and whose futures, callbacks and hooks the garbage collector sees.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioproducer.producer.delivery.listeners import Listeners
    from aioproducer.producer.delivery.produce_result import Hooks, Loop, Lot, ProduceResult


def _nothing(result: ProduceResult) -> None:
    """The default ``on_awaited``."""


class Audience:
    """One for each producer. Not compiled, because a native object cannot be weakly referenced."""

    __slots__ = ("__weakref__", "hooks", "listeners", "loop", "lot", "on_awaited", "weak", "weak_loop")

    def __init__(
        self, loop: Loop, hooks: Hooks | None = None, on_awaited: Callable[[ProduceResult], object] = _nothing
    ) -> None:
        self.loop = loop
        self.hooks = hooks
        self.on_awaited = on_awaited
        """Called when a task awaits a record of a result that is watched."""
        self.lot: Lot | None = None
        """Where parked results' records wait."""
        self.listeners: dict[ProduceResult, Listeners] = {}
        """Those of each pending result that has any."""
        self.weak = weakref.ref(self)
        self.weak_loop = weakref.ref(loop)
