from __future__ import annotations

import pytest

from aioproducer.producer.diagnosis.wording import counted, duration


@pytest.mark.parametrize(("number", "said"), [(0, "0 records"), (1, "1 record"), (2, "2 records")])
def test_a_count(number: int, said: str) -> None:
    assert counted(number, "record") == said


@pytest.mark.parametrize(("number", "said"), [(1, "1 batch"), (3, "3 batches")])
def test_a_count_with_a_plural_of_its_own(number: int, said: str) -> None:
    assert counted(number, "batch", "batches") == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(-1, "0 ms"), (0.42, "420 ms"), (3.44, "3.4 s"), (12.3, "12 s"), (120, "120 s")]
)
def test_a_duration(seconds: float, said: str) -> None:
    assert duration(seconds) == said
