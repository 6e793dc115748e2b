"""buffer.memory bounds what is really taken, however small the records (``python -m benchmarks memory``: 32 MiB)."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.producer.batches.producer_batch import BATCH_COST
from aioproducer.producer.parking.parked_record import PARKED_COST
from benchmarks.stress.memory import MIB, SENDERS, batch_cost, hold, parked_cost

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("sender", SENDERS)
async def test_memory_stays_bounded_when_no_broker_answers(sender: str, caplog: pytest.LogCaptureFixture) -> None:
    held = await hold(SENDERS[sender], buffer_memory=4 * MIB, senders=200, size=10, parked_memory=MIB)
    assert held.peak <= held.allowed
    assert held.records >= (200 if sender == "await" else 100_000)
    assert held.missing == 0


@pytest.mark.parametrize(
    "config", [{"batch_size": 0}, {"compression_type": "gzip"}, {"batch_size": 200, "linger_ms": 0}]
)
async def test_memory_stays_bounded_for_batches_of_every_config(
    config: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    held = await hold(SENDERS["enqueue"], buffer_memory=4 * MIB, senders=200, size=10, **config)
    assert held.peak <= held.allowed
    assert held.missing == 0


def test_bookkeeping_is_charged_at_what_it_takes() -> None:
    assert BATCH_COST / 2 < batch_cost() <= BATCH_COST
    assert PARKED_COST / 2 < parked_cost() <= PARKED_COST
