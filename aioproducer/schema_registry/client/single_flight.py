"""One request for all who want the same at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

from aioproducer.errors import KafkaError

T = TypeVar("T")


class SingleFlight:
    """The first caller of a loop makes the request, and the others get its result or error.

    If the first caller is cancelled, the next one makes it.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, asyncio.Future[Any]] = {}

    async def result(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """What ``make()`` returns, or its error."""
        loop = asyncio.get_running_loop()
        of_loop = (loop, key)
        while (flight := self._flights.get(of_loop)) is not None:
            await asyncio.wait([flight])
            if flight.cancelled():
                continue
            if isinstance(error := flight.exception(), KafkaError):
                raise error.fresh()
            found: T = flight.result()
            return found
        flight = self._flights[of_loop] = loop.create_future()
        try:
            made = await make()
        except KafkaError as error:
            flight.set_exception(error.fresh())
            flight.exception()  # there may be no other caller
            raise
        except BaseException:
            flight.cancel()
            raise
        else:
            flight.set_result(made)
            return made
        finally:
            del self._flights[of_loop]
