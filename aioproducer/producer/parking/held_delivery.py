"""The delivery of a record that waits for memory or metadata."""

from __future__ import annotations

from typing import final

from mypy_extensions import mypyc_attr

from aioproducer.producer.delivery.delivery import Delivery


@final
@mypyc_attr(acyclic=True)
class HeldDelivery(Delivery):
    """The record stays while a task may still await this delivery; dropping it ends that."""

    def __del__(self) -> None:
        lot = self._result.lot
        if lot is not None:
            lot.dropped(self._result)
