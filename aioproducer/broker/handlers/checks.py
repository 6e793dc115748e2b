"""Checks that the handlers of coordinators share."""

from __future__ import annotations

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.state.committed_offset import CommittedPartition
from aioproducer.broker.state.topic import Topic
from aioproducer.errors import ApiException, InvalidGroupIdException, NotCoordinatorException, error_for
from aioproducer.errors.error_code import ErrorCode


def coordinates(context: BrokerContext, key: str) -> bool:
    """Whether this node coordinates the group or transactional id."""
    return context.state.nodes.coordinator(key) == context.node_id


def check_group(context: BrokerContext, group_id: str) -> None:
    """As :func:`check_coordinator`. Raises for an empty id, too."""
    check_coordinator(context, group_id)
    if not group_id:
        raise InvalidGroupIdException("the group id is empty")


def check_coordinator(context: BrokerContext, key: str) -> None:
    """Raises unless this node coordinates the group or transactional id, and is ready to."""
    if not coordinates(context, key):
        raise NotCoordinatorException(f"node {context.node_id} does not coordinate {key!r}")
    code = context.faults.coordinator_error(context.node_id, key)
    if code is not ErrorCode.NONE:
        raise error_for(code, f"a fault: node {context.node_id} does nothing for {key!r}")


def commit_code(
    context: BrokerContext,
    access: Access,
    name: str,
    topic: Topic | None,
    wanted: CommittedPartition,
    refused: ErrorCode = ErrorCode.NONE,
) -> ErrorCode:
    """What is wrong with an offset that is to be committed; ``refused``: why the group takes none from this client."""
    if not access.may_topic(AclOperation.READ, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if topic is None or topic.partition(wanted.partition_index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if refused:
        return refused
    if len(wanted.committed_metadata or "") > context.config.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def fencing_code(error: ApiException, version: int, fenced_since: int) -> ErrorCode:
    """The error's code; before version ``fenced_since`` clients know ``PRODUCER_FENCED`` by another name."""
    if error.code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code
