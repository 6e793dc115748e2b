"""The process of one client: memory and CPU are its own. Prints one line of JSON.

describe CLIENT       a Description
run RUN               a Measurement; RUN is JSON
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict

from benchmarks.clients import load_client
from benchmarks.clients.client import Missing
from benchmarks.harness.runtime import loop_factory
from benchmarks.works.curve_works import CURVE_WORKS
from benchmarks.works.run import Description, Measurement, Run
from benchmarks.works.works import WORKS


def main(arguments: list[str]) -> None:
    command, argument = arguments
    answer: Description | Measurement
    if command == "describe":
        answer = describe(argument)
    else:
        run = Run(**json.loads(argument))
        with asyncio.Runner(loop_factory=loop_factory(run.loop)) as runner:
            answer = runner.run(load_client(run.client).measure(run))
    print(json.dumps(asdict(answer)))


def describe(name: str) -> Description:
    try:
        client = load_client(name)
        about = client.about()
    except (ImportError, Missing) as error:
        return Description(name, missing=str(error))
    every = (*WORKS.values(), *CURVE_WORKS.values())
    works = [work.name for work in every if client.can(work) and (not work.clients or name in work.clients)]
    return Description(name, about, works, client.idempotent, client.share)
