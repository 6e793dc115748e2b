"""Coordinators, groups and their offsets."""

from __future__ import annotations

from aioproducer.errors.api import ApiException, RetriableException
from aioproducer.errors.error_code import ErrorCode


class OffsetMetadataTooLarge(ApiException):
    """The metadata string committed with an offset is too long."""

    code = ErrorCode.OFFSET_METADATA_TOO_LARGE


class CoordinatorLoadInProgressException(RetriableException):
    """The coordinator is still loading its state."""

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class UnstableOffsetCommitException(RetriableException):
    """A transaction that has not ended yet wants to commit an offset of this partition."""

    code = ErrorCode.UNSTABLE_OFFSET_COMMIT


class CoordinatorNotAvailableException(RetriableException):
    """There is no coordinator for this key at the moment."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NotCoordinatorException(RetriableException):
    """The broker asked is not the coordinator for this key."""

    code = ErrorCode.NOT_COORDINATOR


class UnknownMemberIdException(ApiException):
    """The group has no such member (any more)."""

    code = ErrorCode.UNKNOWN_MEMBER_ID


class IllegalGenerationException(ApiException):
    """The group has moved on to another generation than the one named."""

    code = ErrorCode.ILLEGAL_GENERATION


class InconsistentGroupProtocolException(ApiException):
    """A member of a group knows no protocol that all others know, too."""

    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidGroupIdException(ApiException):
    """The id of a group is not allowed."""

    code = ErrorCode.INVALID_GROUP_ID


class InvalidSessionTimeoutException(ApiException):
    """A member's session.timeout.ms is not within what the brokers allow."""

    code = ErrorCode.INVALID_SESSION_TIMEOUT


class RebalanceInProgressException(ApiException):
    """The group rebalances: its members have to join anew."""

    code = ErrorCode.REBALANCE_IN_PROGRESS


class GroupMaxSizeReachedException(ApiException):
    """The group has ``group.max.size`` members."""

    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class GroupNotEmptyException(ApiException):
    """The group has members."""

    code = ErrorCode.NON_EMPTY_GROUP


class GroupIdNotFoundException(ApiException):
    """There is no such group."""

    code = ErrorCode.GROUP_ID_NOT_FOUND


class FencedInstanceIdException(ApiException):
    """Another consumer has the group.instance.id by now."""

    code = ErrorCode.FENCED_INSTANCE_ID
