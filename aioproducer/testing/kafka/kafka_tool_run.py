"""One run of one of Kafka's tools."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aioproducer.testing.kafka.kafka_libs import KafkaFailed
from aioproducer.testing.process_guard import ProcessGuard

CLIENT_PROPERTIES: Final = "client.properties"
"""The file from which a tool reads its client configs."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool that ended with exit status 0."""

    stdout: bytes
    stderr: str


def run_tool(
    guard: ProcessGuard, name: str, command: list[str], properties: str, stdin: bytes, timeout: float
) -> ToolOutput:
    """Runs a tool to its end, with ``properties`` in a file. Raises ``KafkaFailed`` with the end of its output."""
    with guard, tempfile.TemporaryDirectory(prefix="aioproducer-tool-") as scratch:
        Path(scratch, CLIENT_PROPERTIES).write_text(properties, encoding="utf-8")
        pipe = subprocess.PIPE
        process = guard.spawn(command, cwd=Path(scratch), stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            stdout, said = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, said = process.communicate()
            raise KafkaFailed(f"{name} was not done within {timeout:g} s:\n{tail(_text(said, stdout))}") from None
    if process.returncode != 0:
        raise KafkaFailed(f"{name} ended with exit status {process.returncode}:\n{tail(_text(said, stdout))}")
    return ToolOutput(stdout, _text(said))


def _text(*outputs: bytes) -> str:
    return "\n".join(output.decode(errors="replace") for output in outputs)


def tail(text: str, lines: int = 40) -> str:
    """The last lines of a tool's output."""
    return "\n".join(text.strip().splitlines()[-lines:])
