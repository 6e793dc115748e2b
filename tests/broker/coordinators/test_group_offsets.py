"""Committed and pending offsets against a plain model of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.coordinators.group_offsets import GroupOffsets
from aioproducer.broker.state.committed_offset import OffsetAndMetadata, TopicPartitionKey

Offsets = dict[TopicPartitionKey, OffsetAndMetadata]

names = st.sampled_from("ab")
partitions = st.lists(st.tuples(st.sampled_from("tuv"), st.integers(0, 2)), min_size=1, max_size=4)
steps = st.lists(
    st.tuples(
        st.sampled_from(["commit", "in transaction", "end", "abort", "forget", "delete group", "delete topic"]),
        names,
        st.integers(1, 2),
        partitions,
    ),
    max_size=25,
)


@given(steps)
def test_committed_and_pending_offsets_are_those_of_a_plain_model(
    steps: list[tuple[str, str, int, list[TopicPartitionKey]]],
) -> None:
    offsets = GroupOffsets()
    committed: dict[str, Offsets] = {"a": {}, "b": {}}
    pending: dict[int, dict[str, Offsets]] = {1: {"a": {}, "b": {}}, 2: {"a": {}, "b": {}}}
    for number, (what, group, producer_id, of) in enumerate(steps):
        new = {partition: OffsetAndMetadata(number, -1, "", number) for partition in of}
        if what == "commit":
            offsets.commit(group, new)
            committed[group].update(new)
        elif what == "in transaction":
            offsets.commit_in_transaction(producer_id, group, new)
            pending[producer_id][group].update(new)
        elif what in ("end", "abort"):
            for _ in offsets.ending(producer_id, committed=what == "end"):
                pass
            for name, wanted in pending[producer_id].items():
                if what == "end":
                    committed[name].update(wanted)
                wanted.clear()
        elif what == "forget":
            offsets.forget(group, of)
            for partition in of:
                committed[group].pop(partition, None)
        elif what == "delete group":
            offsets.delete(group)
            committed[group].clear()
        else:
            topic = of[0][0]
            offsets.topic_deleted(topic)
            for kept in (*committed.values(), *(one for groups in pending.values() for one in groups.values())):
                for partition in [partition for partition in kept if partition[0] == topic]:
                    del kept[partition]
        for name in "ab":
            assert offsets.committed(name) == committed[name]
            assert offsets.unstable(name) == {partition for groups in pending.values() for partition in groups[name]}


def test_the_offsets_of_a_topic_are_removed_in_steps_and_others_stay() -> None:
    offsets = GroupOffsets()
    for number in range(250):
        offsets.commit(
            f"g{number}", {("t", 0): OffsetAndMetadata(1, -1, "", 0), ("u", 0): OffsetAndMetadata(1, -1, "", 0)}
        )
    left = []
    for _ in offsets.forgetting("t"):
        left.append(sum(("t", 0) in offsets.committed(group) for group in offsets.groups()))
        offsets.commit("g0", {("t", 1): OffsetAndMetadata(2, -1, "", 0)})  # meanwhile
    assert left == [150, 50, 0]
    offsets.topic_deleted("t")
    assert all(set(offsets.committed(group)) == {("u", 0)} for group in offsets.groups())
