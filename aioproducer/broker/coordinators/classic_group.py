"""One group of consumers under the classic protocol (Kafka's ``ClassicGroup``): its members and their agreement.

Only rules, with the states of :data:`TRANSITIONS`. The coordinator has the timers and the waiting requests.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from aioproducer.broker.coordinators.group_memory import OF_MEMBER, GroupMemory, MemoryOfGroup
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
"""Bytes of a member's protocols, with their names. In Kafka a whole group has to fit in a record of this size."""

MAX_SUBSCRIBED = 10_000
"""Topics in all different subscriptions of a group together. If there are more, its subscriptions count as unknown."""


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
"""The states that may follow each state: members join, the leader assigns, the group is stable until members change."""


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

    @property
    def size(self) -> int:
        """Bytes of memory that it takes without its assignment, about."""
        texts = len(self.member_id) + len(self.instance_id or "") + len(self.client_id) + len(self.protocol_type)
        return OF_MEMBER + texts + size_of_protocols(self.protocols)

    def metadata(self, protocol: str) -> bytes:
        return dict(self.protocols).get(protocol, b"")


def size_of_protocols(protocols: Sequence[tuple[str, bytes]]) -> int:
    """Bytes of their names and metadata."""
    return sum(len(name) + len(metadata) for name, metadata in protocols)


class ClassicGroup:
    """The members of one group. Methods raise the exception whose code Kafka answers."""

    def __init__(self, group_id: str, memory: GroupMemory | None = None) -> None:
        self.group_id = group_id
        self.memory = MemoryOfGroup(memory or GroupMemory())
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.empty_since_ms = 0
        """When the last member left, in Unix time."""
        self.was_empty = False
        """Whether the group had no members when the last rebalance began."""
        self.members: dict[str, Member] = {}
        self._instances: dict[str, str] = {}
        self._supported: Counter[str] = Counter()
        """The number of members that support a protocol, by its name (Kafka's ``supportedProtocols``)."""
        self._subscribed: dict[str, set[str] | None] = {}
        """The results of :meth:`subscribed_topics` by protocol, since the last change of a member."""

    def become(self, state: GroupState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise IllegalStateException(f"group {self.group_id!r} cannot go from {self.state.value} to {state.value}")
        self.state = state

    # members

    def check_protocols(self, protocol_type: str, protocols: Sequence[tuple[str, bytes]]) -> None:
        """Raises unless all members have one of these protocols in common."""
        if not protocol_type or not protocols:
            raise InconsistentGroupProtocolException("a member must know a protocol, and say of what type")
        if len(protocols) > MAX_PROTOCOLS or size_of_protocols(protocols) > MAX_METADATA:
            raise InconsistentGroupProtocolException(
                f"a member has at most {MAX_PROTOCOLS} protocols, with {MAX_METADATA} bytes together"
            )
        if not self.members:
            return
        if protocol_type != self.protocol_type or not any(self._is_known_to_all(name) for name, _ in protocols):
            raise InconsistentGroupProtocolException(
                f"the members of {self.group_id!r} agree on {self.protocol_type} {sorted(self._known_to_all())}",
            )

    def add(self, member: Member) -> None:
        """Adds a member; the first one leads."""
        self.members[member.member_id] = member
        self.memory.take(member.size + len(member.assignment))
        self._support(member, 1)
        if member.instance_id is not None:
            self._instances[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.protocol_type = member.protocol_type

    def remove(self, member_id: str) -> None:
        """Another member leads if this one did, one that has joined if there is any."""
        member = self.members.pop(member_id)
        self.memory.take(-member.size - len(member.assignment))
        self._support(member, -1)
        if member.instance_id is not None and self._instances.get(member.instance_id) == member_id:
            del self._instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(sorted(self.members, key=lambda other: not self.members[other].joined)), None)

    def replace(self, old_id: str, new_id: str) -> Member:
        """Gives a static member that joins again a new id; a client that still uses the old one is fenced."""
        member = self.members[old_id]
        leads = self.leader == old_id
        self.memory.take(len(new_id) - len(old_id))
        self.members = {new_id if one == old_id else one: other for one, other in self.members.items()}
        member.member_id = new_id
        if member.instance_id is not None:
            self._instances[member.instance_id] = new_id
        if leads:
            self.leader = new_id
        return member

    def check_change(self, member: Member, protocols: Sequence[tuple[str, bytes]]) -> None:
        """Raises :class:`GroupMaxSizeReachedException` if a member may not have these protocols instead of its own."""
        self.memory.check(size_of_protocols(protocols) - size_of_protocols(member.protocols))

    def change_protocols(self, member: Member, protocols: Sequence[tuple[str, bytes]]) -> None:
        """Replaces the protocols of a member that joins again."""
        self.memory.take(size_of_protocols(protocols) - size_of_protocols(member.protocols))
        self._support(member, -1)
        member.protocols = protocols
        self._support(member, 1)

    def _support(self, member: Member, count: int) -> None:
        for name in {name for name, _ in member.protocols}:
            self._supported[name] += count
            if not self._supported[name]:
                del self._supported[name]
        self._subscribed.clear()

    def _is_known_to_all(self, protocol: str) -> bool:
        return self._supported[protocol] == len(self.members)

    def static_member(self, instance_id: str | None) -> str | None:
        """The member with this ``group.instance.id``."""
        return None if instance_id is None else self._instances.get(instance_id)

    def member(self, member_id: str, instance_id: str | None = None) -> Member:
        """Raises ``UNKNOWN_MEMBER_ID``, or ``FENCED_INSTANCE_ID`` if another member has taken over that instance."""
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
        if self.protocol not in self._subscribed:
            self._subscribed[self.protocol] = self._topics_under(self.protocol)
        return self._subscribed[self.protocol]

    def _topics_under(self, protocol: str) -> set[str] | None:
        found: set[str] = set()
        left = MAX_SUBSCRIBED
        try:
            for subscription in {member.metadata(protocol) for member in self.members.values()}:
                topics, count = _topics_of(subscription, left)
                left -= count
                found |= topics
        except (struct.error, ValueError):
            return None
        return found

    # rebalances

    def prepare_rebalance(self) -> None:
        """Begins a rebalance: all members must join again."""
        unassigned = self.state is GroupState.COMPLETING_REBALANCE
        self.was_empty = self.state is GroupState.EMPTY
        self.become(GroupState.PREPARING_REBALANCE)
        for member in self.members.values():
            member.joined = False
            if unassigned:
                self._assign(member, b"")

    @property
    def all_joined(self) -> bool:
        return all(member.joined for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long members may take to join: the longest rebalance time-out of all members."""
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
        """Stores the leader's assignments. A member that it left out has an empty one.

        Raises :class:`GroupMaxSizeReachedException` if they are too large.
        """
        size = sum(len(one) for member_id, one in assignments.items() if member_id in self.members)
        self.memory.check(size - sum(len(member.assignment) for member in self.members.values()))
        for member in self.members.values():
            self._assign(member, assignments.get(member.member_id, b""))
        self.become(GroupState.STABLE)

    def _assign(self, member: Member, assignment: bytes) -> None:
        self.memory.take(len(assignment) - len(member.assignment))
        member.assignment = assignment

    def _known_to_all(self) -> set[str]:
        first = next(iter(self.members.values()), None)
        return set() if first is None else {name for name, _ in first.protocols if self._is_known_to_all(name)}


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
