from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.scheduling.pipeline import PATIENCE, SHORTEST, SOON, Line, Pipeline
from benchmarks.pipelining import pipeline_run
from benchmarks.pipelining.pipeline_run import AUTO, PACED
from tests.producer.simulations.standing_loop import Loop, make_batch, make_ids
from tests.support.producing import make_producer
from tests.support.scripted_broker import ScriptedCluster

LINGER = 0.1
BATCH_SIZE = 16384
NODE = 1


class Scene:
    """A partition, and the line to its node, on which requests have left at times and were answered."""

    def __init__(
        self, *, round_trip: float = 0.15, max_in_flight: int = 50, window: int = 5, linger: float = LINGER
    ) -> None:
        self.pipeline = Pipeline(linger, max_in_flight, BATCH_SIZE)
        ids = make_ids()
        ids.current = ProducerIdAndEpoch(7, 0)
        self.sequences = PartitionSequences(ids, window)
        self.queue = PartitionQueue("t", 0, self.sequences)
        self.queue.leader = NODE
        self.round_trip = round_trip

    def sent(self, *times: float, records: int = 1, by_this_partition: bool = True) -> Scene:
        for when in times:
            self.pipeline.sent(NODE, records, 100 * records, when)
            self.pipeline.answered(NODE, self.round_trip)
            if by_this_partition:
                batch = make_batch(Loop(), records=1)
                self.sequences.stamp(batch, 0.0, 0)
                batch.sent_at = when
        return self

    def wait(self, created: float) -> float:
        """Milliseconds from a batch's first record until it leaves, full or not."""
        return (self.pipeline.close_at(self.queue, created) - created) * 1000


def test_nothing_waits_before_the_line_is_known() -> None:
    assert Scene().wait(10.0) == 0


def test_a_partition_sends_a_batch_per_round_trip_and_place_of_its_window() -> None:
    scene = Scene(window=5).sent(9.9, 10.0)
    assert scene.wait(10.01) == pytest.approx(20), "150 ms / 5 after the one before"
    scene.sequences.window = 10
    assert scene.wait(10.01) == pytest.approx(5)


def test_a_single_record_does_not_wait() -> None:
    assert Scene(window=5).sent(9.9, 10.0).wait(10.031) == 0


def test_a_connection_sends_a_request_per_round_trip_and_place() -> None:
    scene = Scene(max_in_flight=3, window=50).sent(9.9, 10.0, by_this_partition=False)
    assert scene.wait(10.01) == pytest.approx(40), "150 ms / 3 after the last, whoever's it was"


def test_with_places_to_spare_a_batch_is_patient_while_records_come() -> None:
    scene = Scene(max_in_flight=100, window=100).sent(9.999, 10.0, records=2)
    assert scene.wait(10.002) == pytest.approx(150 / PATIENCE - 2, abs=1)


def test_and_is_not_when_none_are_to_be_expected() -> None:
    scene = Scene(max_in_flight=100, window=100).sent(9.95, 10.0)
    assert scene.wait(10.002) == 0, "one in 50 ms; the line had a place after 1.5"


def test_patience_is_a_millisecond_on_the_shortest_line() -> None:
    scene = Scene(round_trip=0.0001, window=50).sent(9.9999, 10.0)
    assert scene.wait(10.0) == pytest.approx(SHORTEST * 1000)


def test_a_batch_that_is_soon_full_is_waited_for() -> None:
    scene = Scene(round_trip=0.0001, window=50).sent(9.999, 10.0, records=100)
    assert scene.wait(10.0005) == pytest.approx(2 * SOON * 1000, abs=0.6), "10 MB/s: 16 KiB in 1.6 ms"
    scene = Scene(round_trip=0.0001, window=50).sent(9.999, 10.0, records=80)
    assert scene.wait(10.0005) == pytest.approx(0.5), "8 MB/s: 16 KiB in 2.05 ms"


def test_a_batch_that_is_soon_full_is_not_waited_for_where_records_are_awaited() -> None:
    scene = Scene(round_trip=0.0001, window=50).sent(9.999, 10.0, records=100)
    scene.pipeline.awaited(NODE, 9.95)
    assert scene.wait(10.0005) == pytest.approx(0.5)
    scene.pipeline.awaited(NODE + 1, 9.95)  # nothing is known of this line
    assert scene.wait(10.0504) > 3


def test_a_batch_that_stands_behind_full_ones_has_its_turn_after_them() -> None:
    scene = Scene(window=5).sent(9.9, 10.0)
    scene.queue.batches.append(make_batch(Loop(), records=1))
    assert scene.wait(10.02) == pytest.approx(30)


def test_linger_is_the_longest_wait() -> None:
    assert Scene(window=1, linger=0.02).sent(9.9, 10.0).wait(10.0) == pytest.approx(20)
    assert Scene(window=1, linger=0.0).sent(9.9, 10.0).wait(10.0) == 0


def test_partitions_of_a_node_have_one_turn() -> None:
    scene = Scene(max_in_flight=5).sent(9.9, 10.0003, by_this_partition=False)
    created = [10.001, 10.0107, 10.0249]
    assert {scene.pipeline.close_at(scene.queue, when) for when in created} == {10.03}


def test_without_idempotence_there_is_no_window_to_keep_to() -> None:
    scene = Scene(max_in_flight=5).sent(9.9, 10.0, by_this_partition=False)
    scene.queue.sequences = None
    assert scene.wait(10.01) == pytest.approx(20)


@given(
    created=st.floats(0, 100),
    sent=st.lists(st.tuples(st.floats(0, 100), st.integers(1, 1000), st.floats(0, 60)), max_size=5),
    linger=st.sampled_from([0.0, 0.005, 0.1, 5.0]),
    window=st.integers(1, 100),
    max_in_flight=st.integers(1, 100),
    ahead=st.booleans(),
)
def test_no_batch_ever_waits_longer_than_linger(
    created: float, sent: list[tuple[float, int, float]], linger: float, window: int, max_in_flight: int, ahead: bool
) -> None:
    scene = Scene(linger=linger, window=window, max_in_flight=max_in_flight)
    for when, records, answered in sorted(sent):
        scene.round_trip = answered
        scene.sent(when, records=records)
    if ahead:
        scene.queue.batches.append(make_batch(Loop(), records=1))
    assert created <= scene.pipeline.close_at(scene.queue, created) <= created + linger


def test_averages_begin_with_the_first_and_follow_the_newest() -> None:
    line = Line()
    line.answered(0.8)
    assert line.round_trip == 0.8
    line.answered(1.6)
    assert line.round_trip == pytest.approx(0.9)
    assert line.expected(10.0) == 0, "one request tells nothing of how they come"
    for when in (1.0, 3.0, 5.0):
        line.sent(4, 400, when)
    assert line.expected(10.0) == pytest.approx(20)


# The whole producer, in virtual time: what is measured is the rule alone, and the same on every machine.


LINES = [
    pipeline_run.Line(PACED, 150, 5),
    pipeline_run.Line(PACED, 150, 20),
    pipeline_run.Line(PACED, 50, 5),
    pipeline_run.Line(PACED, 20, 20),
    pipeline_run.Line(PACED, 1, 50),
]


def outcome(line: pipeline_run.Line, setting: str) -> tuple[float, float, float]:
    """p50 and p99 in milliseconds, and requests a second."""
    figures = pipeline_run.simulate(line, setting, 1, 1.5)
    assert figures.p50_ms is not None
    assert figures.p99_ms is not None
    return figures.p50_ms, figures.p99_ms, figures.requests_per_s


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.round_trip_ms}-{line.window}")
def test_auto_is_as_good_as_the_best_linger_for_each_line(line: pipeline_run.Line) -> None:
    fixed = [outcome(line, linger) for linger in ("0", "5", "20")]
    p50, p99, requests = outcome(line, AUTO)
    assert p50 <= 1.05 * min(one[0] for one in fixed) + 1
    assert p99 <= 1.05 * min(one[1] for one in fixed) + 1.5
    assert requests <= 1.05 * fixed[0][2]


def test_auto_lets_partitions_share_requests() -> None:
    """With few requests in flight and partitions that go alone, some wait for all the others."""
    line = pipeline_run.Line(PACED, 150, 5, partitions=6)
    fixed, auto = outcome(line, "20"), outcome(line, AUTO)
    assert auto[0] < fixed[0]
    assert auto[1] < 0.8 * fixed[1]
    assert auto[2] <= 1.1 * fixed[2]


async def test_the_chosen_linger_is_measured() -> None:
    async with (
        ScriptedCluster() as cluster,
        make_producer(cluster.bootstrap_servers, pipeline="auto", linger_ms=100) as producer,
    ):
        cluster.create_topic("t", 1)
        assert producer.metrics()["batch-linger-avg"] != producer.metrics()["batch-linger-avg"], "NaN: no batch yet"
        await producer.send("t", b"first")
        await producer.send("t", b"second")
        assert 0 <= producer.metrics()["batch-linger-max"] <= 100


async def test_a_fixed_pipeline_measures_nothing() -> None:
    async with ScriptedCluster() as cluster, make_producer(cluster.bootstrap_servers, linger_ms=1) as producer:
        cluster.create_topic("t", 1)
        await producer.send("t", b"first")
        assert producer.metrics()["batch-linger-max"] != producer.metrics()["batch-linger-max"]
