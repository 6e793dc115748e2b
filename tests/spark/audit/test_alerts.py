from __future__ import annotations

from aioproducer import HealthFinding, Severity
from aioproducer.spark.audit.alerts import FORGOTTEN_AFTER_MS, SILENCE, Alert, Report, Watched, alerts

FULL = HealthFinding("buffer-available-bytes", 1.0, 10.0, Severity.WARNING, "help the brokers")
LOSING = HealthFinding("record-error-rate", 2.0, 0.0, Severity.CRITICAL, "look at the errors")


def report(number: int, *health: HealthFinding, instance: str = "i", last: bool = False) -> Report:
    """One each second."""
    return Report("orders", instance, number, number * 1000, 1000, last, health)


def raised(*rounds: list[Report], now_ms: int = 0) -> list[list[Alert]]:
    """The alerts after each round."""
    known: dict[str, Watched] = {}
    found = []
    for reports in rounds:
        known, alerted = alerts(known, reports, now_ms)
        found.append(alerted)
    return found


def shown(found: list[Alert]) -> list[tuple[str, bool]]:
    return [(alert.metric, alert.over) for alert in found]


def test_a_finding_raises_an_alert_when_it_begins_and_when_it_is_over() -> None:
    rounds = [report(0)], [report(1, FULL)], [report(2, FULL, LOSING)], [report(3, LOSING)], [report(4)]
    first, begun, another, over, at_last = raised(*map(list, rounds))
    assert first == []
    assert shown(begun) == [(FULL.metric, False)]
    assert str(begun[0]) == "WARNING: orders: buffer-available-bytes: 1 (threshold 10): help the brokers"
    assert shown(another) == [(LOSING.metric, False)]
    assert shown(over) == [(FULL.metric, True)]
    assert shown(at_last) == [(LOSING.metric, True)]


def test_reports_come_in_any_order_and_more_than_once() -> None:
    at_once, again = raised([report(2), report(0, FULL), report(1, FULL)], [report(1, FULL)])
    assert shown(at_once) == [(FULL.metric, False), (FULL.metric, True)]
    assert again == []


def test_a_finding_that_gets_worse_raises_another_alert() -> None:
    worse = HealthFinding(FULL.metric, 0.0, 10.0, Severity.CRITICAL, "now")
    _, found = raised([report(0, FULL)], [report(1, worse)])
    assert [alert.severity for alert in found] == [Severity.CRITICAL]


def test_silence_raises_one_alert_and_its_end_another() -> None:
    known, none = alerts({}, [report(0)], 3000)
    assert none == []
    known, silent = alerts(known, [], 3001)
    assert shown(silent) == [(SILENCE, False)]
    assert silent[0].severity is Severity.CRITICAL
    assert silent[0].what == "no report for 3 s, due every 1 s"
    known, still = alerts(known, [], 60_000)
    assert still == []
    _, over = alerts(known, [report(60)], 60_000)
    assert shown(over) == [(SILENCE, True)]


def test_a_client_silent_for_an_hour_is_forgotten() -> None:
    known, _ = alerts({}, [report(0, FULL)], 0)
    known, silent = alerts(known, [], FORGOTTEN_AFTER_MS)
    assert shown(silent) == [(SILENCE, False)]
    known, over = alerts(known, [], FORGOTTEN_AFTER_MS + 1)
    assert (known, shown(over)) == ({}, [(SILENCE, True)])
    assert over[0].what == "forgotten after an hour without a report"


def test_a_producer_that_was_closed_is_not_missed() -> None:
    known, closed = alerts({}, [report(0, FULL), report(1, FULL, last=True)], 0)
    assert (known, shown(closed)) == ({}, [(FULL.metric, False)])
    known, closed = alerts({}, [report(0, FULL), report(1, last=True)], 0)
    assert shown(closed) == [(FULL.metric, False), (FULL.metric, True)]
    assert closed[-1].what == "the producer was closed"
    assert alerts(known, [], 10**9) == ({}, [])


def test_producers_of_one_name_are_distinguished() -> None:
    (found,) = raised([report(0, FULL), report(0, instance="another")])
    assert shown(found) == [(FULL.metric, False)]
