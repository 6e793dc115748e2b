from __future__ import annotations

from dataclasses import replace

from aioproducer.spark.audit.finding import Finding, Kind
from aioproducer.spark.audit.summary import Found, Summary
from aioproducer.testing.transactions.bounces import Bounce
from aioproducer.testing.transactions.journal import Entry, Journal
from aioproducer.testing.transactions.judge import Verdict
from aioproducer.testing.transactions.plan import Interruption, Plan, Step, Transaction
from aioproducer.testing.transactions.report import Report


def report() -> Report:
    journal = Journal()
    for number, step in enumerate([Step.COMMITTED, Step.ABORTED, Step.COMMIT, Step.COMMIT, Step.BEGIN]):
        journal.add(Entry(step, Transaction(0, number)))
    journal.add(Entry(Step.FENCED, Transaction(0, 4), "fenced"))
    verdict = Verdict(1500, frozenset({Transaction(0, 2)}), ())
    killed = Interruption(2, Step.COMMIT, 0.01, stopped=False), Entry(Step.COMMIT, Transaction(0, 2))
    bounces = (Bounce(3, coordinates=True, crash=True, seconds=7.6),)
    return Report("4.3.1", 2, 3, Plan(seed=9), 61.2, journal, (killed,), bounces, verdict, "CompleteCommit")


def test_a_report_has_findings_and_the_command_to_repeat_them() -> None:
    text = report().markdown()
    assert "Exactly the committed transactions were read" in text
    assert "python -m aioproducer.testing.transactions --kafka 4.3.1 --nodes 3 --seed 9 --transactions 1000" in text
    for row in (
        "| interrupted within the commit | 2: 1 turned out committed, 1 not |",
        "| interrupted otherwise | 1: nothing of them was read |",
        "| within commit_transaction | 1 | 0 |",
        "| 3, the coordinator | SIGKILL | 8 s |",
        "- 1 × fenced",
    ):
        assert row in text.splitlines()
    assert "Problems" not in text


def test_problems_come_first_and_last() -> None:
    bad = replace(report(), verdict=Verdict(0, frozenset(), ("lost",)), last_state="Ongoing")
    assert bad.problems() == ["lost", "in the end the coordinator says of the transaction: Ongoing"]
    text = bad.markdown()
    assert "**There are problems**" in text
    assert text.endswith("- lost\n- in the end the coordinator says of the transaction: Ongoing\n")


def test_a_finding_of_the_audit_is_a_problem_unless_it_is_only_late() -> None:
    finding = Finding(Kind.GAP, "campaign", 3, 17, 17, 5, 0, None, None, None, None, 2, "sequence 7 where 5 was due")
    late = replace(finding, kind=Kind.LATE)
    found = [Found(one.kind, 1, one.records, [one]) for one in (finding, late)]
    audit = Summary(["campaign"], 0, found, {"records": 1500}, {}, [])
    assert replace(report(), audit=replace(audit, found=found[1:])).problems() == []
    audited = replace(report(), audit=audit)
    assert audited.problems() == [f"the audit found: {finding}"]
    assert f"| the delivery audit says | {audit.verdict} |" in audited.markdown().splitlines()
