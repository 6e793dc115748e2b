"""Workers, and those who ask them."""

from __future__ import annotations

import json

import pytest

from benchmarks.clients import CLIENTS
from benchmarks.comparison.worker import WorkerFailed, describe, main, measure
from benchmarks.works.curve_works import CURVE_WORKS
from benchmarks.works.line_works import LINE_WORKS
from benchmarks.works.run import Run
from benchmarks.works.works import WORKS


async def test_clients_describe_themselves() -> None:
    ours = await describe("aioproducer")
    assert ours.works == [*WORKS, *CURVE_WORKS, *LINE_WORKS]
    assert ours.share == 1
    assert ours.about.endswith(("compiled", "interpreted"))
    assert ours.idempotent
    assert not ours.missing


def test_a_client_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(CLIENTS, "pigeon", "pigeon_post:Pigeon")
    main(["describe", "pigeon"])
    assert json.loads(capsys.readouterr().out)["missing"] == "No module named 'benchmarks.clients.pigeon_post'"


async def test_a_workers_last_words_are_the_reason() -> None:
    run = Run("aioproducer", "stream-100", "127.0.0.1:1", "topic", "payload", 1, 1, loop="no_such_loop")
    with pytest.raises(WorkerFailed, match="No module named 'no_such_loop'"):
        await measure(run, timeout=30)


async def test_a_worker_that_does_not_answer_is_ended() -> None:
    run = Run("aioproducer", "stream-100", "127.0.0.1:1", "topic", "payload", 1, 1, loop="asyncio")
    with pytest.raises(WorkerFailed, match="no answer within"):
        await measure(run, timeout=0.1)
