"""Groups in virtual time: which members wait for which, and for how long."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.coordinators import group_memory
from aioproducer.broker.coordinators.classic_group import ClassicGroup, GroupState, Member
from aioproducer.broker.coordinators.group_coordinator import GroupCoordinator, Joining
from aioproducer.broker.coordinators.group_offsets import GroupOffsets
from aioproducer.broker.requests.slices import Slices
from aioproducer.errors import ApiException, GroupIdNotFoundException, GroupNotEmptyException
from aioproducer.errors.error_code import ErrorCode
from tests.support.manual_clock import ManualClock
from tests.support.virtual_time import World, virtual

SESSION_MS, REBALANCE_MS = 10_000, 60_000


class Client:
    """One consumer, and all that it was answered."""

    def __init__(self, groups: GroupCoordinator, name: str, *, instance_id: str | None = None) -> None:
        self.groups = groups
        self.name = name
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.leads = False
        self.requests = 0
        self.answers: list[tuple[str, ErrorCode]] = []
        self.assignment: bytes | None = None

    def join(self, *, known: bool = True) -> None:
        self.requests += 1
        protocols = [("range", self.name.encode())]
        member = Member(
            self.member_id, self.instance_id, self.name, "", SESSION_MS, REBALANCE_MS, "consumer", protocols
        )
        self.groups.join(Joining("g", member, known), self._joined)

    def _joined(self, group: ClassicGroup | None, member: Member | None, code: ErrorCode) -> None:
        self.answers.append(("join", code))
        if member is not None and code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = member.member_id
        if code is ErrorCode.NONE and group is not None:
            self.generation, self.leads = group.generation, group.leader == self.member_id
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def enter(self) -> None:
        """Both steps of joining (KIP-394)."""
        self.join()
        assert self.answers[-1] == ("join", ErrorCode.MEMBER_ID_REQUIRED)
        self.join()

    def sync(self, **assignments: bytes) -> None:
        self.requests += 1
        self.groups.sync(
            "g", self.generation, self.member_id, self.instance_id, ("consumer", "range"), assignments, self._synced
        )

    def _synced(self, group: ClassicGroup | None, member: Member | None, code: ErrorCode) -> None:
        self.answers.append(("sync", code))
        if member is not None:
            self.assignment = member.assignment

    def heartbeat(self) -> ErrorCode:
        try:
            self.groups.heartbeat("g", self.generation, self.member_id, self.instance_id)
            return ErrorCode.NONE
        except ApiException as error:
            return error.code

    def leave(self) -> ErrorCode:
        try:
            self.groups.leave("g", self.member_id, self.instance_id)
            return ErrorCode.NONE
        except ApiException as error:
            return error.code


def make(**configs: Any) -> GroupCoordinator:
    clock = ManualClock()
    return GroupCoordinator(BrokerConfig.of(configs), GroupOffsets(), clock, Slices(clock))


def two_members(groups: GroupCoordinator) -> tuple[Client, Client]:
    """A stable group of two; the first one leads."""
    first, second = Client(groups, "a"), Client(groups, "b")
    first.enter()
    second.enter()
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    first.join()
    assert (first.generation, second.generation, first.leads, second.leads) == (2, 2, True, False)
    second.sync()
    first.sync(**{first.member_id: b"1", second.member_id: b"2"})
    assert (first.assignment, second.assignment) == (b"1", b"2")
    assert groups.group("g").state is GroupState.STABLE
    return first, second


@virtual
async def test_a_group_of_two(world: World) -> None:
    groups = make()
    first, second = two_members(groups)
    assert first.heartbeat() is second.heartbeat() is ErrorCode.NONE
    assert second.leave() is ErrorCode.NONE
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    first.join()
    first.sync(**{first.member_id: b"all"})
    assert (first.generation, first.assignment) == (3, b"all")
    assert second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert first.leave() is ErrorCode.NONE
    assert (groups.group("g").state, groups.group("g").members) == (GroupState.EMPTY, {})


@virtual
async def test_a_member_silent_for_its_session_timeout_is_removed(world: World) -> None:
    groups = make()
    first, second = two_members(groups)
    await asyncio.sleep(SESSION_MS / 1000 - 1)
    assert first.heartbeat() is ErrorCode.NONE
    await asyncio.sleep(2)
    assert second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    await asyncio.sleep(3600)
    assert groups.group("g").state is GroupState.EMPTY


@virtual
async def test_a_member_that_does_not_rejoin_in_time_is_removed(world: World) -> None:
    groups = make()
    first, second = two_members(groups)
    third = Client(groups, "c")
    third.enter()
    first.join()
    for _ in range(REBALANCE_MS // 5000):
        assert third.answers[-1] == ("join", ErrorCode.MEMBER_ID_REQUIRED), "it waits for the second"
        assert second.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        await asyncio.sleep(5)
    await asyncio.sleep(1)
    assert (first.generation, third.generation) == (3, 3)
    assert second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    groups.close()


@virtual
async def test_a_leader_that_does_not_assign_is_dropped(world: World) -> None:
    groups = make()
    first, second = two_members(groups)
    first.join()
    second.join()
    second.sync()
    for _ in range(REBALANCE_MS // 5000 + 1):
        first.heartbeat()
        await asyncio.sleep(5)
    assert second.answers[-1] == ("sync", ErrorCode.REBALANCE_IN_PROGRESS)
    second.join()
    assert second.leads
    assert first.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    groups.close()


@virtual
async def test_a_static_member_is_back_without_a_rebalance(world: World) -> None:
    groups = make()
    old = Client(groups, "a", instance_id="i")
    old.join()
    old.sync(**{old.member_id: b"all"})
    new = Client(groups, "a", instance_id="i")
    new.join()
    assert (new.generation, new.answers[-1]) == (old.generation, ("join", ErrorCode.NONE))
    new.sync()
    assert new.assignment == b"all"
    assert old.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    new.member_id = ""
    assert new.leave() is ErrorCode.NONE, "the instance is enough"
    assert groups.group("g").members == {}


@virtual
async def test_the_first_rebalance_may_wait_for_more_members(world: World) -> None:
    groups = make(group_initial_rebalance_delay_ms=3000)
    first, second = Client(groups, "a"), Client(groups, "b")
    first.enter()
    await asyncio.sleep(2)
    second.enter()
    assert (first.generation, second.generation) == (-1, -1)
    await asyncio.sleep(2)
    assert (first.generation, second.generation) == (1, 1)
    groups.close()


@virtual
async def test_an_impossible_join_is_refused(world: World) -> None:
    groups = make()
    client = Client(groups, "a")
    client.member_id = "nosuch"
    client.join()
    assert client.answers == [("join", ErrorCode.UNKNOWN_MEMBER_ID)]
    short = Member("", None, "a", "", 5, 5, "consumer", [("range", b"")])
    for joining, code in (
        (Joining("g", short, False), ErrorCode.INVALID_SESSION_TIMEOUT),
        (Joining("", short, False), ErrorCode.INVALID_GROUP_ID),
    ):
        groups.join(joining, client._joined)
        assert client.answers[-1] == ("join", code)
    assert groups.group_ids() == []


@virtual
async def test_a_client_that_disconnects_before_it_gets_its_id_delays_no_rebalance(world: World) -> None:
    groups = make()
    first, ghost = Client(groups, "a"), Client(groups, "b")
    first.enter()
    ghost.join(known=False)
    (member,) = [one for one in groups.group("g").members.values() if one.client_id == ghost.name]
    groups.forget("g", member)
    groups.forget("g", member)
    groups.forget("unknown", member)
    first.join()
    assert first.answers[-1] == ("join", ErrorCode.NONE)
    assert list(groups.group("g").members) == [first.member_id]


@virtual
async def test_a_static_member_that_leaves_while_it_joins_stays_and_is_answered_no_more(world: World) -> None:
    groups = make()
    first, static = Client(groups, "a"), Client(groups, "b", instance_id="i")
    first.enter()
    static.join()
    member = groups.group("g").members[groups.group("g").static_member("i") or ""]
    groups.forget("g", member)
    first.join()
    assert first.answers[-1] == ("join", ErrorCode.NONE)
    assert static.answers == []
    assert member.member_id in groups.group("g").members


@virtual
async def test_a_group_refuses_members_beyond_its_limit_but_static_ones_come_back(world: World) -> None:
    groups = make(group_max_size=2)
    first, second, third = Client(groups, "a"), Client(groups, "b", instance_id="i"), Client(groups, "c")
    first.enter()
    second.join()
    third.join()
    assert third.answers == [("join", ErrorCode.GROUP_MAX_SIZE_REACHED)]
    second.join()
    assert ErrorCode.GROUP_MAX_SIZE_REACHED not in dict(second.answers).values()


@virtual
async def test_only_empty_groups_are_deleted(world: World) -> None:
    groups = make()
    client = Client(groups, "a")
    client.enter()
    with pytest.raises(GroupNotEmptyException):
        groups.delete("g")
    client.leave()
    groups.delete("g")
    with pytest.raises(GroupIdNotFoundException):
        groups.delete("g")


@virtual
async def test_a_client_that_never_returns_with_its_id_delays_others_only_briefly(world: World) -> None:
    groups = make()
    first, second = Client(groups, "a"), Client(groups, "b")
    first.enter()
    first.sync(**{first.member_id: b"all"})
    second.join()  # receives its id, and is not seen again
    first.join()
    assert first.generation == 1
    await asyncio.sleep(SESSION_MS / 1000 + 1)
    assert first.generation == 2
    groups.close()


@virtual
async def test_a_member_that_joins_again_while_it_waits_gets_both_answers(world: World) -> None:
    groups = make()
    first, second = Client(groups, "a"), Client(groups, "b")
    first.enter()
    second.enter()
    waiting = second.member_id
    second.join()
    assert second.answers[-1] == ("join", ErrorCode.UNKNOWN_MEMBER_ID), "of the first of the two"
    second.member_id = waiting
    first.join()
    assert (second.answers[-1], second.generation) == (("join", ErrorCode.NONE), 2)
    assert len(second.answers) == second.requests
    groups.close()


ACTIONS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["join", "sync", "heartbeat", "leave", "wait"])), max_size=60
)


@virtual
async def play(world: World, *, actions: list[tuple[int, str]]) -> None:
    groups = make()
    clients = [Client(groups, str(number), instance_id="i" if number == 3 else None) for number in range(4)]
    leaders: dict[int, set[str]] = {}
    for number, action in actions:
        client = clients[number]
        if action == "wait":
            await asyncio.sleep(4)
        elif action == "join":
            client.join()
        elif action == "sync":
            members = groups.group("g").members
            client.sync(**{member_id: member_id.encode() for member_id in members} if client.leads else {})
        else:
            getattr(client, action)()
        for one in clients:
            if one.leads and one.answers[-1] == ("join", ErrorCode.NONE):
                leaders.setdefault(one.generation, set()).add(one.name)
        assert all(len(names) == 1 for names in leaders.values()), "one leader in a generation"
    await asyncio.sleep(3600)
    assert [len(client.answers) for client in clients] == [client.requests for client in clients], (
        "each request was answered"
    )
    group = groups.group("g")
    assert (group.state, group.members) == (GroupState.EMPTY, {}), "all sessions have ended"
    assert not groups._timers


@given(actions=ACTIONS)
def test_every_request_of_members_is_answered_once_and_in_the_end_none_is_left(
    actions: list[tuple[int, str]],
) -> None:
    play(actions=actions)


class TestMemory:
    """What members send stays until their sessions end, so it is bounded for all groups together."""

    @virtual
    async def test_a_client_without_an_id_takes_little_whatever_it_sends(self, world: World) -> None:
        groups = make()
        protocols = [("range", bytes(1_000_000))]
        for number in range(3):
            member = Member("", None, "c", "", SESSION_MS, REBALANCE_MS, "consumer", protocols)
            groups.join(Joining(f"g{number}", member, True), lambda group, member, code: None)
        assert groups._memory.used < 10_000
        del member
        assert not [one for one in gc.get_referrers(protocols) if isinstance(one, Member)]
        await asyncio.sleep(SESSION_MS / 1000 + 1)
        assert groups._memory.used == 0

    @virtual
    async def test_without_room_nobody_joins_and_a_leader_cannot_assign(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(group_memory, "MOST_OF_GROUP", 20_000)
        groups = make()
        first, second = two_members(groups)
        first.join()
        second.join()
        codes = []
        for size in (20_000, 100):
            first.sync(**{first.member_id: bytes(size)})
            codes.append(first.answers[-1])
        assert codes == [("sync", ErrorCode.UNKNOWN_SERVER_ERROR), ("sync", ErrorCode.NONE)]
        third = Client(groups, "c" * 30_000)
        third.join()
        assert third.answers == [("join", ErrorCode.GROUP_MAX_SIZE_REACHED)]
        assert first.leave() is second.leave() is ErrorCode.NONE
        assert groups._memory.used == 0


@virtual
async def test_a_static_member_that_is_back_before_the_assignment_gets_one(world: World) -> None:
    groups = make()
    first, second = Client(groups, "a", instance_id="a"), Client(groups, "b", instance_id="b")
    first.join()
    second.join()
    first.join()
    assert (first.generation, second.generation) == (2, 2)
    back = Client(groups, "b", instance_id="b")
    back.join()
    first.sync(**{first.member_id: b"1", second.member_id: b"2"})
    assert first.answers[-1] == ("sync", ErrorCode.REBALANCE_IN_PROGRESS)
    first.join()
    assert (first.generation, back.generation) == (3, 3)
    back.sync()
    first.sync(**{first.member_id: b"1", back.member_id: b"2"})
    assert (first.assignment, back.assignment) == (b"1", b"2")


@virtual
async def test_an_empty_group_does_not_wait_for_members_that_only_requested_an_id(world: World) -> None:
    groups = make()
    for _ in range(2):  # not only the first time in its life
        Client(groups, "silent").join()
        honest = Client(groups, "honest")
        honest.enter()
        assert honest.answers[-1] == ("join", ErrorCode.NONE)
        assert honest.leave() is ErrorCode.NONE
        await asyncio.sleep(0.1)
        assert groups.group("g").state is GroupState.EMPTY


@virtual
async def test_the_first_rebalance_of_an_empty_group_is_delayed_each_time(world: World) -> None:
    groups = make(group_initial_rebalance_delay_ms=3000)
    for _ in range(2):
        client = Client(groups, "a")
        client.enter()
        assert len(client.answers) == 1
        await asyncio.sleep(3.1)
        assert client.answers[-1] == ("join", ErrorCode.NONE)
        assert client.leave() is ErrorCode.NONE
