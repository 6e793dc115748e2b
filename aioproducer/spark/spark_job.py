"""Spark jobs that a coroutine waits for, and that are cancelled with it; in the driver, or by Spark Connect."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, Self, TypeVar

from aioproducer.spark.active_session import activate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
T = TypeVar("T")

_CANCEL_AGAIN: Final = 0.2
"""Seconds after which the jobs are cancelled again: the first call does not stop a job that had not begun."""


async def run_job(spark: SparkSession, action: Callable[[], T], *, description: str | None = None) -> T:
    """Runs a Spark action and returns its result: ``await run_job(spark, df.count)``.

    The action runs in its own thread, so it does not block the event loop, and several may run at once. Cancelling the
    coroutine cancels the jobs that the action has started, and ends when they have ended. ``description`` is shown in
    Spark's user interface, except for a session of Spark Connect.
    """
    async with SparkJob(spark, description) as job:
        return await job.call(action)


class _Jobs(Protocol):
    """The jobs that one thread starts."""

    def begin(self, description: str | None) -> None:
        """Tags them. Called in that thread, before it starts any."""

    def cancel(self) -> None:
        """Cancels those that have been started. Called in another thread."""


class _ClassicJobs:
    """Of a session in the driver. Tags of its context are on all of its jobs; those of a session only on SQL's."""

    def __init__(self, spark: SparkSession, tag: str) -> None:
        self._spark = spark
        self._context: Any = spark.sparkContext
        self._tag = tag

    def begin(self, description: str | None) -> None:
        activate(self._spark)
        # Properties of the thread, which Spark passes on to the threads that it makes for its calls.
        self._context.addJobTag(self._tag)
        self._context.setInterruptOnCancel(True)
        if description is not None:
            self._context.setJobDescription(description)

    def cancel(self) -> None:
        self._context.cancelJobsWithTag(self._tag)


class _ConnectJobs:
    """Of a session of Spark Connect, whose jobs are those of its operations and have no description."""

    def __init__(self, spark: SparkSession, tag: str) -> None:
        self._spark = spark
        self._tag = tag

    def begin(self, description: str | None) -> None:
        self._spark.addTag(self._tag)

    def cancel(self) -> None:
        self._spark.interruptTag(self._tag)


class SparkJob:
    """A thread for blocking calls to Spark. The jobs that they start share a tag, by which they are cancelled when the
    ``async with`` block is left by an exception."""

    def __init__(self, spark: SparkSession, description: str | None = None) -> None:
        jobs = _ClassicJobs if hasattr(spark, "_jsparkSession") else _ConnectJobs
        self._jobs: _Jobs = jobs(spark, f"aioproducer-{uuid.uuid4()}")
        self._description = description
        self._thread = ThreadPoolExecutor(1, "aioproducer-spark-job")

    async def __aenter__(self) -> Self:
        try:
            await self.call(self._jobs.begin, self._description)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if exc is not None:
                await self._cancelled(exc)
        finally:
            self._thread.shutdown(wait=False)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the function in the thread. If this is cancelled, the call continues there until the block's end."""
        return await asyncio.shield(self.begin(function, *args, **kwargs))

    def begin(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Calls the function in the thread, after earlier calls; to be awaited later, and shielded."""
        loop = asyncio.get_running_loop()
        begun = loop.run_in_executor(self._thread, lambda: function(*args, **kwargs))
        begun.add_done_callback(_seen)
        return begun

    async def _cancelled(self, cause: BaseException) -> None:
        """Returns when nothing runs any more, however often the waiting itself is cancelled."""
        idle = self.begin(lambda: None)
        interrupted: asyncio.CancelledError | None = None
        while not idle.done():
            try:
                await asyncio.to_thread(self._jobs.cancel)
                await asyncio.wait([idle], timeout=_CANCEL_AGAIN)
            except asyncio.CancelledError as error:
                interrupted = error
            except Exception as error:
                # The session was stopped, or its JVM is gone, and its jobs with it: that is not why the block was left.
                cause.add_note(f"the jobs of Spark could not be cancelled: {type(error).__name__}: {error}")
                break
        if interrupted is not None:
            raise interrupted


def _seen(begun: asyncio.Future[Any]) -> None:
    """Drops the error of a call whose caller has gone."""
    if not begun.cancelled():
        begun.exception()
