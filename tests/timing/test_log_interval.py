from __future__ import annotations

from aioproducer.timing.log_interval import INTERVAL, LogInterval


def test_each_kind_has_its_own_interval_from_its_last_line_on() -> None:
    interval = LogInterval()
    assert interval.next("outage") == 0.0
    interval.logged("outage", 5.0)
    interval.logged("outage", 7.0)
    assert interval.next("outage") == 7.0 + INTERVAL
    assert interval.next("another") == 0.0
