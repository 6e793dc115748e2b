"""JoinGroup: become a member of a group, or take part in its rebalance. Answered when all members have joined.

Versions 0 to 9; see ``group_coordinator.py``.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.coordinators.classic_group import ClassicGroup, GroupState, Member
from aioproducer.broker.coordinators.group_coordinator import Joining
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 9)

_KNOWN_ID_VERSION = 4
_NULL_PROTOCOL_VERSION = 7
_SKIP_ASSIGNMENT_VERSION = 9


def handle(context: BrokerContext, request: Request, message: JoinGroupRequest) -> None:
    version = request.header.api_version
    client_id = request.header.client_id or ""
    member = Member(
        message.member_id,
        message.group_instance_id,
        client_id,
        f"/{request.connection.address}",
        message.session_timeout_ms,
        message.rebalance_timeout_ms if message.rebalance_timeout_ms >= 0 else message.session_timeout_ms,
        message.protocol_type,
        [(protocol.name, bytes(protocol.metadata)) for protocol in message.protocols],
    )

    waits = True

    def answer(group: ClassicGroup | None, joined: Member | None, code: ErrorCode) -> None:
        nonlocal waits
        waits = False
        if not request.abandoned:
            request.respond(_response(version, group, joined or member, code))

    try:
        Access.of(context, request).check(AclOperation.READ, ResourceType.GROUP, message.group_id)
        check_coordinator(context, message.group_id)
    except ApiException as error:
        answer(None, member, error.code)
        return

    def gone() -> None:
        # It never received its new id, so it cannot come back as this member.
        if waits and not message.member_id:
            context.groups.forget(message.group_id, member)

    context.groups.join(Joining(message.group_id, member, version >= _KNOWN_ID_VERSION), answer)
    request.on_abandon(gone)


def _response(version: int, group: ClassicGroup | None, member: Member, code: ErrorCode) -> JoinGroupResponse:
    nothing = None if version >= _NULL_PROTOCOL_VERSION else ""
    if code or group is None:
        return JoinGroupResponse(error_code=code, protocol_name=nothing, member_id=member.member_id)
    leads = group.leader == member.member_id
    # A restarted leader of a stable group has nothing to assign.
    settled = leads and group.state is GroupState.STABLE
    skips = settled and version >= _SKIP_ASSIGNMENT_VERSION
    others = group.members.values() if leads and (skips or not settled) else ()
    protocol = group.protocol or ""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=protocol,
        leader="" if settled and not skips else group.leader or "",
        skip_assignment=skips,
        member_id=member.member_id,
        members=[
            JoinGroupResponseMember(other.member_id, other.instance_id, other.metadata(protocol)) for other in others
        ],
    )
