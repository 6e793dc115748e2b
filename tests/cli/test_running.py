from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable

import pytest
import typer

from aioproducer.cli.running import InputError, Interrupt, run, until_interrupted
from aioproducer.cli.terminal import Terminal
from aioproducer.errors import ConfigException, TimeoutException

Capture = pytest.CaptureFixture[str]


def status_of(command: Callable[[Interrupt], Awaitable[int]]) -> int:
    with pytest.raises(typer.Exit) as exit:
        run(Terminal(), command)
    return exit.value.exit_code


@pytest.mark.parametrize("status", [0, 1])
def test_a_command_s_status_is_the_process_s(status: int) -> None:
    async def command(_: Interrupt) -> int:
        return status

    assert status_of(command) == status


@pytest.mark.parametrize(
    ("error", "line", "status"),
    [
        (TimeoutException("too late"), "TimeoutException: too late", 1),
        (ConfigException("unknown config 'x'"), "unknown config 'x'", 2),
        (InputError("line 1: bad"), "line 1: bad", 1),
        (FileNotFoundError(2, "No such file or directory", "x.txt"), "x.txt: No such file or directory", 1),
        (OSError("something"), "something", 1),
    ],
)
def test_errors_that_are_no_bugs_are_lines(capsys: Capture, error: Exception, line: str, status: int) -> None:
    async def command(_: Interrupt) -> int:
        raise error

    assert status_of(command) == status
    assert capsys.readouterr() == ("", f"Error: {line}\n")


def test_bugs_are_shown_as_such() -> None:
    async def command(_: Interrupt) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(Terminal(), command)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted(number: signal.Signals, status: int) -> None:
    ended = []

    async def work() -> int:
        os.kill(os.getpid(), number)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(True)
        return 0

    before = signal.getsignal(number)
    assert status_of(lambda interrupt: until_interrupted(Terminal(), interrupt, work())) == status
    assert ended == [True]
    assert signal.getsignal(number) == before


def test_interrupted_again_while_it_ends() -> None:
    async def work() -> int:
        forever = asyncio.get_running_loop().create_future()
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.shield(forever)
        except asyncio.CancelledError:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.shield(forever)
        return 0

    assert status_of(lambda interrupt: until_interrupted(Terminal(), interrupt, work())) == 130


def test_not_interrupted() -> None:
    async def work() -> int:
        return 7

    assert status_of(lambda interrupt: until_interrupted(Terminal(), interrupt, work())) == 7


def test_work_that_ends_although_it_was_interrupted() -> None:
    async def work() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            pass
        return 3

    assert status_of(lambda interrupt: until_interrupted(Terminal(), interrupt, work())) == 3


def test_uvloop_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = []

    async def command(_: Interrupt) -> int:
        loops.append(type(asyncio.get_running_loop()).__module__)
        return 0

    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert status_of(command) == 0
    monkeypatch.undo()
    pytest.importorskip("uvloop")
    assert status_of(command) == 0
    assert loops == ["asyncio.unix_events", "uvloop"]
