from __future__ import annotations

import logging

import pytest

from aioproducer.cli import terminal
from aioproducer.cli.terminal import Terminal

Capture = pytest.CaptureFixture[str]


def test_results_and_what_is_going_on_go_different_ways(capsys: Capture) -> None:
    made = Terminal()
    made.say("result [bold] 1")
    made.facts([("name", "value")])
    made.note("note")
    made.warn("warning")
    made.fail("x" * 300)
    out, err = capsys.readouterr()
    assert out == "result [bold] 1\nname          value\n"
    assert err == f"note\nwarning\n{'x' * 300}\n"


def test_quiet_says_only_what_is_wrong(capsys: Capture) -> None:
    made = Terminal(quiet=True)
    made.say("result")
    made.note("note")
    made.warn("warning")
    made.fail("failure")
    with made.meter("Sending", 10) as meter:
        meter.update(5, "half")
    assert capsys.readouterr() == ("", "warning\nfailure\n")


def test_tables_are_tab_separated_in_a_pipe(capsys: Capture) -> None:
    Terminal().table(("A", "B"), [("a", 1), ("longer", 2)])
    assert capsys.readouterr().out == "a\t1\nlonger\t2\n"


def test_progress_is_a_line_now_and_then_in_a_pipe(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Terminal()
    with made.meter("Sending x", 10) as meter:
        meter.update(5, "too early")
    monkeypatch.setattr(terminal, "PLAIN_PROGRESS_EVERY", 0.0)
    for total in (10, None, 0):
        with made.meter("Sending x", total) as meter:
            meter.update(5, "5 records")
    assert capsys.readouterr() == ("", "Sending x: 50 % 5 records\nSending x: 5 records\nSending x: 5 records\n")


def test_warnings_of_the_package_are_shown(capsys: Capture) -> None:
    logger = logging.getLogger("aioproducer.net.link_task")
    with Terminal().logging():
        logger.info("not this")
        logger.warning("%s cannot be reached", "x:1")
        logging.getLogger("aioproducer.producer.diagnosis.failure_log").error("in the report already")
    assert capsys.readouterr() == ("", "warning: x:1 cannot be reached\n")
    assert logging.getLogger("aioproducer").handlers == []
    assert logging.getLogger("aioproducer").propagate
