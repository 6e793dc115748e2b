"""A command's event loop: uvloop where it is installed, Ctrl-C, and errors as plain lines."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import typer

from aioproducer.cli.terminal import Terminal
from aioproducer.errors import ConfigException, KafkaError
from aioproducer.process.event_loop import new_event_loop

FAILED = 1
MISUSED = 2
"""As for any other mistake in the command line."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class InputError(Exception):
    """The input is wrong, and no more of it can be read. The message says what is wrong and where."""


class Interrupt:
    """Ctrl-C, or SIGTERM. ``once`` is set by the first one, ``again`` by the second."""

    def __init__(self) -> None:
        self.once = asyncio.Event()
        self.again = asyncio.Event()
        self._signal = 0

    def came(self, number: int) -> None:
        (self.again if self.once.is_set() else self.once).set()
        self._signal = number

    @property
    def status(self) -> int:
        """The exit status of an interrupted command, by the convention of shells: 130 for Ctrl-C."""
        return 128 + self._signal


async def first_of(work: asyncio.Task[Any], *events: asyncio.Event) -> None:
    """Waits until the work is done or one of the events is set. Does not cancel the work."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait([work, *waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


async def until_interrupted(terminal: Terminal, interrupt: Interrupt, work: Coroutine[Any, Any, int]) -> int:
    """Returns the work's exit status. Ctrl-C cancels the work; a second Ctrl-C also cancels its clean-up."""
    task = asyncio.ensure_future(work)
    for event in (interrupt.once, interrupt.again):
        await first_of(task, event)
        if not task.done():
            task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        return task.result()
    terminal.warn("Interrupted.")
    return interrupt.status


def run(terminal: Terminal, command: Callable[[Interrupt], Awaitable[int]]) -> None:
    """Runs the command and exits with the status it returns. Errors other than bugs become lines on standard error."""
    try:
        with terminal.logging(), asyncio.Runner(loop_factory=new_event_loop) as runner:
            status = runner.run(_with_signals(command))
    except KeyboardInterrupt:  # where signals cannot be handed to the loop
        status = 128 + signal.SIGINT
    except ConfigException as error:
        terminal.fail(f"Error: {explain(error)}")
        status = MISUSED
    except (KafkaError, InputError, OSError) as error:
        terminal.fail(f"Error: {explain(error)}")
        status = FAILED
    raise typer.Exit(status)


async def _with_signals(command: Callable[[Interrupt], Awaitable[int]]) -> int:
    interrupt = Interrupt()
    loop = asyncio.get_running_loop()
    try:
        for number in _SIGNALS:
            loop.add_signal_handler(number, interrupt.came, number)
    except (NotImplementedError, ValueError, RuntimeError):
        pass  # not on this system, or not in this thread: Ctrl-C raises KeyboardInterrupt
    try:
        return await command(interrupt)
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


def explain(error: BaseException) -> str:
    """An error in a line: an OSError as its file and the system's message, others as their name and message."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    if isinstance(error, InputError | ConfigException):
        return str(error)
    return f"{type(error).__name__}: {error}"
