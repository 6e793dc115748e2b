"""The report of a campaign, in Markdown."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from aioproducer import Severity, __version__, compiled
from aioproducer.spark.audit.summary import Summary
from aioproducer.testing.transactions.bounces import Bounce
from aioproducer.testing.transactions.journal import Entry, Journal, Outcome
from aioproducer.testing.transactions.judge import Verdict
from aioproducer.testing.transactions.plan import Interruption, Plan, Step

_MEANWHILE = {
    Step.INITIALIZE: "within init_transactions",
    Step.BEGIN: "within an open transaction",
    Step.COMMIT: "within commit_transaction",
    Step.ABORT: "within abort_transaction",
    Step.FAILED: "within abort_transaction, after a failure",
    Step.COMMITTED: "after a commit",
    Step.ABORTED: "after an abort",
}

_COMPLETE = ("CompleteCommit", "CompleteAbort", "Empty")


@dataclass(frozen=True)
class Report:
    """``protocol`` is that of transactions, 1 or 2. ``last_state`` is the coordinator's state of the transaction in the
    end. ``audit`` is the result of the delivery audit, if requested."""

    version: str
    protocol: int
    nodes: int
    plan: Plan
    seconds: float
    journal: Journal
    interrupted: tuple[tuple[Interruption, Entry], ...]
    bounces: tuple[Bounce, ...]
    verdict: Verdict
    last_state: str
    audit: Summary | None = None

    def problems(self) -> list[str]:
        found = [*self.verdict.problems]
        if self.last_state not in _COMPLETE:
            found.append(f"in the end the coordinator says of the transaction: {self.last_state}")
        if self.audit is not None:
            found += [
                f"the audit found: {finding}"
                for kind in self.audit.found
                if kind.kind.severity is Severity.CRITICAL
                for finding in kind.examples
            ]
        return found

    def markdown(self) -> str:
        problems = self.problems()
        verdict = "Exactly the committed transactions were read" if not problems else "**There are problems**"
        lines = [
            f"# Transactions on Kafka {self.version}",
            "",
            f"{verdict}: by Kafka's console consumer, with `isolation.level=read_committed`. Made by",
            "",
            f"    python -m aioproducer.testing.transactions {self._options()}",
            "",
            *_table(["what", "how many"], self._figures()),
            *_section("What the interrupted producers were doing, by their journals", self._interruptions()),
            *_section("Brokers, one at a time", self._bounces()),
            *_section("Transactions that failed, and were aborted for it", _counted(self.journal.failures)),
            *_section("Errors of the producers that were replaced", _counted(self.journal.fenced)),
            *_section("Problems", [f"- {problem}" for problem in problems]),
        ]
        return "\n".join(lines) + "\n"

    def _options(self) -> str:
        options = {"kafka": self.version, "nodes": self.nodes, **asdict(self.plan)}
        return " ".join(f"--{name} {value}" for name, value in options.items())

    def _figures(self) -> list[tuple[str, str]]:
        plan, ends, resolved = self.plan, self.journal.steps(), len(self.verdict.resolved)
        begun = len(self.journal.last)
        committed, aborted = ends[Step.COMMITTED], ends[Step.ABORTED]
        unknown = sum(1 for _ in self.journal.with_outcome(Outcome.UNKNOWN))
        coordinator = sum(bounce.coordinates for bounce in self.bounces)
        return [
            ("date", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
            ("Kafka", f"{self.version}, {self.nodes} nodes; protocol {self.protocol} of transactions"),
            ("producer", f"aioproducer {_build()}, Python {platform.python_version()}"),
            ("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"),
            ("seed", str(plan.seed)),
            ("seconds", f"{self.seconds:.0f}"),
            ("transactions begun", f"{begun:,}, of {plan.records} records over {plan.partitions} partitions"),
            ("committed, acknowledged", f"{committed:,}"),
            ("aborted, acknowledged", f"{aborted:,}"),
            ("interrupted within the commit", f"{unknown}: {resolved} turned out committed, {unknown - resolved} not"),
            ("interrupted otherwise", f"{begun - committed - aborted - unknown}: nothing of them was read"),
            ("producers killed (SIGKILL)", str(sum(not interruption.stopped for interruption, _ in self.interrupted))),
            ("stopped, replaced, woken (SIGSTOP, SIGCONT)", f"{len(self.journal.fenced)}: all fenced"),
            ("brokers bounced", f"{len(self.bounces)}, {coordinator} times the coordinator"),
            ("records read", f"{self.verdict.records:,}"),
            *([] if self.audit is None else [("the delivery audit says", self.audit.verdict)]),
            ("in the end the coordinator says", self.last_state),
        ]

    def _interruptions(self) -> list[str]:
        found = Counter((entry.step, interruption.stopped) for interruption, entry in self.interrupted)
        rows = [
            (meanwhile, str(found[step, False]), str(found[step, True]))
            for step, meanwhile in _MEANWHILE.items()
            if found[step, False] or found[step, True]
        ]
        return _table(["", "killed", "stopped"], rows)

    def _bounces(self) -> list[str]:
        rows = [
            (
                f"{bounce.node_id}, the coordinator" if bounce.coordinates else str(bounce.node_id),
                "SIGKILL" if bounce.crash else "controlled shutdown",
                f"{bounce.seconds:.0f} s",
            )
            for bounce in self.bounces
        ]
        return _table(["node", "how", "all replicas in sync after"], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table; none without rows."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)] if rows else []


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *lines] if lines else []


def _counted(entries: Sequence[Entry]) -> list[str]:
    return [f"- {number} × {detail}" for detail, number in Counter(entry.detail for entry in entries).most_common()]


def _build() -> str:
    return f"{__version__}, {'compiled' if compiled else 'interpreted'}"
