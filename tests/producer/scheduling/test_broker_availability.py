from __future__ import annotations

from aioproducer.producer.scheduling.broker_availability import NodeLatencies


def test_a_node_is_unavailable_when_it_took_nothing_for_longer_than_the_time_out() -> None:
    latencies = NodeLatencies(0.1)
    latencies.looked_at(1, 10.0, can_send=False)
    assert latencies.unavailable(10.1) == set()
    assert latencies.unavailable(10.2) == {1}


def test_it_counts_from_when_something_was_first_ready() -> None:
    latencies = NodeLatencies(0.1)
    for now in (10.0, 10.05, 10.15):
        latencies.looked_at(1, now, can_send=False)
    assert latencies.unavailable(10.16) == {1}


def test_taking_something_makes_it_available_again() -> None:
    latencies = NodeLatencies(0.1)
    latencies.looked_at(1, 10.0, can_send=False)
    latencies.looked_at(2, 10.0, can_send=False)
    latencies.looked_at(1, 11.0, can_send=True)
    assert latencies.unavailable(11.0) == {2}
    latencies.looked_at(1, 12.0, can_send=False)
    assert latencies.unavailable(12.0) == {2}


def test_time_without_anything_to_send_does_not_count() -> None:
    latencies = NodeLatencies(0.1)
    latencies.looked_at(1, 10.0, can_send=True)
    latencies.looked_at(1, 500.0, can_send=False)
    assert latencies.unavailable(500.0) == set()
