"""Short runs of ``python -m tests.broker.fuzz``, and mistakes that they find."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest

from aioproducer.broker.coordinators.group_coordinator import GroupCoordinator
from aioproducer.broker.handlers import produce
from aioproducer.broker.log.log_validator import scan

from . import fuzzing_client, guided
from .__main__ import BEGIN, END, PAGE, of_fuzzed, with_fuzzed
from .byte_random import ByteRandom, EndOfBytes
from .fuzzing import BROKERS, LONGEST_TURN, Finding, Fuzzed, converse, fuzz, fuzz_broker
from .fuzzing_client import FuzzingClient, WrongAnswer
from .guided import CORPUS
from .learned_values import LearnedValues
from .random_batches import RandomBatches
from .random_requests import RandomRequests

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


@pytest.mark.parametrize("part", range(4))
def test_the_corpus_finds_nothing(part: int) -> None:
    inputs = sorted(CORPUS.iterdir())[part::4]
    found = Fuzzed()
    for file in inputs:
        converse(file.read_bytes(), file.name, found, hurry=0.01)
    assert found.findings == []
    assert len(inputs) > 5
    assert found.answers > len(inputs)


def test_the_bytes_of_an_input_make_its_requests() -> None:
    """The same bytes make the same requests; the last one that they begin is not sent."""
    made: list[list[bytes]] = [[], []]
    for frames in made:
        random = ByteRandom(b"\x01\x02" * 400)
        learned = LearnedValues(random, hidden=[])
        requests = RandomRequests(random, learned, RandomBatches(random, learned))
        with pytest.raises(EndOfBytes):
            frames.extend(iter(requests.frame, None))
    assert made[0] == made[1] != []


def test_an_input_names_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FuzzingClient, "send", lambda client: client._random.random() and client.is_served())
    monkeypatch.setattr(FuzzingClient, "is_served", Mock(side_effect=WrongAnswer("planted")))
    found = Fuzzed()
    converse(b"\0" + b"\xff" * 3, "an input", found)
    assert [str(finding) for finding in found.findings] == [
        f"{MEMORY}, an input, request 0: WrongAnswer: planted\n    "
    ]


def found_with(seed: int) -> list[Finding]:
    found = Fuzzed()
    fuzz_broker(MEMORY, seed, found, requests=400)
    return found.findings


def test_an_honest_request_without_an_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing_client, "PATIENCE", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = FuzzingClient(silent.getsockname()[1], Random(1))
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


def test_the_page_has_the_figures_of_guided_requests() -> None:
    page = PAGE.read_text()
    text = guided.of_guided(Fuzzed(), 7, 60.0, 90)
    assert "7 inputs" in text
    assert guided.with_guided(guided.with_guided(page, "x\n"), text) == guided.with_guided(page, text)
    written = page.partition(guided.BEGIN)[2].partition(guided.END)[0]
    assert guided.with_guided(page, written) == page
    assert written.count("**0**") == text.count("**0**") == 1
