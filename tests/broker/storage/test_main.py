"""Small versions of ``python -m tests.broker.storage``; and mistakes that they find."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from aioproducer.broker.storage.segments.log_recovery import LogRecovery
from aioproducer.broker.storage.segments.stored_batches import StoredBatches
from tests.broker.storage.__main__ import BEGIN, END, PAGE, crashes, of_corruptions, of_crashes, of_kills, with_figures
from tests.broker.storage.corruptions import Corruptions, corruptions
from tests.broker.storage.kills import Kills, kills

pytestmark = pytest.mark.once


async def test_a_byte_that_changes_loses_no_record_without_an_error_that_names_it(tmp_path: Path) -> None:
    found = await corruptions(tmp_path, 12, seed=3)
    assert found.silent == []
    assert found.outcomes.total() == found.files.total() == 12
    assert found.records > 700


async def test_unreported_damage_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogRecovery, "_lost", lambda self, beyond, where: None)
    monkeypatch.setattr(StoredBatches, "_verify", lambda self, batch, path, position: None)
    found = await corruptions(tmp_path, 8, seed=3)
    assert found.silent != []


def test_kills_lose_nothing(tmp_path: Path) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    found = kills(confluent, tmp_path, 3)
    assert found.problems == []
    assert found.acknowledged == found.sent > 100
    assert found.committed > 0


def test_crashes_are_counted() -> None:
    assert crashes(20) > 0


def test_the_page_has_the_figures() -> None:
    corrupted = Corruptions(200, 760, Counter({"nothing is lost": 200}), Counter({"a log": 200}), 5)
    text = "\n".join([of_corruptions(corrupted), of_kills(Kills(100, 10, 10)), of_crashes(2000, 12345)])
    page = PAGE.read_text()
    assert with_figures(with_figures(page, "x\n"), text) == with_figures(page, text)
    written = page.partition(BEGIN)[2].partition(END)[0]
    assert with_figures(page, written) == page
    assert written.count("**0**") == text.count("**0**") == 3
