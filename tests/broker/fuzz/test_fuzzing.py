"""Short runs of ``python -m tests.broker.fuzz``, and mistakes that they find."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer.broker.coordinators.group_coordinator import GroupCoordinator
from aioproducer.broker.handlers import produce
from aioproducer.broker.log.log_validator import scan

from . import fuzzing_client
from .__main__ import BEGIN, END, PAGE, of_fuzzed, with_fuzzed
from .fuzzing import BROKERS, LONGEST_TURN, Finding, Fuzzed, fuzz, fuzz_broker
from .fuzzing_client import FuzzingClient, WrongAnswer

pytestmark = pytest.mark.once

MEMORY = next(iter(BROKERS))


@pytest.mark.parametrize("broker", BROKERS)
def test_random_requests_find_nothing(broker: str) -> None:
    found = Fuzzed()
    fuzz_broker(broker, 7, found, requests=400)
    assert found.findings == []
    assert found.requests == 400
    assert found.answers > 100
    assert found.accepted > 20
    assert found.longest_turn > 0


def test_brokers_take_turns_until_the_time_is_over() -> None:
    found = Fuzzed()
    seen: list[int] = []
    fuzz(0.0, 7, found, lambda found: seen.append(found.requests))
    assert seen == [0]


def test_an_exception_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(coordinator: GroupCoordinator) -> list[str]:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(GroupCoordinator, "group_ids", fails)
    findings = found_with(seed=1)
    assert findings
    assert all("ZeroDivisionError: planted" in finding.what for finding in findings)
    assert str(findings[0]).startswith(f"{MEMORY}, seed 1, request {findings[0].number}: ")
    assert findings[0].frames[-1].hex() in str(findings[0])


def test_a_long_turn_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def takes_long(coordinator: GroupCoordinator) -> list[str]:
        until = time.thread_time() + 1.5 * LONGEST_TURN
        while time.thread_time() < until:
            pass
        return []

    monkeypatch.setattr(GroupCoordinator, "group_ids", takes_long)
    findings = found_with(seed=1)
    assert findings
    assert all("the loop was held for" in finding.what for finding in findings)


def test_a_batch_that_cannot_be_read_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "scan", lambda *batch: scan(*batch)._replace(problem=""))
    findings = found_with(seed=1)
    assert findings
    assert all("batch" in finding.what for finding in findings)


def found_with(seed: int) -> list[Finding]:
    found = Fuzzed()
    fuzz_broker(MEMORY, seed, found, requests=400)
    return found.findings


def test_an_honest_request_without_an_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing_client, "PATIENCE", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = FuzzingClient(silent.getsockname()[1], 1)
        for check in list[Callable[[], Any]]([client.is_served, client.send_batch]):
            with pytest.raises(WrongAnswer, match="got no answer"):
                check()


def test_the_page_has_the_figures() -> None:
    page = PAGE.read_text()
    text = of_fuzzed(Fuzzed(), 60.0, 1 << 20)
    assert with_fuzzed(with_fuzzed(page, "x\n"), text) == with_fuzzed(page, text)
    written = page.partition(BEGIN)[2].partition(END)[0]
    assert with_fuzzed(page, written) == page
    assert written.count("**0**") == text.count("**0**") == 1
