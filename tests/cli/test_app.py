from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import COMMAND, Run, environment

COMMANDS = [
    [],
    ["demo"],
    ["send"],
    ["read"],
    ["broker"],
    ["outbox"],
    ["perf"],
    ["audit"],
    ["spark"],
    ["spark", "show"],
    ["spark", "finish"],
    ["spark", "abort"],
    ["spark", "mark"],
    ["topics"],
    ["topics", "list"],
    ["topics", "create"],
    ["topics", "describe"],
    ["topics", "delete"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(run: Run, command: list[str], option: str) -> None:
    result = run(*command, option)
    assert result.status == 0
    assert result.out.startswith(f"Usage: {' '.join(['aioproducer', *command])} ")
    assert "..." not in "".join(line for line in result.out.splitlines()[1:] if not line.strip().startswith("-"))


@pytest.mark.parametrize(
    "command",
    [["topics", name] for name in ("list", "create", "describe", "delete")]
    + [["send"], ["read"], ["audit"], ["spark", "show"]],
)
def test_commands_that_talk_to_a_broker_take_the_same_options(run: Run, command: list[str]) -> None:
    out = run(*command, "--help").out
    assert all(option in out for option in ("--bootstrap-server HOST:PORT,...", "--config ", "-X NAME=VALUE"))


def test_version(run: Run) -> None:
    result = run("--version")
    assert result.status == 0
    assert result.out.startswith("aioproducer ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage: aioproducer"),
        (["topics"], "Usage: aioproducer topics"),
        (["sned"], "No such command 'sned'"),
        (["send"], "Missing argument 'TOPIC'"),
        (["send", "t", "a", "b"], "unexpected extra argument"),
        (["send", "t", "--nosuch"], "No such option"),
        (["send", "t", "--partition", "x"], "'--partition'"),
        (["send", "t", "--partition", "-1"], "'--partition'"),
        (["send", "t", "--format", "xml"], "'--format'"),
        (["send", "t", "-X", "linger.ms"], "'linger.ms' is not NAME=VALUE"),
        (["send", "t", "--header", "a=b", "--header", "planted"], "number 2 of those given is not NAME=VALUE"),
        (["send", "t", "x.txt", "--key-field", "a"], "lines have no fields"),
        (["send", "t", "x.csv", "--key-separator", ","], "--key-separator"),
        (["send", "t", "x.txt", "--key-separator", ""], "--key-separator"),
        (["topics", "create"], "Missing argument 'TOPIC"),
        (["topics", "create", "t", "--partitions", "0"], "'--partitions'"),
        (["topics", "create", "t", "--config", "a", "--config", "b"], "a and b cannot both be config files"),
        (["broker", "--brokers", "0"], "'--brokers'"),
        (["broker", "--port", "65536"], "'--port'"),
        (["demo", "--partitions", "0"], "'--partitions'"),
        (["audit"], "name the topics to audit"),
        (["audit", "t", "--skew", "0"], "'--skew'"),
    ],
)
def test_a_wrong_command_line_is_status_2(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.status == 2
    assert message in result.out + result.err


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_it_says_what_to_install(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['aioproducer', 'demo']; "
        "from aioproducer.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "aioproducer: the command line needs typer and rich: pip install 'aioproducer[cli]'\n"


def test_the_rest_of_the_package_needs_neither() -> None:
    program = (
        "import sys; sys.modules['typer'] = sys.modules['rich'] = sys.modules['click'] = None; "
        "import aioproducer, aioproducer.reader, aioproducer.admin, aioproducer.broker, aioproducer.cli"
    )
    assert subprocess.run([sys.executable, "-c", program], env=environment()).returncode == 0


def test_help_is_framed_on_a_terminal_only(run_on_terminal: Run, run_process: Run) -> None:
    framed, plain = run_on_terminal("--help"), run_process("--help")
    assert framed.status == plain.status == 0
    assert "╭" in framed.out
    assert "╭" not in plain.out
    assert "\x1b" not in plain.out


def test_output_into_a_pipe_that_is_closed_is_no_traceback() -> None:
    process = subprocess.Popen([*COMMAND, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait()
