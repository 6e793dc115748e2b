"""franz-go, by the Go program in ``benchmarks/franz_go``; built on first use, into the checkout's ``.cache``."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

from aioproducer.testing.process_guard import ProcessGuard
from benchmarks.clients.client import Client, Missing
from benchmarks.works.run import Measurement, Run
from benchmarks.works.works import Work

SOURCE = Path(__file__).parents[1] / "franz_go"
BUILD_TIMEOUT = 240
"""Seconds; the first time it fetches what go.sum names."""
PROGRAM = Path(__file__).parents[2] / ".cache" / "benchmarks" / "franz-go"


class FranzGo(Client):
    @classmethod
    def can(cls, work: Work) -> bool:
        """The program knows one topic."""
        return super().can(work) and work.topics == 1

    @classmethod
    def about(cls) -> str:
        go = shutil.which("go")
        if go is None:
            raise Missing("go is not on PATH")
        build = [go, "build", "-o", str(PROGRAM), "."]
        try:
            built = subprocess.run(build, cwd=SOURCE, capture_output=True, text=True, timeout=BUILD_TIMEOUT)
        except subprocess.TimeoutExpired as error:
            raise Missing(f"go build was not done within {BUILD_TIMEOUT} s") from error
        if built.returncode != 0:
            raise Missing(f"go build failed: {built.stderr.strip().rpartition(chr(10))[2]}")
        version = re.search(r"franz-go (v\S+)", (SOURCE / "go.mod").read_text(encoding="utf-8"))
        assert version is not None
        compiler = subprocess.run([go, "env", "GOVERSION"], cwd=SOURCE, capture_output=True, text=True, check=True)
        return f"{version[1]}, {compiler.stdout.strip()}"

    @classmethod
    async def measure(cls, run: Run) -> Measurement:
        return await asyncio.to_thread(_run, run)


def _run(run: Run) -> Measurement:
    pipe = subprocess.PIPE
    with ProcessGuard() as guard:
        process = guard.spawn([os.fspath(PROGRAM), json.dumps(asdict(run))], cwd=SOURCE, stdout=pipe, stderr=pipe)
        said, complaints = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(complaints.decode(errors="replace").strip())
    return Measurement(**json.loads(said))
