"""The works by name, each in a file of its own."""

from __future__ import annotations

from benchmarks.works.stream import STREAM
from benchmarks.works.tasks import TASKS
from benchmarks.works.work import Work

WORKS: dict[str, Work] = {work.name: work for work in (STREAM, TASKS)}
