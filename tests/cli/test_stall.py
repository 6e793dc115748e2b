from __future__ import annotations

from typing import Any

import pytest

from aioproducer import Explanation, Obstacle, Reason
from aioproducer.cli import stall
from aioproducer.cli.stall import QUIET_FOR, StallWatch


class Producer:
    """Explains each partition by the reason it was given."""

    def __init__(self) -> None:
        self.reasons: list[Reason] = []

    def explain(self, topic: str, partition: int) -> Explanation:
        reason = self.reasons[partition] if partition < len(self.reasons) else Reason.NOTHING
        return Explanation(topic, partition, (Obstacle(reason, f"because of {reason.value}"),))


@pytest.fixture
def producer() -> Any:
    return Producer()


def test_nothing_is_said_while_records_get_through(producer: Any) -> None:
    watch = StallWatch(producer, "t")
    producer.reasons = [Reason.IN_FLIGHT]
    assert [watch.look(now * 0.2, now, 1) for now in range(1000)] == [None] * 1000


def test_each_reason_is_reported_once(producer: Any) -> None:
    watch = StallWatch(producer, "t")
    producer.reasons = [Reason.NO_LEADER, Reason.NOTHING, Reason.NO_LEADER, Reason.NO_LEADER]
    assert watch.look(0, 7, 4) is None
    assert watch.look(QUIET_FOR, 7, 4) == (
        "Nothing got through for 5 s.\nt-0: because of no leader; 2 more partitions alike"
    )
    assert watch.look(QUIET_FOR + 1, 7, 4) is None
    producer.reasons[1] = Reason.BACKOFF
    assert watch.look(QUIET_FOR + 2, 7, 4) == "Nothing got through for 7 s.\nt-1: because of retry back-off"
    producer.reasons = [Reason.BACKOFF, Reason.NO_LEADER]  # they take turns
    assert watch.look(QUIET_FOR + 3, 7, 4) is None
    assert watch.look(QUIET_FOR + 4, 8, 4) is None  # one gets through
    assert watch.look(3 * QUIET_FOR, 8, 4) is not None


def test_an_idle_producer_has_nothing_to_say(producer: Any) -> None:
    watch = StallWatch(producer, "t")
    assert watch.look(0, 0, 3) is None
    assert watch.look(QUIET_FOR, 0, 3) is None


def test_so_many_partitions_are_looked_at(producer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall, "LOOKED_AT", 2)
    watch = StallWatch(producer, "t")
    producer.reasons = [Reason.NOTHING, Reason.NOTHING, Reason.WINDOW]
    watch.look(0, 0, 3)
    assert watch.look(QUIET_FOR, 0, 3) is None
