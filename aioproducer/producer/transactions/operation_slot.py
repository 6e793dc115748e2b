"""Room for one operation: calling the same method again waits for the same end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aioproducer.errors import IllegalStateException, KafkaError, TimeoutException
from aioproducer.producer.transactions.operation import Operation


class OperationSlot:
    """Holds the last operation until a caller has received its end. Each wait is for at most max.block.ms.

    ``last_error()`` is the last error of an operation that takes too long, if any.
    """

    def __init__(self, max_block_ms: int, last_error: Callable[[], KafkaError | None]) -> None:
        self._max_block_ms = max_block_ms
        self._last_error = last_error
        self._operation: Operation | None = None

    @property
    def name(self) -> str:
        """The name of the operation in it; empty if there is none."""
        return "" if self._operation is None else self._operation.name

    def until(self) -> float:
        """When max.block.ms will be over, by the clock of the loop."""
        return asyncio.get_running_loop().time() + self._max_block_ms / 1000

    def begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        assert self._operation is None, "make room for it first"
        self._operation = Operation(name, work)

    def check_ended(self, before: str) -> None:
        """IllegalStateException if an operation is under way, which must end ``before`` that call."""
        operation = self._operation
        if operation is not None and not operation.done():
            raise IllegalStateException(
                f"{operation.name} has not ended; call it again, and wait for its end, before {before}"
            )

    def make_room(self, name: str) -> None:
        """Clears the slot for ``name``, if the last operation has ended and only its result was never received."""
        self.check_ended(name)
        if self._operation is not None:
            self._leave(self._operation)

    async def vacated(self, until: float) -> None:
        """Returns when the operation has ended, even with an error; TimeoutException if it has not by then."""
        if (operation := self._operation) is not None:
            await self._ended(operation, until)
            self._leave(operation)

    async def ended(self, until: float) -> None:
        """The same for a caller that receives the outcome: raises the operation's error."""
        operation = self._operation
        assert operation is not None, "nothing has begun"
        await self._ended(operation, until)
        if self._operation is operation:
            self._operation = None
        operation.result()

    async def settled(self) -> None:
        """Returns when the operation has ended, however long that takes."""
        if (operation := self._operation) is not None:
            await operation.settled()
            self._leave(operation)

    def cancel(self, why: KafkaError) -> None:
        """Cancels the operation, unless it is itself the caller; all waiters are notified."""
        if self._operation is not None:
            self._operation.cancel(why)

    def close(self) -> None:
        """Gives the operation up: the producer was closed."""
        if self._operation is not None:
            name = self._operation.name
            self._operation.cancel(IllegalStateException(f"{name} was given up: the producer was closed"))

    async def _ended(self, operation: Operation, until: float) -> None:
        if not await operation.ended(until):
            error = self._last_error()
            last = "" if error is None else f"; the last error was: {error}"
            raise TimeoutException(
                f"{operation.name} has not ended within max.block.ms={self._max_block_ms}: it continues, and "
                f"calling it again waits for its end{last}"
            )

    def _leave(self, operation: Operation) -> None:
        if self._operation is operation:
            self._operation = None
            operation.leave()
