"""One group of consumers under the classic protocol (Kafka's ``ClassicGroup``): its members and how far they agree.

Rules only, with the states of :data:`TRANSITIONS`. The coordinator has the timers and the requests that wait.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from aioproducer.errors import (
    FencedInstanceIdException,
    IllegalGenerationException,
    IllegalStateException,
    InconsistentGroupProtocolException,
    RebalanceInProgressException,
    UnknownMemberIdException,
)

CONSUMER = "consumer"
"""The protocol type whose members send their subscriptions."""


MAX_PROTOCOLS = 100
"""Protocols of a member. Kafka has no such limit."""

MAX_METADATA = 1024 * 1024
"""Bytes of metadata of a member. In Kafka a whole group has to fit in a record of this size."""

MAX_SUBSCRIBED = 100_000
"""Topics that different subscriptions of a group name together. With more of them the broker does not look at them."""


class GroupState(Enum):
    """Kafka's ``ClassicGroupState``."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_S = GroupState
TRANSITIONS: dict[GroupState, frozenset[GroupState]] = {
    _S.EMPTY: frozenset({_S.PREPARING_REBALANCE, _S.DEAD}),
    _S.PREPARING_REBALANCE: frozenset({_S.COMPLETING_REBALANCE, _S.EMPTY, _S.DEAD}),
    _S.COMPLETING_REBALANCE: frozenset({_S.STABLE, _S.PREPARING_REBALANCE, _S.DEAD}),
    _S.STABLE: frozenset({_S.PREPARING_REBALANCE, _S.DEAD}),
    _S.DEAD: frozenset(),
}
"""By state, the states that may follow: members join, the leader assigns, the group is stable until members change."""


@dataclass(slots=True)
class Member:
    """A member. ``protocols`` are its assignors in order of preference, each with the metadata for the group's leader.
    Times are milliseconds."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Sequence[tuple[str, bytes]]
    assignment: bytes = b""
    joined: bool = False
    """Whether it has joined the current rebalance."""

    def metadata(self, protocol: str) -> bytes:
        return dict(self.protocols).get(protocol, b"")


class ClassicGroup:
    """The members of one group. Methods raise the exception whose code Kafka answers."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.empty_since_ms = 0
        """When the last member left, in Unix time."""
        self.members: dict[str, Member] = {}
        self._instances: dict[str, str] = {}

    def become(self, state: GroupState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateException(f"group {self.group_id!r} cannot go from {self.state.value} to {state.value}")
        self.state = state

    # members

    def check_protocols(self, protocol_type: str, protocols: Sequence[tuple[str, bytes]]) -> None:
        """Raises unless all members have one of these protocols in common."""
        if not protocol_type or not protocols:
            raise InconsistentGroupProtocolException("a member must know a protocol, and say of what type")
        if len(protocols) > MAX_PROTOCOLS or sum(len(metadata) for _, metadata in protocols) > MAX_METADATA:
            raise InconsistentGroupProtocolException(
                f"a member has at most {MAX_PROTOCOLS} protocols, with {MAX_METADATA} bytes of metadata together"
            )
        if not self.members:
            return
        common = self._known_to_all()
        if protocol_type != self.protocol_type or common.isdisjoint(name for name, _ in protocols):
            raise InconsistentGroupProtocolException(
                f"the members of {self.group_id!r} agree on {self.protocol_type} {sorted(common)}",
            )

    def add(self, member: Member) -> None:
        """Adds a member; the first one leads."""
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self._instances[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.protocol_type = member.protocol_type

    def remove(self, member_id: str) -> None:
        """Another member leads if this one did, one that has joined if there is any."""
        member = self.members.pop(member_id)
        if member.instance_id is not None and self._instances.get(member.instance_id) == member_id:
            del self._instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(sorted(self.members, key=lambda other: not self.members[other].joined)), None)

    def replace(self, old_id: str, new_id: str) -> Member:
        """A static member is back under another id; a client that still uses the old one is fenced."""
        member = self.members[old_id]
        leads = self.leader == old_id
        self.members = {new_id if one == old_id else one: other for one, other in self.members.items()}
        member.member_id = new_id
        if member.instance_id is not None:
            self._instances[member.instance_id] = new_id
        if leads:
            self.leader = new_id
        return member

    def static_member(self, instance_id: str | None) -> str | None:
        """The member with this ``group.instance.id``."""
        return None if instance_id is None else self._instances.get(instance_id)

    def member(self, member_id: str, instance_id: str | None = None) -> Member:
        """Raises ``UNKNOWN_MEMBER_ID``, or ``FENCED_INSTANCE_ID`` if another member is that instance by now."""
        present = self.static_member(instance_id)
        if instance_id is not None and present is None:
            raise UnknownMemberIdException(f"group {self.group_id!r} has no instance {instance_id!r}")
        if present is not None and present != member_id:
            raise FencedInstanceIdException(f"instance {instance_id!r} is another member by now")
        if member_id not in self.members:
            raise UnknownMemberIdException(f"group {self.group_id!r} has no member {member_id!r}")
        return self.members[member_id]

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGenerationException(
                f"group {self.group_id!r} is in generation {self.generation}, not {generation}",
            )

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool
    ) -> Member | None:
        """Raises unless this client may commit offsets: a member, or anyone while the group is empty (returns None).

        Within a transaction a client that names no member need not be one (KIP-447).
        """
        if generation < 0 and self.state is GroupState.EMPTY:
            return None
        if transactional and generation < 0 and not member_id and instance_id is None:
            return None
        member = self.member(member_id, instance_id)
        self.check_generation(generation)
        if self.state is GroupState.COMPLETING_REBALANCE and not transactional:
            raise RebalanceInProgressException(f"group {self.group_id!r} waits for its assignments")
        return member

    def subscribed_topics(self) -> set[str] | None:
        """The topics that the members consume; None if they are unknown: no consumers, or no protocol chosen yet."""
        if not self.members:
            return set()
        if self.protocol_type != CONSUMER or self.protocol is None:
            return None
        found: set[str] = set()
        left = MAX_SUBSCRIBED
        try:
            for subscription in {member.metadata(self.protocol) for member in self.members.values()}:
                topics, count = _topics_of(subscription, left)
                left -= count
                found |= topics
        except (struct.error, ValueError):
            return None
        return found

    # rebalances

    def prepare_rebalance(self) -> None:
        """Begins a rebalance: all members have to join again."""
        unassigned = self.state is GroupState.COMPLETING_REBALANCE
        self.become(GroupState.PREPARING_REBALANCE)
        for member in self.members.values():
            member.joined = False
            if unassigned:
                member.assignment = b""

    @property
    def all_joined(self) -> bool:
        return all(member.joined for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long members have to join: the longest rebalance time-out of all members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def absent(self) -> list[Member]:
        """The members to remove because they have not joined. Static members stay until their session ends."""
        return [member for member in self.members.values() if not member.joined and member.instance_id is None]

    def next_generation(self, now_ms: int) -> None:
        """Completes the joins: the members that are left wait for their assignments; without any the group is empty."""
        self.generation += 1
        if not self.members:
            self.protocol = self.leader = None
            self.empty_since_ms = now_ms
            self.become(GroupState.EMPTY)
            return
        if self.leader is None or not self.members[self.leader].joined:
            self.leader = next((one.member_id for one in self.members.values() if one.joined), self.leader)
        self.protocol = self.select_protocol()
        self.become(GroupState.COMPLETING_REBALANCE)

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that all have. The protocol with the most votes wins."""
        common = self._known_to_all()
        votes = Counter(
            next(name for name, _ in member.protocols if name in common) for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def assign(self, assignments: Mapping[str, bytes]) -> None:
        """Stores the leader's assignments. A member that it left out has an empty one."""
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        self.become(GroupState.STABLE)

    def _known_to_all(self) -> set[str]:
        known = [{name for name, _ in member.protocols} for member in self.members.values()]
        return set.intersection(*known) if known else set()


def _topics_of(subscription: bytes, most: int) -> tuple[set[str], int]:
    """The topics in a consumer's metadata (``ConsumerProtocolSubscription``): they come first in every version.

    Returns how many were named, too. Raises struct.error or ValueError if it is malformed, or names more than ``most``.
    """
    (count,) = struct.unpack_from(">i", subscription, 2)
    if count > most:
        raise ValueError("the members name too many topics")
    at, topics = 6, set()
    for _ in range(count):
        (size,) = struct.unpack_from(">h", subscription, at)
        if size < 0:
            raise ValueError("a topic's name is null")
        topics.add(subscription[at + 2 : at + 2 + size].decode())
        at += 2 + size
    return topics, count
