"""The process of a hostile client: what it computes is not the honest client's, nor the broker's."""

from __future__ import annotations

import sys

from aioproducer.descriptors import raise_limit
from benchmarks.attacks.attack_list import ATTACKS
from benchmarks.attacks.hostile_client import HostileClient


def main() -> None:
    """Runs the attack of a name on a port for so many seconds. Says when it is prepared, begins at a line of standard
    input, says when it is over, and keeps its connections until standard input ends."""
    name, port, seconds = sys.argv[1:]
    raise_limit()
    with HostileClient(int(port), float(seconds)) as client:
        attack = ATTACKS[name].run(client)
        next(attack)
        print("prepared", flush=True)
        sys.stdin.readline()
        for _ in attack:
            raise AssertionError(f"{name} yields twice")
        print("over", flush=True)
        sys.stdin.read()
