"""One thing that is measured of all clients, and all runs of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.comparison.figures import FIGURES, RATIOS, Figure
from benchmarks.harness.statistics import Spread, differences, ratios
from benchmarks.works.run import Measurement
from benchmarks.works.works import Work


@dataclass(frozen=True)
class Done:
    """A run that has ended, rightly or not. Without a measurement, ``problem`` says why."""

    client: str
    round: int
    measurement: Measurement | None
    problem: str = ""


@dataclass(frozen=True)
class Summary:
    """One client in one case: the spread of each figure that it has, and of the reference's divided by it."""

    client: str
    figures: dict[str, Spread]
    ratios: dict[str, Spread]
    problems: list[str]


@dataclass(frozen=True)
class Case:
    """A work; ``done`` grows while the rounds go on. ``skipped`` says why there are none."""

    work: Work
    done: list[Done] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def clients(self) -> list[str]:
        """Who took part, in the order of the turns."""
        return list(dict.fromkeys(done.client for done in self.done))

    def figures(self, client: str, figure: Figure) -> dict[int, float]:
        """By round. A client that has not delivered everything has no figures: it is not fast, it is wrong."""
        found = {
            done.round: figure.of(done.measurement)
            for done in self.done
            if done.client == client and done.measurement is not None and not done.problem
        }
        return {number: value for number, value in found.items() if value is not None}

    def spread(self, client: str, figure: Figure) -> Spread | None:
        figures = self.figures(client, figure)
        return Spread.of([*figures.values()]) if figures else None

    def ratio(self, client: str, other: str, figure: Figure) -> Spread | None:
        """``client ÷ other``, round by round."""
        return ratios(self.figures(client, figure), self.figures(other, figure))

    def difference(self, client: str, other: str, figure: Figure) -> Spread | None:
        """``client - other``, round by round."""
        return differences(self.figures(client, figure), self.figures(other, figure))

    def summary(self, reference: str) -> list[Summary]:
        return [
            Summary(
                client,
                {name: spread for name, figure in FIGURES.items() if (spread := self.spread(client, figure))},
                {name: ratio for name in RATIOS if (ratio := self.ratio(reference, client, FIGURES[name]))},
                [f"round {done.round}: {done.problem}" for done in self.done if done.client == client and done.problem],
            )
            for client in self.clients()
        ]
