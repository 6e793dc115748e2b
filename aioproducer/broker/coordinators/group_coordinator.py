"""The coordinator of all groups: joins, rebalances, and session time-outs.

Follows Kafka's ``GroupMetadataManager`` for the classic protocol: JoinGroup waits until all members have joined (or
the time-out has passed), SyncGroup until the leader has sent the assignments. Members are static if they have a
``group.instance.id`` (KIP-345), and others get their id before they join (KIP-394).

Simplifications: all nodes share the groups, and members are lost with the process: after a restart, offsets expire as
those of groups that never had members. With ``group.initial.rebalance.delay.ms`` the first rebalance of a group that
was empty waits that long once, however many members come meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from uuid import uuid4

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.coordinators.classic_group import ClassicGroup, GroupState, Member
from aioproducer.broker.coordinators.expiry import expired_offsets
from aioproducer.broker.coordinators.group_memory import OF_MEMBER, GroupMemory
from aioproducer.broker.coordinators.group_offsets import GroupOffsets
from aioproducer.broker.coordinators.timers import Timers
from aioproducer.broker.requests.slices import Slices
from aioproducer.errors import (
    ApiException,
    GroupIdNotFoundException,
    GroupMaxSizeReachedException,
    GroupNotEmptyException,
    IllegalGenerationException,
    InconsistentGroupProtocolException,
    InvalidGroupIdException,
    InvalidSessionTimeoutException,
    RebalanceInProgressException,
    UnknownMemberIdException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.timing.clock import Clock

Answer = Callable[["ClassicGroup | None", Member | None, ErrorCode], None]


class Joining(NamedTuple):
    """A request to become a member. ``known``: the client can receive its id before it joins (MEMBER_ID_REQUIRED)."""

    group_id: str
    member: Member
    known: bool


class GroupCoordinator:
    """All groups of the cluster. Every ``answer`` callback is called exactly once, now or later."""

    def __init__(self, config: BrokerConfig, offsets: GroupOffsets, clock: Clock, slices: Slices) -> None:
        self._config = config
        self._clock = clock
        self.offsets = offsets
        self._memory = GroupMemory()
        self._groups: dict[str, ClassicGroup] = {}
        self._pending: dict[str, set[str]] = {}
        self._joins: dict[str, Answer] = {}
        self._syncs: dict[str, Answer] = {}
        self._timers: Timers[tuple[str, str]] = Timers(slices)

    def close(self) -> None:
        """Stops all timers."""
        self._timers.close()

    # queries

    def group_ids(self) -> list[str]:
        """The groups that have or had members, or have committed offsets."""
        return list(dict.fromkeys([*self._groups, *self.offsets.groups()]))

    def is_known(self, group_id: str) -> bool:
        """Whether a group is among :meth:`group_ids`."""
        return group_id in self._groups or self.offsets.is_known(group_id)

    def group(self, group_id: str) -> ClassicGroup:
        """The group with this id, or an empty one."""
        return self._groups.get(group_id) or ClassicGroup(group_id)

    def delete(self, group_id: str) -> None:
        """Deletes an empty group with its offsets."""
        if not self.is_known(group_id):
            raise GroupIdNotFoundException(f"there is no group {group_id!r}")
        if self.group(group_id).members:
            raise GroupNotEmptyException(f"group {group_id!r} has members")
        self._delete(group_id)

    def expire(self) -> Iterator[None]:
        """Removes expired offsets, and groups without offsets and members; yields after each group."""
        retention_ms = self._config.offsets_retention_minutes * 60_000
        for group_id in self.group_ids():
            group, offsets = self.group(group_id), self.offsets.committed(group_id)
            expired = expired_offsets(group, offsets, retention_ms, self._clock.time_ms())
            unstable = self.offsets.unstable(group_id)
            self.offsets.forget(group_id, [partition for partition in expired if partition not in unstable])
            is_empty = group.state is GroupState.EMPTY and not self._pending.get(group_id)
            if is_empty and not unstable and not self.offsets.committed(group_id):
                self._delete(group_id)
            yield

    def _delete(self, group_id: str) -> None:
        group = self._groups.pop(group_id, None)
        for member_id in tuple(self._pending.get(group_id, ())):
            if group is not None:
                self._is_pending_no_more(group, member_id)
        self._pending.pop(group_id, None)
        self.offsets.delete(group_id)

    def check_commit(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> None:
        """Raises unless this member may commit offsets. A commit renews the member's session."""
        group = self._committed_to(group_id, generation)
        member = group.check_commit(member_id, instance_id, generation, transactional=False)
        if member is not None:
            self._heard(group, member)

    def check_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> None:
        """As :meth:`check_commit`, for a commit in a transaction."""
        group = self._committed_to(group_id, generation)
        group.check_commit(member_id, instance_id, generation, transactional=True)

    def _committed_to(self, group_id: str, generation: int) -> ClassicGroup:
        if generation >= 0 and not self.is_known(group_id):
            raise IllegalGenerationException(f"there is no group {group_id!r}, and so no generation {generation}")
        return self.group(group_id)

    # joining

    def join(self, joining: Joining, answer: Answer) -> None:
        """``answer`` is called with the member and its group when the rebalance completes its joins."""
        try:
            self._join(joining, answer)
        except ApiException as error:
            answer(None, joining.member, error.code)

    def _join(self, joining: Joining, answer: Answer) -> None:
        group_id, wanted, known = joining
        config = self._config
        if not group_id:
            raise InvalidGroupIdException("the group id is empty")
        shortest, longest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        if not shortest <= wanted.session_timeout_ms <= longest:
            raise InvalidSessionTimeoutException(f"session.timeout.ms must be {shortest} to {longest}")
        if wanted.member_id and group_id not in self._groups:
            raise UnknownMemberIdException(f"there is no group {group_id!r}")
        group = self._groups.get(group_id) or ClassicGroup(group_id, self._memory)
        group.check_protocols(wanted.protocol_type, wanted.protocols)
        self._groups[group_id] = group
        pending = self._pending.setdefault(group_id, set())
        if not wanted.member_id:
            self._join_new(group, wanted, known, answer)
        elif wanted.member_id in pending:
            group.memory.check(wanted.size)
            self._is_pending_no_more(group, wanted.member_id)
            self._add(group, wanted, answer)
        else:
            self._rejoin(group, group.member(wanted.member_id, wanted.instance_id), wanted, answer)

    def _join_new(self, group: ClassicGroup, wanted: Member, known: bool, answer: Answer) -> None:
        if group.static_member(wanted.instance_id) is None:
            self._check_size(group)
        wanted.member_id = f"{wanted.instance_id or wanted.client_id}-{uuid4()}"
        present = group.static_member(wanted.instance_id)
        if present is not None:
            group.check_change(group.members[present], wanted.protocols)
            self._turn_away(group, present, ErrorCode.FENCED_INSTANCE_ID)
            member = group.replace(present, wanted.member_id)
            self._rejoin(group, member, wanted, answer, back=True)
        elif known and wanted.instance_id is None:
            member_id, size = wanted.member_id, OF_MEMBER + len(wanted.member_id)
            group.memory.check(size)
            group.memory.take(size)
            self._pending[group.group_id].add(member_id)
            self._start(group, member_id, wanted.session_timeout_ms, lambda: self._pending_gone(group, member_id))
            answer(group, wanted, ErrorCode.MEMBER_ID_REQUIRED)
        else:
            group.memory.check(wanted.size)
            self._add(group, wanted, answer)

    def _check_size(self, group: ClassicGroup) -> None:
        if len(group.members) + len(self._pending.get(group.group_id, ())) >= self._config.group_max_size:
            raise GroupMaxSizeReachedException(f"group {group.group_id!r} has group.max.size members")

    def _add(self, group: ClassicGroup, member: Member, answer: Answer) -> None:
        group.add(member)
        self._wait_for_join(group, member, answer)
        self._rebalance(group)

    def _rejoin(
        self, group: ClassicGroup, member: Member, wanted: Member, answer: Answer, *, back: bool = False
    ) -> None:
        changed = list(member.protocols) != list(wanted.protocols)
        if changed:
            group.check_change(member, wanted.protocols)
            group.change_protocols(member, wanted.protocols)
        member.session_timeout_ms = wanted.session_timeout_ms
        member.rebalance_timeout_ms = wanted.rebalance_timeout_ms
        state = group.state
        # A leader that joins again requests a new assignment; after a restart it gets its previous one.
        same = not changed and (back or group.leader != member.member_id)
        # A restarted client has a new id, and the leader would assign to the old one.
        waits_too = state is GroupState.COMPLETING_REBALANCE and not changed and not back
        if (state is GroupState.STABLE and same) or waits_too:
            self._heard(group, member)
            answer(group, member, ErrorCode.NONE)
            return
        self._wait_for_join(group, member, answer)
        self._rebalance(group)

    def _wait_for_join(self, group: ClassicGroup, member: Member, answer: Answer) -> None:
        earlier = self._joins.get(member.member_id)
        if earlier is not None:
            earlier(None, member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._joins[member.member_id] = answer
        self._stop(group, member.member_id)

    def _rebalance(self, group: ClassicGroup) -> None:
        """Begins a rebalance unless there is one, and completes it if all members have joined."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            for member_id in group.members:
                sync = self._syncs.pop(member_id, None)
                if sync is not None:
                    self._heard(group, group.members[member_id])
                    sync(None, None, ErrorCode.REBALANCE_IN_PROGRESS)
            group.prepare_rebalance()
            delay = self._config.group_initial_rebalance_delay_ms if group.was_empty else 0
            self._start(group, "", delay or group.rebalance_timeout_ms, lambda: self._complete_join(group))
        self._mark_joined(group)
        self._complete_if_all_joined(group)

    def _mark_joined(self, group: ClassicGroup) -> None:
        for member in group.members.values():
            member.joined = member.member_id in self._joins

    def _complete_if_all_joined(self, group: ClassicGroup) -> None:
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        if group.was_empty:  # as in Kafka, clients that have only received their id do not delay it
            waits = bool(self._config.group_initial_rebalance_delay_ms)
        else:
            waits = bool(self._pending.get(group.group_id))
        if not waits and group.all_joined:
            self._complete_join(group)

    def _complete_join(self, group: ClassicGroup) -> None:
        self._stop(group, "")
        for member in group.absent():
            self._drop(group, member.member_id)
        if group.members and not any(member.joined for member in group.members.values()):
            # Only static members, none of which has joined: they stay until their sessions end.
            self._start(group, "", group.rebalance_timeout_ms, lambda: self._complete_join(group))
            return
        group.next_generation(self._clock.time_ms())
        if group.members:
            self._start(group, "", group.rebalance_timeout_ms, lambda: self._not_synced(group))
        for member in list(group.members.values()):
            answer = self._joins.pop(member.member_id, None)
            if answer is not None:
                self._heard(group, member)
                answer(group, member, ErrorCode.NONE)

    def forget(self, group_id: str, member: Member) -> None:
        """Removes a member whose client left before it received its new id; a static member stays."""
        group = self._groups.get(group_id)
        if group is None or group.members.get(member.member_id) is not member:
            return
        if member.instance_id is None:
            self._gone(group, member)
        elif member.member_id in self._joins:
            self._joins[member.member_id] = _ignore

    # assignments

    def sync(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        protocol: tuple[str | None, str | None],
        assignments: Mapping[str, bytes],
        answer: Answer,
    ) -> None:
        """``answer`` is called with the member and its group when the leader has assigned."""
        try:
            group = self.group(group_id)
            member = group.member(member_id, instance_id)
            group.check_generation(generation)
            for said, agreed in zip(protocol, (group.protocol_type, group.protocol), strict=True):
                if said is not None and said != agreed:
                    raise InconsistentGroupProtocolException(f"{said!r} is not what {group_id!r} uses")
            if group.state is GroupState.PREPARING_REBALANCE:
                raise RebalanceInProgressException(f"group {group_id!r} rebalances")
            assigns = group.state is GroupState.COMPLETING_REBALANCE and member_id == group.leader
            if assigns:
                group.assign(assignments)
        except GroupMaxSizeReachedException:
            answer(None, None, ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka, of a group that does not fit in a record
            return
        except ApiException as error:
            answer(None, None, error.code)
            return
        if not assigns and group.state is GroupState.STABLE:
            self._heard(group, member)
            answer(group, member, ErrorCode.NONE)
            return
        self._syncs[member_id] = answer
        self._stop(group, member_id)
        if assigns:
            self._stop(group, "")
            for other in list(group.members.values()):
                waiting = self._syncs.pop(other.member_id, None)
                if waiting is not None:
                    self._heard(group, other)
                    waiting(group, other, ErrorCode.NONE)

    def _not_synced(self, group: ClassicGroup) -> None:
        """Removes the members that did not send SyncGroup within the rebalance time-out."""
        for member_id in [member_id for member_id in group.members if member_id not in self._syncs]:
            self._drop(group, member_id)
        self._rebalance(group)

    # staying and leaving

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None) -> None:
        """Renews a member's session. Raises errors for the member, such as ``REBALANCE_IN_PROGRESS``."""
        group = self.group(group_id)
        member = group.member(member_id, instance_id)
        group.check_generation(generation)
        self._heard(group, member)
        if group.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgressException(f"group {group_id!r} rebalances")

    def leave(self, group_id: str, member_id: str, instance_id: str | None) -> None:
        """Removes a member; for a static member the instance id suffices."""
        group = self.group(group_id)
        pending = self._pending.get(group_id, set())
        if member_id in pending:
            self._is_pending_no_more(group, member_id)
            self._complete_if_all_joined(group)
            return
        if not member_id:
            member_id = group.static_member(instance_id) or ""
        self._gone(group, group.member(member_id, instance_id))

    def _gone(self, group: ClassicGroup, member: Member) -> None:
        self._drop(group, member.member_id)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE):
            self._rebalance(group)

    def _pending_gone(self, group: ClassicGroup, member_id: str) -> None:
        self._is_pending_no_more(group, member_id)
        self._complete_if_all_joined(group)

    def _is_pending_no_more(self, group: ClassicGroup, member_id: str) -> None:
        self._pending[group.group_id].discard(member_id)
        group.memory.take(-OF_MEMBER - len(member_id))
        self._stop(group, member_id)

    def _drop(self, group: ClassicGroup, member_id: str) -> None:
        self._turn_away(group, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        group.remove(member_id)

    def _turn_away(self, group: ClassicGroup, member_id: str, code: ErrorCode) -> None:
        """Answers the waiting requests of a member with an error."""
        self._stop(group, member_id)
        for waiting in (self._joins.pop(member_id, None), self._syncs.pop(member_id, None)):
            if waiting is not None:
                waiting(None, group.members[member_id], code)

    # timers

    def _heard(self, group: ClassicGroup, member: Member) -> None:
        """Renews the member's session, unless one of its requests waits for an answer."""
        if member.member_id in self._joins or member.member_id in self._syncs:
            return
        self._start(group, member.member_id, member.session_timeout_ms, lambda: self._gone(group, member))

    def _start(self, group: ClassicGroup, what: str, delay_ms: int, then: Callable[[], None]) -> None:
        """Starts the timer of ``what``: a member's id, or empty for the group's rebalance."""
        self._timers.start((group.group_id, what), delay_ms, then)

    def _stop(self, group: ClassicGroup, what: str) -> None:
        self._timers.stop((group.group_id, what))


def _ignore(group: ClassicGroup | None, member: Member | None, code: ErrorCode) -> None:
    """The answer callback of a client that has disconnected."""
