"""A small fleet through its events: that things happen as they are said to, not how fast."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.fleet.events import EVENTS
from benchmarks.fleet.point import START, Point, Size, run

SIZE = Size(brokers=10, partitions=40, cluster=100, topic=10, rate=20)


def through(*names: str, size: Size = SIZE) -> Point:
    found = run(size, tuple(event for event in EVENTS if event.name in names))
    assert [one.event for one in found.happenings] == [START, *names]
    assert all(0 < one.cpu < 60 for one in found.happenings)
    return found


def test_a_load_alone_a_refresh_and_leaders_that_move() -> None:
    found = through("steady", "refresh", "storm")
    start, steady, refresh, storm = found.happenings
    assert (start.records, start.failed, start.requests["METADATA"]) == (40, 0, 1)
    assert start.connections == 11, "the bootstrap server's, and one to each broker"
    assert (steady.failed, steady.requests.get("METADATA", 0), steady.connections) == (0, 0, 0)
    assert 190 <= steady.records <= 200
    assert 1.0 <= steady.p50 <= steady.p99 <= steady.most
    assert refresh.requests["METADATA"] == 1
    assert refresh.metadata_mb > 40 * 42 / 1e6
    assert storm.failed == 0
    assert storm.requests["METADATA"] >= 1
    assert storm.batches <= storm.records + 10, "each record is appended once"


def test_a_restart_of_all_brokers_and_the_end_of_one() -> None:
    often = replace(SIZE, rate=200)  # a broker that is back gets records within the second that it is waited for
    found = through("steady", "rolling", "death", size=often)
    rolling, death = found.of("rolling"), found.of("death")
    assert (rolling.failed, rolling.connections) == (0, 10)
    assert rolling.requests["METADATA"] >= 10, "leaders leave and come back with each broker"
    assert death.failed == 0
    assert death.most > 5000, "a request that is never answered has request.timeout.ms"


def test_topics_come_and_go() -> None:
    found = through("steady", "creation", "deletion")
    creation, deletion = found.of("creation"), found.of("deletion")
    assert creation.failed == 0
    assert 1 <= creation.requests["METADATA"] <= 3
    assert 0 < deletion.failed < 60, "what was sent to the topic in its last second"
    topic = 10 * 42 / 1e6
    assert creation.metadata_mb < creation.requests["METADATA"] * 2.5 * topic, "the others' metadata is not requested"
    assert deletion.metadata_mb < deletion.requests["METADATA"] * 2.5 * topic
