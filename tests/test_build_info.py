from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import aioproducer
from tests.support.compiled import COMPILED

PROGRAM = """
import asyncio, logging
logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s")
from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster

async def main():
    async with EmbeddedCluster() as cluster:
        for _ in range(2):
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers):
                pass

asyncio.run(main())
"""


def test_the_version_is_that_of_the_installed_package() -> None:
    assert aioproducer.__version__ == importlib.metadata.version("aioproducer")


def test_compiled_says_whether_the_package_is_compiled() -> None:
    assert aioproducer.compiled is COMPILED


def test_a_process_logs_once_that_it_runs_interpreted() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("aioproducer.build_info ")]
    assert len(lines) == (0 if COMPILED else 1)
    assert all(line.startswith("aioproducer.build_info INFO aioproducer ") for line in lines)
    assert all(" runs interpreted, several times slower than compiled" in line for line in lines)
    reasons = ("AIOPRODUCER_COMPILE=0", "an editable install", "no C compiler, Python.h or mypy", "compiling failed")
    assert all(reason in line for line in lines for reason in (*reasons, "`pip install -v`")), "it cannot know which"
