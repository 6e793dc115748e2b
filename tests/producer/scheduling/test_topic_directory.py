from __future__ import annotations

from itertools import pairwise
from random import Random
from uuid import UUID

import pytest

from aioproducer.net.addresses import Address
from aioproducer.net.metadata.cluster import NO_TOPIC_ID, Cluster, Node, Partitions, TopicMetadata
from aioproducer.producer.accumulator.built_in_partitioner import Partitioning
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import TopicQueues
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.scheduling.readiness import NO_LEADER, ReadySet
from aioproducer.producer.scheduling.topic_directory import STEP, TopicDirectory
from aioproducer.producer.windows.in_flight_windows import InFlightWindows
from aioproducer.types import PartitionInfo
from tests.producer.simulations.standing_loop import Loop, make_batch, make_ids, sequences_of
from tests.support.exhaust import exhaust

FIRST, SECOND = UUID(int=1), UUID(int=2)


def cluster(
    *leaders: int, topic_id: UUID = FIRST, epoch: int = 0, racks: dict[int, str | None] | None = None
) -> Cluster:
    """One topic ``t`` with a partition per leader."""
    partitions = Partitions.of(PartitionInfo("t", n, leader, epoch, (0,), (0,), ()) for n, leader in enumerate(leaders))
    nodes = {node: Node(node, Address("b", 1), rack) for node, rack in (racks or {}).items()}
    return Cluster(nodes, topics={"t": TopicMetadata("t", topic_id, partitions)})


class Scene:
    def __init__(self, *, idempotent: bool = True, rack: str | None = None) -> None:
        self.topics: dict[str, TopicQueues] = {}
        self.ready = ReadySet()
        self.ids = make_ids() if idempotent else None
        self.directory = TopicDirectory(
            self.topics,
            Partitioning(Random(0)),
            self.ready,
            InFlightWindows(),
            self.ids,
            rack=rack,
        )

    def leaders(self) -> list[int]:
        return [queue.leader for queue in self.topics["t"].queues]


def test_topics_and_partitions_come() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1), 0.0))
    first = scene.topics["t"].queues[0]
    exhaust(scene.directory.following(cluster(1, 2, NO_LEADER), 0.0))
    assert scene.leaders() == [1, 2, NO_LEADER]
    assert scene.topics["t"].queues[0] is first
    assert [queue.partition for queue in scene.topics["t"].queues] == [0, 1, 2]


def test_without_idempotence_there_are_no_sequences() -> None:
    for idempotent in (True, False):
        scene = Scene(idempotent=idempotent)
        exhaust(scene.directory.following(cluster(1), 0.0))
        assert (scene.topics["t"].queues[0].sequences is not None) is idempotent


def test_a_topic_that_is_missing_stays_as_it_was() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1, 2), 0.0))
    queues = list(scene.topics["t"].queues)
    exhaust(scene.directory.following(Cluster(), 0.0))
    assert scene.topics["t"].queues == queues
    assert scene.leaders() == [1, 2]


def test_a_waiting_partition_follows_its_leader_and_is_looked_at_at_once() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1, 1), 0.0))
    waiting, idle = scene.topics["t"].queues
    waiting.batches.append(make_batch(Loop(), records=1))
    exhaust(scene.directory.following(cluster(2, 2, epoch=1), 0.0))
    assert list(scene.ready.of(2)) == [waiting]
    exhaust(scene.directory.following(cluster(3, 3, epoch=2), 0.0))
    assert list(scene.ready.of(2)) == []
    assert list(scene.ready.of(3)) == [waiting]
    assert not idle.ready


def test_a_new_epoch_of_the_same_leader_is_news_too() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1), 0.0))
    queue = scene.topics["t"].queues[0]
    queue.batches.append(make_batch(Loop(), records=1))
    exhaust(scene.directory.following(cluster(1), 0.0))
    assert not queue.ready
    exhaust(scene.directory.following(cluster(1, epoch=1), 0.0))
    assert queue.ready
    assert queue.leader_epoch == 1


def test_a_topic_created_anew_knows_no_producer_and_has_its_own_partitions() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1, 1, 1), 0.0))
    topic = scene.topics["t"]
    topic.partitioner.current = topic.queues[2]
    gone = topic.queues[2]
    scene.ready.add(gone)
    for queue in topic.queues:
        sequences_of(queue).known_id = 7
    exhaust(scene.directory.following(cluster(1, 1, topic_id=SECOND), 0.0))
    assert len(topic.queues) == 2
    assert topic.partitioner.current is None
    assert [sequences_of(queue).known_id for queue in topic.queues] == [-1, -1]
    assert gone.leader == NO_LEADER
    assert list(scene.ready.of(NO_LEADER)) == [gone]
    assert list(scene.ready.of(1)) == []


def test_fewer_partitions_are_another_topic_even_where_topics_have_no_ids() -> None:
    scene = Scene()
    zero = UUID(int=0)
    exhaust(scene.directory.following(cluster(1, 1, topic_id=zero), 0.0))
    sequences_of(scene.topics["t"].queues[0]).known_id = 7
    exhaust(scene.directory.following(cluster(1, topic_id=zero), 0.0))
    assert len(scene.topics["t"].queues) == 1
    assert sequences_of(scene.topics["t"].queues[0]).known_id == -1


@pytest.mark.parametrize("proven", [False, True])
def test_batches_for_a_topic_created_anew_get_new_stamps_if_its_id_proves_that(proven: bool) -> None:
    scene = Scene()
    zero = UUID(int=0)
    exhaust(scene.directory.following(cluster(1, 1, topic_id=FIRST if proven else zero), 0.0))
    assert scene.ids is not None
    scene.ids.given(ProducerIdAndEpoch(7, 0))
    first, second = scene.topics["t"].queues
    waits, later = (make_batch(Loop(), records=1) for _ in range(2))
    for order, batch in enumerate((waits, later)):
        batch.drain_order = order
        sequences_of(first).stamp(batch, 0.0, 0)
        first.insert_retry(batch)
    exhaust(scene.directory.following(cluster(1, topic_id=SECOND if proven else zero), 0.0))
    assert [batch.has_sequence() for batch in (waits, later)] == [not proven] * 2
    assert list(first.batches) == [waits, later]
    assert sequences_of(second).log == 1  # which is gone, and may come back


def test_epochs_that_begin_again_are_those_of_another_log() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1, epoch=4, topic_id=NO_TOPIC_ID), 0.0))
    sequences = sequences_of(scene.topics["t"].queues[0])
    sequences.known_id = 7
    exhaust(scene.directory.following(cluster(2, epoch=5, topic_id=NO_TOPIC_ID), 0.0))
    assert sequences.known_id == 7
    exhaust(scene.directory.following(cluster(1, epoch=0, topic_id=NO_TOPIC_ID), 0.0))
    assert sequences.known_id == -1


def test_a_broker_that_tells_no_id_does_not_make_the_known_one_unknown() -> None:
    """Else a topic that was created anew meanwhile would be taken for the same one that gets its id."""
    scene = Scene()
    exhaust(scene.directory.following(cluster(1), 0.0))
    topic = scene.topics["t"]
    exhaust(scene.directory.following(cluster(1, topic_id=NO_TOPIC_ID), 0.0))
    assert topic.topic_id == FIRST
    exhaust(scene.directory.following(cluster(1, topic_id=SECOND), 0.0))
    assert topic.topic_id == SECOND
    assert sequences_of(topic.queues[0]).log == 1


def test_a_partition_that_comes_back_is_the_one_it_was() -> None:
    """Brokers that tell no ids may be behind: with sequences from 0 on, its log would take new batches for old ones."""
    scene = Scene()
    zero = UUID(int=0)
    exhaust(scene.directory.following(cluster(1, 1, 1, topic_id=zero), 0.0))
    topic = scene.topics["t"]
    kept, first, second = topic.queues
    second.batches.append(make_batch(Loop(), records=1))
    exhaust(scene.directory.following(cluster(1, topic_id=zero), 0.0))
    assert topic.queues == [kept]
    exhaust(scene.directory.following(cluster(1, 1, topic_id=zero), 0.0))
    assert topic.queues == [kept, first]
    assert scene.leaders() == [1, 1]
    exhaust(scene.directory.following(cluster(1, 1, 2, 2, topic_id=zero), 0.0))
    assert topic.queues[:3] == [kept, first, second]
    assert scene.leaders() == [1, 1, 2, 2]
    assert list(scene.ready.of(2)) == [second], "what waits there goes out now"


def test_a_topic_whose_id_comes_later_is_the_same_topic() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1, topic_id=NO_TOPIC_ID), 0.0))
    sequences = sequences_of(scene.topics["t"].queues[0])
    sequences.known_id = 7
    exhaust(scene.directory.following(cluster(1), 0.0))
    assert scene.topics["t"].queues[0].sequences is sequences
    assert sequences.known_id == 7
    exhaust(scene.directory.following(cluster(1, topic_id=UUID(int=99)), 0.0))
    assert sequences.known_id == -1, "another id is another topic"


def drawn(scene: Scene) -> set[int]:
    """The partitions that records without a key go to."""
    return {scene.topics["t"].partitioner.next().partition for _ in range(100)}


def test_records_without_a_key_go_where_there_is_a_leader_now() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1, NO_LEADER), 0.0))
    assert drawn(scene) == {0}
    exhaust(scene.directory.following(cluster(1, 2, epoch=1), 0.0))
    assert drawn(scene) == {0, 1}
    exhaust(scene.directory.following(cluster(NO_LEADER, 2, 2, epoch=2), 0.0))
    assert drawn(scene) == {1, 2}


def test_leaders_in_the_rack_are_preferred_and_racks_may_change() -> None:
    scene = Scene(rack="a")
    exhaust(scene.directory.following(cluster(1, 2, 3, racks={1: "a", 2: "b", 3: None}), 0.0))
    assert drawn(scene) == {0}
    exhaust(scene.directory.following(cluster(1, 2, 3, racks={1: "b", 2: "a", 3: "a"}), 0.0))
    assert drawn(scene) == {1, 2}
    exhaust(scene.directory.following(cluster(1, 2, 3, racks={1: "b", 2: "b", 3: None}), 0.0))
    assert drawn(scene) == {0, 1, 2}


def test_a_topic_the_answer_left_out_learns_of_racks_as_well() -> None:
    scene = Scene(rack="a")
    exhaust(scene.directory.following(cluster(1, 2, racks={1: "a", 2: "b"}), 0.0))
    exhaust(scene.directory.following(Cluster({2: Node(2, Address("b", 1), "a")}), 0.0))
    assert drawn(scene) == {1}


def test_racks_do_not_matter_by_default() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1, 2, racks={1: "a", 2: "b"}), 0.0))
    assert drawn(scene) == {0, 1}


def test_a_leader_named_by_an_answer_counts_for_records_without_a_key() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1, NO_LEADER), 0.0))
    assert drawn(scene) == {0}
    scene.directory.leaders_moved([PartitionInfo("t", 1, 2, 5, (0,), (0,), ())], 0.0)
    assert drawn(scene) == {0, 1}


def test_a_leader_that_moves_while_many_partitions_are_followed_stays_where_it_moved() -> None:
    scene = Scene()
    many = 3 * STEP
    exhaust(scene.directory.following(cluster(*[1] * many), 0.0))
    steps = scene.directory.following(cluster(*[2] * many, epoch=1), 1.0)
    for _ in range(2):
        next(steps)
    assert sorted(set(scene.leaders())) == [1, 2], "it is on its way"
    moved = [PartitionInfo("t", number, 3, 2, (0,), (0,), ()) for number in (0, many - 1)]
    scene.directory.leaders_moved(moved, 1.0)
    exhaust(steps)
    assert scene.leaders() == [3, *[2] * (many - 2), 3]


def test_new_partitions_come_all_at_once_and_with_their_leaders() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(1), 0.0))
    queues = scene.topics["t"].queues
    for _ in scene.directory.following(cluster(*[1] * 1000), 0.0):
        assert len(queues) == 1
    assert scene.leaders() == [1] * 1000


def test_an_interrupted_update_is_finished_by_the_next_one() -> None:
    scene = Scene()
    now = cluster(*[1] * 1000)
    next(iter(scene.directory.following(now, 0.0)))
    exhaust(scene.directory.following(now, 0.0))
    assert scene.leaders() == [1] * 1000
    assert list(scene.directory.following(now, 0.0)) == []


def test_partitions_come_in_the_step_in_which_that_is_said() -> None:
    scene, said = Scene(), set[str]()
    scene.directory._arrived = said.add
    names = [f"t{number}" for number in range(3)]
    infos = {name: [PartitionInfo(name, number, 1, 0, (1,), (1,), ()) for number in range(100)] for name in names}
    topics = {name: TopicMetadata(name, FIRST, Partitions.of(infos[name])) for name in names}
    for _ in scene.directory.following(Cluster(topics=topics), 0.0):
        assert {name for name, queues in scene.topics.items() if queues.queues} == said
        assert {name for name in names if scene.directory.partitions(name)} == said
    assert said == set(names)


# A topic with many partitions is created anew


def logs(queues: list[PartitionQueue]) -> list[int]:
    return [int(sequences_of(queue).log) for queue in queues]


@pytest.mark.parametrize("size", [1, 10 * STEP])
def test_nothing_can_be_sent_while_some_partitions_are_of_the_old_topic_and_some_of_the_new(size: int) -> None:
    scene = Scene()
    many = 10 * STEP
    exhaust(scene.directory.following(cluster(*[1] * many, epoch=9), 0.0))
    topic = scene.topics["t"]
    queues = list(topic.queues)
    changes = [0]
    for _ in scene.directory.following(cluster(*[2] * size, topic_id=SECOND), 1.0):
        changes.append(sum(logs(queues)))
        if any(queue.leader == 1 for queue in queues):
            assert (topic.topic_id, changes[-1]) == (FIRST, 0)
        elif any(queue.leader == 2 for queue in queues):
            assert (topic.topic_id, changes[-1]) == (SECOND, many)
    assert max(after - before for before, after in pairwise(changes)) <= STEP
    assert logs(queues) == [1] * many
    assert [queue.leader for queue in queues] == [2] * size + [NO_LEADER] * (many - size)
    assert topic.queues == queues[:size]


def test_a_leader_that_moved_before_its_topic_was_created_anew_does_not_stay() -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(*[1] * 3 * STEP), 0.0))
    steps = iter(scene.directory.following(cluster(*[2] * 3 * STEP, topic_id=SECOND), 1.0))
    next(steps)
    moved = [PartitionInfo("t", number, 3, 2, (0,), (0,), ()) for number in (0, 3 * STEP - 1)]
    scene.directory.leaders_moved(moved, 1.0)
    exhaust(steps)
    assert set(scene.leaders()) <= {2, 3}


@pytest.mark.parametrize("steps_before", [1, 7, 15, 25, 27])
def test_an_interrupted_change_to_another_topic_is_finished_by_the_next_update(steps_before: int) -> None:
    scene = Scene()
    exhaust(scene.directory.following(cluster(*[1] * 10 * STEP), 0.0))
    queues = list(scene.topics["t"].queues)
    now = cluster(*[2] * 5 * STEP, topic_id=SECOND)
    steps = iter(scene.directory.following(now, 1.0))
    for _ in range(steps_before):
        next(steps, None)
    exhaust(scene.directory.following(now, 2.0))
    assert all(log >= 1 for log in logs(queues))
    assert scene.topics["t"].queues == queues[: 5 * STEP]
    assert scene.leaders() == [2] * 5 * STEP
    exhaust(scene.directory.following(cluster(*[2] * 10 * STEP, topic_id=SECOND), 3.0))
    assert scene.topics["t"].queues == queues


def test_partitions_that_went_at_different_times_all_come_back() -> None:
    scene = Scene()
    queues: list[PartitionQueue] = []
    for size in (10, 7, 3, 5, 2, 12, 4, 12):
        exhaust(scene.directory.following(cluster(*[1] * size, topic_id=NO_TOPIC_ID), 0.0))
        now = scene.topics["t"].queues
        queues += now[len(queues) :]
        assert now == queues[:size]
        assert scene.leaders() == [1] * size
