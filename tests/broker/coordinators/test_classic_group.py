from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.coordinators import classic_group
from aioproducer.broker.coordinators.classic_group import (
    MAX_METADATA,
    MAX_PROTOCOLS,
    TRANSITIONS,
    ClassicGroup,
    GroupState,
    Member,
)
from aioproducer.broker.coordinators.group_memory import GroupMemory
from aioproducer.errors import (
    FencedInstanceIdException,
    GroupMaxSizeReachedException,
    IllegalGenerationException,
    IllegalStateException,
    InconsistentGroupProtocolException,
    RebalanceInProgressException,
    UnknownMemberIdException,
)


def member(member_id: str, *protocols: str, instance_id: str | None = None) -> Member:
    known = [(name, name.encode()) for name in protocols or ("range",)]
    return Member(member_id, instance_id, "client", "", 10000, 60000, "consumer", known, joined=True)


def group_of(*members: Member, state: GroupState = GroupState.STABLE) -> ClassicGroup:
    group = ClassicGroup("g")
    for one in members:
        group.add(one)
    group.state = state
    return group


@pytest.mark.parametrize("old", list(GroupState))
@pytest.mark.parametrize("new", list(GroupState))
def test_only_the_tables_transitions(old: GroupState, new: GroupState) -> None:
    group = group_of(state=old)
    if new in TRANSITIONS[old]:
        group.become(new)
        assert group.state is new
    else:
        with pytest.raises(IllegalStateException, match=f"from {old.value} to {new.value}"):
            group.become(new)


def test_a_member_has_a_limited_number_and_size_of_protocols() -> None:
    group = ClassicGroup("g")
    group.check_protocols("consumer", [(str(number), b"") for number in range(MAX_PROTOCOLS)])
    group.check_protocols("consumer", [("range", bytes(MAX_METADATA - 5))])
    for protocols in (
        [(str(number), b"") for number in range(MAX_PROTOCOLS + 1)],
        [("range", bytes(MAX_METADATA - 4))],
        [("n" * MAX_METADATA, b"1")],
    ):
        with pytest.raises(InconsistentGroupProtocolException, match="at most 100 protocols"):
            group.check_protocols("consumer", protocols)


def test_the_topics_of_all_subscriptions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_group, "MAX_SUBSCRIBED", 3)

    def subscribing(member_id: str, *topics: str) -> Member:
        names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
        subscription = b"\0\0" + len(topics).to_bytes(4, "big") + names
        return Member(member_id, None, "client", "", 10000, 60000, "consumer", [("range", subscription)], joined=True)

    group = group_of(*(subscribing(name, "a", "b") for name in "xyz"))
    group.protocol_type, group.protocol = "consumer", "range"
    assert group.subscribed_topics() == {"a", "b"}, "the same subscription counts once"
    group.add(subscribing("w", "b", "c"))
    assert group.subscribed_topics() is None


@pytest.mark.parametrize(
    "subscription",
    [
        b"",
        b"\0\0" + (2**31 - 1).to_bytes(4, "big") + b"\0\x01t",
        b"\0\0" + (2**31 - 1).to_bytes(4, "big") + b"\xff\xfe",  # would be read again and again
        b"\0\0\0\0\0\x01\0\x01\xff",
    ],
)
def test_a_malformed_subscription_names_no_topics(subscription: bytes) -> None:
    one = Member("a", None, "client", "", 10000, 60000, "consumer", [("range", subscription)], joined=True)
    group = group_of(one)
    group.protocol_type, group.protocol = "consumer", "range"
    assert group.subscribed_topics() is None


def test_a_generation_from_beginning_to_end() -> None:
    group = ClassicGroup("g")
    group.add(member("a", "range", "sticky"))
    group.prepare_rebalance()
    assert not group.all_joined
    group.members["a"].joined = True
    group.add(member("b", "sticky", "range"))
    group.add(member("c", "sticky"))
    group.next_generation(1)
    assert (group.state, group.generation, group.leader) == (GroupState.COMPLETING_REBALANCE, 1, "a")
    assert group.protocol == "sticky", "the only one that all know"
    group.assign({"a": b"0", "b": b"1"})
    assert [one.assignment for one in group.members.values()] == [b"0", b"1", b""]
    assert group.state is GroupState.STABLE
    assert group.members["b"].metadata("sticky") == b"sticky"


def test_without_members_a_generation_is_empty() -> None:
    group = group_of(member("a"))
    group.prepare_rebalance()
    group.remove("a")
    group.next_generation(1)
    assert (group.state, group.generation, group.leader, group.protocol) == (GroupState.EMPTY, 1, None, None)


def test_a_joined_member_leads_after_the_leader_has_left() -> None:
    group = group_of(member("a"), member("b"), member("c"))
    group.members["b"].joined = False
    group.remove("a")
    assert group.leader == "c", "one that has joined comes first"


def test_a_new_member_must_share_a_protocol_with_the_others() -> None:
    group = group_of(member("a", "range", "sticky"))
    group.check_protocols("consumer", [("sticky", b"")])
    for kind, protocols in (("consumer", []), ("", [("range", b"")]), ("connect", [("range", b"")])):
        with pytest.raises(InconsistentGroupProtocolException):
            group.check_protocols(kind, protocols)
    with pytest.raises(InconsistentGroupProtocolException, match="'g' agree on consumer"):
        group.check_protocols("consumer", [("roundrobin", b"")])


def test_a_static_member_that_is_back_fences_its_old_self() -> None:
    group = group_of(member("old", instance_id="i"), member("b"))
    group.replace("old", "new")
    assert (group.leader, list(group.members), group.static_member("i")) == ("new", ["new", "b"], "new")
    assert group.member("new", "i") is group.members["new"]
    with pytest.raises(FencedInstanceIdException):
        group.member("old", "i")
    with pytest.raises(UnknownMemberIdException):
        group.member("old")
    with pytest.raises(UnknownMemberIdException, match="no instance"):
        group.member("b", "nosuch")


@pytest.mark.parametrize("transactional", [False, True])
def test_only_members_of_the_generation_may_commit(transactional: bool) -> None:
    def may(group: ClassicGroup, member_id: str, instance_id: str | None, generation: int) -> Member | None:
        return group.check_commit(member_id, instance_id, generation, transactional=transactional)

    empty = ClassicGroup("g")
    assert may(empty, "", None, -1) is None
    assert may(empty, "whoever", None, -1) is None
    group = group_of(member("a"))
    assert may(group, "a", None, 0) is group.members["a"]
    with pytest.raises(IllegalGenerationException):
        may(group, "a", None, 7)
    with pytest.raises(UnknownMemberIdException):
        may(group, "b", None, -1)
    if transactional:
        assert may(group, "", None, -1) is None
    else:
        with pytest.raises(UnknownMemberIdException):
            may(group, "", None, -1)
    group.state = GroupState.COMPLETING_REBALANCE
    if transactional:
        assert may(group, "a", None, 0) is group.members["a"]
    else:
        with pytest.raises(RebalanceInProgressException):
            may(group, "a", None, 0)


LIKES = st.lists(st.sampled_from(["range", "sticky", "own"]), min_size=1, max_size=3, unique=True)


@given(likes=st.lists(LIKES, min_size=1, max_size=5))
def test_every_member_supports_the_chosen_protocol_and_none_has_more_votes(likes: list[list[str]]) -> None:
    members = [member(str(number), *protocols) for number, protocols in enumerate(likes)]
    common = set.intersection(*map(set, likes))
    if not common:
        return
    chosen = group_of(*members).select_protocol()
    votes = [next(name for name in protocols if name in common) for protocols in likes]
    assert chosen in common
    assert votes.count(chosen) == max(votes.count(name) for name in common)


names = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True)


@given(st.lists(st.tuples(st.sampled_from(["join", "change", "leave", "assign", "come back"]), names), max_size=20))
def test_it_knows_what_all_members_support_and_how_much_memory_they_take(steps: list[tuple[str, list[str]]]) -> None:
    memory = GroupMemory()
    group = ClassicGroup("g", memory)
    for number, (what, protocols) in enumerate(steps):
        first = next(iter(group.members.values()), None)
        if what == "join":
            group.add(member(str(number), *protocols))
        elif first is None:
            continue
        elif what == "change":
            group.change_protocols(first, [(name, bytes(number)) for name in protocols])
        elif what == "leave":
            group.remove(first.member_id)
        elif what == "come back":
            group.replace(first.member_id, f"again-{number}")
        else:
            group.state = GroupState.COMPLETING_REBALANCE
            group.assign({first.member_id: bytes(number), "nobody": bytes(1000)})
        everyone = list(group.members.values())
        assert memory.used == group.memory.used == sum(one.size + len(one.assignment) for one in everyone)
        common = set.intersection(*({name for name, _ in one.protocols} for one in everyone)) if everyone else set()
        for name in "abcd":
            if not everyone or name in common:
                group.check_protocols("consumer", [(name, b"")])
            else:
                with pytest.raises(InconsistentGroupProtocolException, match="agree on"):
                    group.check_protocols("consumer", [(name, b"")])


def test_assignments_that_are_too_large_change_nothing() -> None:
    group = ClassicGroup("g", GroupMemory(10_000))
    group.add(member("a"))
    group.state = GroupState.COMPLETING_REBALANCE
    before = group.memory.used
    with pytest.raises(GroupMaxSizeReachedException, match="at most 10000 bytes"):
        group.assign({"a": bytes(10_000)})
    assert (group.state, group.memory.used, group.members["a"].assignment) == (
        GroupState.COMPLETING_REBALANCE,
        before,
        b"",
    )
