"""The target that atheris calls with bytes: ``python -m tests.broker.fuzz.guided_target TOTALS ...``.

The other arguments are libFuzzer's. Each input is a conversation with a new broker, so it does the same every time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["aioproducer.broker", "aioproducer.protocol", "aioproducer.records"]):
    from .fuzzing import Fuzzed, converse

HURRY = 0.02
"""Seconds that a request may wait. Waiting teaches nothing, and there are thousands of inputs to try."""


class Found(Exception):
    """Ends the process, and libFuzzer keeps the input."""


def main() -> None:
    totals, found = Path(sys.argv[1]), Fuzzed()

    def target(data: bytes) -> None:
        converse(data, "input", found, hurry=HURRY)
        totals.write_text(json.dumps([found.requests, found.answers, found.accepted, found.longest_turn]))
        if found.findings:
            raise Found("\n".join(map(str, found.findings)))

    atheris.Setup([sys.argv[0], *sys.argv[2:]], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
