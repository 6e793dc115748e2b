from __future__ import annotations

from aioproducer.broker.security.failed_logins import INTERVAL, LINES, FailedLogins


def test_a_few_lines_at_a_time_and_the_others_are_counted() -> None:
    logins = FailedLogins("SASL")
    for number in range(LINES):
        (line,) = logins.failed("alice", "10.0.0.1", "no", 100.0 + number / 10)
        assert line == "a login as 'alice' from 10.0.0.1 on listener SASL failed: no"
    for _ in range(3):
        assert logins.failed("alice", "10.0.0.1", "no", 101.0) == []
    assert logins.failed("bob", "10.0.0.2", "no", 101.0) == []
    first, second = logins.failed("carol", "10.0.0.3", "no", 100.0 + INTERVAL)
    assert first == (
        "4 more logins on listener SASL failed in 10 s: as 'alice' from 10.0.0.1 (3), as 'bob' from 10.0.0.2 (1)"
    )
    assert second == "a login as 'carol' from 10.0.0.3 on listener SASL failed: no"
    assert logins.rest(120.0) == []


def test_counted_failures_are_logged_at_the_end() -> None:
    logins = FailedLogins("SASL")
    for _ in range(LINES + 2):
        logins.failed("", "10.0.0.1", "no", 100.0)
    assert logins.rest(103.0) == ["2 more logins on listener SASL failed in 3 s: from 10.0.0.1 (2)"]
    assert logins.rest(103.0) == []


def test_any_number_of_names_takes_little_memory_and_is_counted() -> None:
    logins = FailedLogins("SASL")
    for number in range(100_000):
        logins.failed(f"{number} {bytes(200)!r}", "10.0.0.1", "no", 100.0)
    assert len(logins._more) <= 1001
    assert max(len(user) for user, _ in logins._more) == 100
    (line,) = logins.rest(109.0)
    assert line.startswith("99990 more logins on listener SASL failed in 9 s: ")
    assert line.endswith("others (99985)")


def test_a_name_breaks_no_line() -> None:
    (line,) = FailedLogins("SASL").failed("a\nerror: b", "10.0.0.1", "no", 100.0)
    assert "\n" not in line
