from __future__ import annotations

from collections.abc import Generator, Iterator
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.addresses import Address
from aioproducer.net.metadata.cluster import CHUNK, NO_TOPIC_ID, Cluster, Node
from aioproducer.net.metadata.metadata import BELIEVED_AT_LAST, FINAL_ERRORS, Metadata
from aioproducer.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from aioproducer.timing.backoff import ExponentialBackoff
from tests.support.exhaust import exhaust

ID = UUID(int=7)


def update(metadata: Metadata, answer: MetadataResponse, now: float) -> None:
    """Takes the answer in without a pause."""
    exhaust(metadata.updating(answer, now))


def request(metadata: Metadata, now: float) -> MetadataRequest:
    """The request that is made now, without a pause."""
    steps = metadata.requesting(now)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            made: MetadataRequest = stop.value
            return made


def make(**times: Any) -> Metadata:
    given: dict[str, Any] = {"max_age": 300, "max_idle": 60, "backoff": ExponentialBackoff(1000, 8000, Random(1))}
    return Metadata(**{**given, **times})


def partition(index: int, leader: int = 1, epoch: int = 0, error: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(error, index, leader, epoch, [leader], [leader])


def response(*topics: MetadataResponseTopic, nodes: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node, "host", 9000 + node) for node in nodes]
    return MetadataResponse(brokers=brokers, topics=list(topics), controller_id=1, cluster_id="c")


def topic(
    name: str = "t", *partitions: MetadataResponsePartition, error: int = 0, topic_id: UUID = ID
) -> MetadataResponseTopic:
    return MetadataResponseTopic(error, name, topic_id, partitions=list(partitions))


def known(*topics: MetadataResponseTopic, **times: Any) -> Metadata:
    """Metadata that has got an answer at time 0."""
    metadata = make(**times)
    for one in topics:
        metadata.use_topic(one.name or "", 0)
    request(metadata, 0)
    update(metadata, response(*topics), 0)
    return metadata


def asked(metadata: Metadata, now: float) -> list[str | None]:
    """The topics of a request that is made now."""
    return [one.name for one in request(metadata, now).topics or ()]


def leaders(metadata: Metadata, name: str = "t") -> list[int]:
    return [info.leader for info in metadata.cluster.topics[name].partitions]


def update_of(metadata: Metadata, one: MetadataResponseTopic, now: float) -> None:
    """Requests what is needed, which is this topic, and takes the answer in."""
    assert asked(metadata, now) == [one.name]
    update(metadata, response(one), now)


# When to ask


def test_the_first_request_is_due_at_once() -> None:
    assert make().next_update() < 0


def test_old_metadata_is_requested_again() -> None:
    metadata = known(topic("t", partition(0)))
    assert metadata.next_update() == 300


def test_needed_metadata_is_requested_after_the_back_off() -> None:
    metadata = known(topic("t", partition(0)))
    metadata.request_update()
    assert 0.8 <= metadata.next_update() <= 1.2


def test_the_back_off_begins_with_the_end_of_the_last_attempt() -> None:
    metadata = known(topic("t", partition(0)))
    for answered in (True, False):
        request(metadata, 10)
        update(metadata, response(topic("t", partition(0))), 15) if answered else metadata.failed(15)
        metadata.request_update()
        assert metadata.next_update() > 15.7


def test_a_topic_added_during_a_request_is_requested_at_once() -> None:
    metadata = known(topic("t", partition(0)))
    request(metadata, 10)
    metadata.use_topic("new", 11)
    update(metadata, response(topic("t", partition(0))), 15)
    assert metadata.next_update() <= 15


def test_a_new_topic_is_requested_at_once() -> None:
    metadata = known(topic("t", partition(0)))
    assert metadata.use_topic("new", 0.1)
    assert metadata.next_update() <= 0.1
    assert not metadata.use_topic("new", 0.2)


def test_the_back_off_grows_while_nothing_comes_of_it_and_starts_again() -> None:
    metadata = known(topic("t", partition(0)))
    waits = []
    for now in range(100, 700, 100):
        metadata.request_update()
        request(metadata, now)
        metadata.failed(now) if now % 200 else update(metadata, response(topic("t", partition(0))), now)
        metadata.request_update()
        waits.append(metadata.next_update() - now)
    assert waits[0] <= 1.2
    assert all(6.4 <= wait <= 9.6 for wait in waits[3:])
    request(metadata, 1000)
    update(metadata, response(topic("t", partition(0, leader=2, epoch=1))), 1000)
    metadata.request_update()
    assert metadata.next_update() <= 1001.2


def test_a_partition_without_a_leader_is_requested_again() -> None:
    metadata = known(topic("t", partition(0, leader=-1, error=ErrorCode.LEADER_NOT_AVAILABLE), partition(1)))
    assert leaders(metadata) == [-1, 1]
    assert metadata.next_update() <= 1.2


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE])
def test_a_topic_with_a_transient_error_is_requested_again(code: ErrorCode) -> None:
    metadata = known(topic("t", error=code))
    assert metadata.cluster.errors == {"t": code}
    assert "t" not in metadata.cluster.topics
    assert metadata.next_update() <= 1.2
    request(metadata, 2)
    update(metadata, response(topic("t", error=code)), 2)
    assert metadata.failures == {"t": (code, 2)}
    request(metadata, 5)
    update(metadata, response(topic("t", partition(0))), 5)
    assert (metadata.failures, metadata.cluster.errors) == ({}, {})


# What to ask for


def test_known_brokers_that_give_no_metadata_are_given_up_after_a_while() -> None:
    metadata = known(topic("t", partition(0)), rebootstrap_after=20)
    assert metadata.seek(400) == 420
    metadata.failed(405)
    assert metadata.seek(410) == 420, "it counts from the first attempt"
    update(metadata, response(), 415)
    assert metadata.seek(900) == 920, "an answer is what was sought"
    metadata.rebootstrap()
    assert metadata.cluster.nodes == {}
    assert leaders(metadata) == [1], "what is known of topics stays"
    assert metadata.next_update() <= 920
    assert metadata.seek(920) is None, "there is nobody to give up"
    update(metadata, response(), 1000)
    assert metadata.seek(1300) == 1320


def test_without_recovery_known_brokers_are_never_given_up() -> None:
    assert known(topic("t", partition(0))).seek(400) is None


def test_every_topic_in_use_is_requested() -> None:
    metadata = make()
    metadata.use_topic("t", 0)
    metadata.use_topic("u", 0)
    made = request(metadata, 1)
    assert [one.name for one in made.topics or []] == ["t", "u"]
    assert made.allow_auto_topic_creation
    assert not request(make(creates_topics=False), 0).allow_auto_topic_creation


def test_a_new_topic_is_requested_alone_and_the_others_stay() -> None:
    metadata = known(topic("t", partition(0, leader=2)), max_idle=1000)
    metadata.use_topic("u", 1)
    assert asked(metadata, 1) == ["u"]
    update(metadata, response(topic("u", partition(0))), 1)
    assert (leaders(metadata), leaders(metadata, "u")) == ([2], [1])
    assert metadata.next_update() == 300, "what was not asked for grows old"
    assert asked(metadata, 300) == ["t", "u"]


def test_only_topics_that_are_missing_or_without_a_leader_are_requested_again() -> None:
    missing, nobody = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition(0, leader=-1, error=5)
    metadata = known(topic("t", partition(0)), topic("u", error=missing), topic("v", nobody))
    assert asked(metadata, 2) == ["u", "v"]
    update(metadata, response(topic("u", error=missing), topic("v", partition(0))), 2)
    assert asked(metadata, 5) == ["u"]
    update(metadata, response(topic("u", partition(0))), 5)
    assert metadata.next_update() == 300
    metadata.request_update("v")
    assert asked(metadata, 10) == ["v"]
    metadata.request_update("v")
    metadata.request_update()
    assert asked(metadata, 15) == ["t", "u", "v"]


def test_an_error_stays_until_its_topic_is_requested_again() -> None:
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    metadata = known(topic("t", error=refused))
    metadata.use_topic("u", 1)
    update_of(metadata, topic("u", partition(0)), 1)
    assert metadata.cluster.errors == {"t": refused}
    metadata.request_update("t")
    update_of(metadata, topic("t", partition(0)), 5)
    assert metadata.cluster.errors == {}


def test_an_error_is_forgotten_if_its_topic_is_needed_again_meanwhile() -> None:
    """A record that comes while an answer about another topic is under way must not fail with it."""
    metadata = known(topic("t", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    metadata.use_topic("u", 1)
    assert asked(metadata, 1) == ["u"]
    metadata.request_update("t")
    update(metadata, response(topic("u", partition(0))), 1)
    assert metadata.cluster.errors == {}


def test_after_a_failure_all_topics_are_requested() -> None:
    metadata = known(topic("t", partition(0)))
    metadata.use_topic("u", 1)
    assert asked(metadata, 1) == ["u"]
    metadata.failed(2)
    assert asked(metadata, 5) == ["t", "u"]


def test_a_topic_long_unused_is_forgotten() -> None:
    metadata = known(topic("t", partition(0)), topic("u", partition(0)))
    metadata.use_topic("u", 50)
    assert [topic_request.name for topic_request in request(metadata, 61).topics or []] == ["u"]
    update(metadata, response(topic("u", partition(0))), 61)
    assert set(metadata.cluster.topics) == {"u"}


# What an answer changes


def test_an_answer_tells_nodes_and_leaders() -> None:
    metadata = known(topic("t", partition(0, leader=2), partition(1)))
    assert metadata.cluster.nodes == {1: Node(1, Address("host", 9001)), 2: Node(2, Address("host", 9002))}
    assert (metadata.cluster.controller_id, metadata.cluster.cluster_id) == (1, "c")
    assert leaders(metadata) == [2, 1]
    assert metadata.version == 1


def test_an_answer_without_any_broker_leaves_those_known() -> None:
    metadata = known(topic("t", partition(0)))
    update(metadata, response(topic("t", partition(0)), nodes=()), 1)
    assert set(metadata.cluster.nodes) == {1, 2}


def test_a_topic_briefly_missing_stays_as_it_is() -> None:
    metadata = known(topic("t", partition(0), partition(1)))
    update(metadata, response(topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), 1)
    assert leaders(metadata) == [1, 1]
    update(metadata, response(), 2)
    assert leaders(metadata) == [1, 1]


def test_an_older_leader_epoch_undoes_nothing() -> None:
    metadata = known(topic("t", partition(0, leader=2, epoch=5), partition(1, leader=2, epoch=5)))
    exhaust(
        metadata.updating(response(topic("t", partition(0, leader=1, epoch=4), partition(1, leader=1, epoch=6))), 1)
    )
    assert leaders(metadata) == [2, 1]


def test_an_answer_without_epochs_counts() -> None:
    metadata = known(topic("t", partition(0, leader=2, epoch=5)))
    update(metadata, response(topic("t", partition(0, leader=1, epoch=-1))), 1)
    assert leaders(metadata) == [1]


def test_epochs_of_a_topic_created_anew_start_again() -> None:
    metadata = known(topic("t", partition(0, leader=2, epoch=5), partition(1, leader=2, epoch=5)))
    update(metadata, response(topic("t", partition(0, leader=1, epoch=0), topic_id=UUID(int=8))), 1)
    assert leaders(metadata) == [1]


def test_partitions_out_of_order_doubled_or_missing() -> None:
    metadata = known(topic("t", partition(2, leader=2), partition(0), partition(1), partition(0)))
    assert [info.partition for info in metadata.cluster.topics["t"].partitions] == [0, 1, 2]
    exhaust(
        metadata.updating(response(topic("t", partition(0, leader=2, epoch=1), partition(3), partition(2**31 - 1))), 1)
    )
    assert [(i.partition, i.leader) for i in metadata.cluster.topics["t"].partitions] == [
        (0, 2),
        (1, 1),
        (2, 2),
        (3, 1),
    ]


def test_without_ids_a_topic_that_has_become_smaller_is_believed() -> None:
    none = UUID(int=0)
    metadata = known(topic("t", *map(partition, range(4)), topic_id=none))
    update(metadata, response(topic("t", partition(0), partition(2), topic_id=none)), 1)
    assert [info.partition for info in metadata.cluster.topics["t"].partitions] == [0, 1, 2]
    update(metadata, response(topic("t", partition(0), topic_id=none)), 2)
    assert [info.partition for info in metadata.cluster.topics["t"].partitions] == [0]


@given(st.lists(st.integers(-5, 2**31 - 1), max_size=20), st.lists(st.integers(0, 10), max_size=20))
def test_partitions_are_numbered_without_gaps_whatever_an_answer_has(first: list[int], second: list[int]) -> None:
    metadata = known(topic("t", *map(partition, first)))
    before = [info.partition for info in metadata.cluster.topics["t"].partitions]
    update(metadata, response(topic("t", *map(partition, second))), 1)
    after = [info.partition for info in metadata.cluster.topics["t"].partitions]
    assert before == list(range(len(before)))
    assert after == list(range(len(after)))
    assert len(after) >= len(before)


def test_a_topic_in_which_nothing_has_changed_is_the_very_same() -> None:
    metadata = known(topic("t", partition(0, leader=1, epoch=3), partition(1, leader=1, epoch=3)))
    before = metadata.cluster.topics["t"]
    exhaust(
        metadata.updating(response(topic("t", partition(0, leader=1, epoch=3), partition(1, leader=1, epoch=3))), 1)
    )
    assert metadata.cluster.topics["t"] is before
    exhaust(
        metadata.updating(response(topic("t", partition(0, leader=1, epoch=3), partition(1, leader=2, epoch=4))), 2)
    )
    after = metadata.cluster.topics["t"]
    assert after is not before
    assert after.partitions[0] is before.partitions[0]
    assert after.partitions[1].leader == 2


def test_a_leader_in_a_response() -> None:
    metadata = known(topic("t", partition(0, leader=1, epoch=3), partition(1, leader=1, epoch=3)))
    new = Node(9, Address("new", 1))
    before = metadata.cluster
    assert metadata.learn_leaders([("t", 0, 2, 3)], []) == []  # no news
    assert metadata.learn_leaders([("t", 0, 2, 2)], []) == []  # older
    assert metadata.learn_leaders([("t", 0, 9, 4)], []) == []  # nobody knows where that is
    assert metadata.learn_leaders([("u", 0, 2, 9), ("t", 7, 2, 9), ("t", -1, 2, 9)], []) == []
    assert metadata.cluster is before
    (moved,) = metadata.learn_leaders([("t", 0, 9, 4), ("t", 1, 2, 3)], [new])
    assert (moved.partition, moved.leader, moved.leader_epoch) == (0, 9, 4)
    assert leaders(metadata) == [9, 1]
    assert metadata.cluster.nodes[9] == new


NO_ID = UUID(int=0)


def test_an_answer_without_ids_does_not_replace_a_topic() -> None:
    metadata = known(topic("t", partition(0, 1, 5)))
    update(metadata, response(topic("t", partition(0, 2, 4), topic_id=NO_ID)), 1)
    assert leaders(metadata) == [1], "an older epoch is still an older epoch"
    assert metadata.cluster.topics["t"].topic_id == ID
    update(metadata, response(topic("t", partition(0, 2, 4), topic_id=UUID(int=8))), 2)
    assert leaders(metadata) == [2], "another id is another topic"


def test_without_ids_older_epochs_count_at_last() -> None:
    """A topic that was deleted and created anew begins with epoch 0 again, and no id says that it is another one."""
    metadata = known(topic("t", partition(0, 1, 5), partition(1, 1, 5), topic_id=NO_ID))

    def older() -> MetadataResponse:
        return response(topic("t", partition(0, 2, 0), partition(1, 1, 5), topic_id=NO_ID))

    for now in range(1, BELIEVED_AT_LAST):
        update(metadata, older(), now)
        assert leaders(metadata) == [1, 1]
        assert metadata.next_update() < now + 10, "asked again soon"
    update(metadata, older(), 10)
    assert leaders(metadata) == [2, 1]
    update(metadata, response(topic("t", partition(0, 3, 1), partition(1, 1, 5), topic_id=NO_ID)), 11)
    assert leaders(metadata) == [3, 1]


def test_a_newer_answer_in_between_keeps_older_epochs_unbelieved() -> None:
    metadata = known(topic("t", partition(0, 1, 5), topic_id=NO_ID))
    for now in range(1, 3 * BELIEVED_AT_LAST):
        found = partition(0, 1, 5) if now % BELIEVED_AT_LAST == 0 else partition(0, 2, 4)
        update(metadata, response(topic("t", found, topic_id=NO_ID)), now)
        assert leaders(metadata) == [1]


def test_older_epochs_of_a_topic_with_an_id_are_never_believed() -> None:
    metadata = known(topic("t", partition(0, 1, 5)))
    for now in range(1, 10):
        update(metadata, response(topic("t", partition(0, 2, 4))), now)
        assert leaders(metadata) == [1]


@pytest.mark.parametrize("code", [ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_topics_with_errors_that_may_pass_are_requested_again(code: ErrorCode) -> None:
    """A cluster with a broker down cannot create topics with as many replicas; Kafka's clients wait, too."""
    assert code not in FINAL_ERRORS
    metadata = known(topic("t", partition(0)))
    metadata.use_topic("u", 0)
    update(metadata, response(topic("t", partition(0)), topic("u", error=code)), 1)
    assert metadata.cluster.errors["u"] is code
    assert metadata.next_update() < 10


@pytest.mark.parametrize("code", sorted(FINAL_ERRORS))
def test_a_topic_refused_for_good_is_requested_only_with_the_others(code: ErrorCode) -> None:
    metadata = known(topic("t", partition(0)), max_idle=1000)
    metadata.use_topic("u", 0)
    request(metadata, 1)
    update(metadata, response(topic("t", partition(0)), topic("u", error=code)), 1)
    assert metadata.cluster.errors["u"] is code
    assert metadata.next_update() == 300
    assert asked(metadata, 300) == ["t", "u"]


def test_a_topic_that_gets_its_id_stays_the_same() -> None:
    metadata = known(topic("t", partition(0, 1, 5), topic_id=NO_ID))
    update(metadata, response(topic("t", partition(0, 2, 4), topic_id=ID)), 1)
    assert leaders(metadata) == [1]
    assert metadata.cluster.topics["t"].topic_id == ID


@pytest.mark.parametrize(("newest", "version"), [(13, None), (9, None), (8, 6), (7, 6), (1, 6)])
def test_leader_epochs_are_believed_from_version_9_on(newest: int, version: int | None) -> None:
    assert Metadata.version_for(newest) == version


# An answer that is taken in over several turns of the loop


def test_nothing_of_an_answer_is_in_force_before_its_end() -> None:
    metadata = known(topic("t", *(partition(number) for number in range(200))))
    before = metadata.cluster
    answer = response(topic("t", *(partition(number, 2, 1) for number in range(1000))), topic("u", partition(0)))
    steps = metadata.updating(answer, 1)
    count = 0
    for _ in steps:
        count += 1
        assert metadata.cluster is before
        assert metadata.version == 1
    assert count >= 1000 // CHUNK
    assert metadata.version == 2
    assert leaders(metadata) == [2] * 1000
    assert not answer.topics, "it is let go of on the way"


def test_leaders_learnt_meanwhile_are_not_forgotten() -> None:
    metadata = known(topic("t", *(partition(number, 1, 3) for number in range(300))))
    steps = metadata.updating(response(topic("t", *(partition(number, 2, 4) for number in range(300)))), 1)
    for _ in range(3):
        next(steps)
    assert len(metadata.learn_leaders([("t", 0, 2, 5), ("t", 7, 1, 6), ("t", 9, 9, 5)], [])) == 2
    exhaust(steps)
    assert [(info.leader, info.leader_epoch) for info in metadata.cluster.topics["t"].partitions[:10]] == [
        (2, 5), *[(2, 4)] * 6, (1, 6), (2, 4), (2, 4)
    ]  # fmt: skip
    assert metadata.learn_leaders([("t", 7, 2, 5)], []) == []


def test_a_topic_added_meanwhile_is_requested() -> None:
    metadata = known(topic("t", partition(0)))
    request(metadata, 1)
    steps = metadata.updating(response(topic("t", partition(0))), 1)
    next(steps)
    assert metadata.use_topic("new", 1)
    exhaust(steps)
    assert metadata.next_update() <= 1.2
    assert "new" in [one.name for one in request(metadata, 2).topics or ()]


@pytest.mark.parametrize(("topic_id", "passes"), [(ID, 2), (NO_TOPIC_ID, 3)])
def test_every_pass_over_the_partitions_pauses(topic_id: UUID, passes: int) -> None:
    def answer() -> MetadataResponse:
        return response(topic("t", *[partition(index, epoch=5) for index in range(10 * CHUNK)], topic_id=topic_id))

    metadata = known()
    metadata.use_topic("t", 0)
    update(metadata, answer(), 0)
    assert len(list(metadata.updating(answer(), 1))) >= passes * 10


def test_an_answer_is_in_force_when_it_has_been_followed() -> None:
    metadata = known(topic("t", partition(0)))
    seen: list[int] = []

    def follow(cluster: Cluster) -> Iterator[None]:
        for info in cluster.topics["t"].partitions:
            assert leaders(metadata) == [1]
            seen.append(info.leader)
            yield

    exhaust(metadata.updating(response(topic("t", partition(0, 2, 1), partition(1))), 1, follow))
    assert seen == leaders(metadata) == [2, 1]


def test_a_request_for_many_topics_is_made_in_steps() -> None:
    metadata = make()
    names = [f"t{number}" for number in range(10 * CHUNK)]
    assert len(list(metadata.requesting(0, names))) == 2 + 2 * 10
    assert asked(metadata, 0) == names


def test_topics_in_use_are_kept_and_those_without_metadata_are_needed() -> None:
    metadata = known(topic("t", partition(0)))
    exhaust(metadata.requesting(50, ["t", "new"]))
    assert metadata._asked == {"new"}
    metadata.request_update()
    assert asked(metadata, 61) == ["t", "new"]  # t was used at 50


@pytest.mark.parametrize("steps_before", range(4))
def test_a_topic_used_while_a_request_is_made_is_in_this_or_the_next(steps_before: int) -> None:
    metadata = known(topic("t", partition(0)))
    steps = metadata.requesting(1, [f"u{number}" for number in range(2 * CHUNK)])
    for _ in range(2 + steps_before):  # the first two are for the topics in use
        next(steps)
    metadata.use_topic("new", 1)
    exhaust(steps)
    assert metadata._asked is not None
    in_this = "new" in metadata._asked
    assert in_this == (steps_before <= 1)
    if not in_this:
        assert metadata.next_update() <= 1
        assert asked(metadata, 1) == ["new"]


# Leaders learnt while an answer is taken in


def begun(partitions: int, **times: Any) -> tuple[Metadata, Generator[None, None, None]]:
    """A topic at epoch 3, and an answer of the same epoch that is being taken in."""
    metadata = known(topic("t", *(partition(number, 1, 3) for number in range(partitions))), **times)
    steps = metadata.updating(response(topic("t", *(partition(number, 1, 3) for number in range(partitions)))), 1)
    next(steps)
    return metadata, steps


def test_leaders_learnt_meanwhile_are_merged_in_small_steps_and_the_newest_counts() -> None:
    many = 10 * CHUNK
    metadata, steps = begun(many)
    for epoch in (5, 6, 4):
        for number in range(many):
            metadata.learn_leaders([("t", number, 1 + epoch % 2, epoch)], [])
    assert metadata._learnt_meanwhile is not None
    assert len(metadata._learnt_meanwhile) == 2 * many, "by leader, since an address may be unknown as yet"
    left = len(metadata._learnt_meanwhile)
    for _ in steps:
        assert left - len(metadata._learnt_meanwhile) <= CHUNK
        left = len(metadata._learnt_meanwhile)
    infos = metadata.cluster.topics["t"].partitions
    assert {(info.leader, info.leader_epoch) for info in infos} == {(1, 6)}


def test_a_newer_leader_without_an_address_does_not_hide_one_that_has_one() -> None:
    metadata, steps = begun(1)
    for answer in (("t", 0, 2, 4), ("t", 0, 9, 5)):
        metadata.learn_leaders([answer], [])
    exhaust(steps)
    assert [info[2:4] for info in metadata.cluster.topics["t"].partitions] == [(2, 4)]


def test_a_leader_whose_address_comes_with_the_answer_counts() -> None:
    metadata = known(topic("t", partition(0, 1, 3)))
    steps = metadata.updating(response(topic("t", partition(0, 1, 3)), nodes=(1, 2, 9)), 1)
    next(steps)
    assert metadata.learn_leaders([("t", 0, 9, 4)], []) == []
    exhaust(steps)
    assert leaders(metadata) == [9]


def test_leaders_learnt_while_an_answer_is_followed_count() -> None:
    metadata = known(topic("t", partition(0), partition(1)))
    third = Node(3, Address("host", 9003))
    followed: list[list[int]] = []

    def follow(cluster: Cluster) -> Iterator[None]:
        followed.append([info.leader for info in cluster.topics["t"].partitions])
        metadata.learn_leaders([("t", 1, 3, 7)], [third])
        yield

    steps = metadata.updating(response(topic("t", partition(0), partition(1))), 1, follow)
    next(steps)
    metadata.learn_leaders([("t", 0, 3, 7)], [third])
    exhaust(steps)
    assert followed == [[3, 1]]
    assert leaders(metadata) == [3, 3]
    assert metadata.cluster.nodes[3] == third


@pytest.mark.parametrize("smaller", [False, True])
def test_leaders_of_a_topic_that_another_replaces_do_not_count(smaller: bool) -> None:
    first, second = (NO_TOPIC_ID, NO_TOPIC_ID) if smaller else (ID, UUID(int=8))
    metadata = known(topic("t", partition(0, 1, 5), partition(1, 1, 5), topic_id=first))

    def follow(cluster: Cluster) -> Iterator[None]:
        assert metadata.learn_leaders([("t", 0, 2, 9), ("t", 1, 2, 9)], []) == []
        yield

    steps = metadata.updating(response(topic("t", partition(0, 1, 5), topic_id=second)), 1, follow)
    next(steps)
    assert len(metadata.learn_leaders([("t", 0, 2, 8), ("t", 1, 2, 8)], [])) == 2
    exhaust(steps)
    assert [info[2:4] for info in metadata.cluster.topics["t"].partitions] == [(1, 5)]
    assert len(metadata.learn_leaders([("t", 0, 2, 6)], [])) == 1, "those of the other topic do"


def test_a_leader_that_moves_leaves_most_partitions_where_they_are() -> None:
    metadata = known(topic("t", *(partition(number) for number in range(10 * CHUNK))))
    before = metadata.cluster.topics["t"].partitions.chunks
    metadata.learn_leaders([("t", 3 * CHUNK + 1, 2, 5), ("t", 3 * CHUNK + 2, 2, 5)], [])
    after = metadata.cluster.topics["t"].partitions.chunks
    assert [number for number in range(10) if before[number] is not after[number]] == [3]
    update(metadata, response(topic("t", *(partition(n, 1 + n // (9 * CHUNK)) for n in range(10 * CHUNK)))), 1)
    last = metadata.cluster.topics["t"].partitions.chunks
    assert [number for number in range(10) if last[number] is not after[number]] == [9]


def test_what_is_replaced_is_let_go_of_in_small_steps() -> None:
    same = topic("u", *(partition(number) for number in range(10 * CHUNK)), topic_id=UUID(int=8))
    metadata = known(topic("t", *(partition(number) for number in range(10 * CHUNK))), same)
    moved = [partition(number, 2, 1) for number in range(10 * CHUNK)]
    update(metadata, response(topic("t", *moved)), 1)
    assert len(list(metadata.letting_go())) == 2 + 10, "a step for each topic, and for the chunks of the changed one"
    assert list(metadata.letting_go()) == []
    assert leaders(metadata) == [2] * 10 * CHUNK


def test_a_topic_is_let_go_of_once_although_leaders_were_learnt_meanwhile() -> None:
    topics = [topic(name, *(partition(number) for number in range(10 * CHUNK))) for name in ("t", "u")]
    metadata = known(*topics)
    moved = [partition(number, 2, 1) for number in range(10 * CHUNK)]
    steps = metadata.updating(response(topic("t", *moved)), 1)
    next(steps)
    metadata.learn_leaders([("t", 0, 2, 5)], [])
    exhaust(steps)
    assert len(list(metadata.letting_go())) == 2 + 10 + 1 + 10, "t before and after that, and u, which stays"
    assert leaders(metadata) == [2] * 10 * CHUNK
