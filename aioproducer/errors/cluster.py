"""Brokers, leaders and topics that are not, or no longer, where they were."""

from __future__ import annotations

from aioproducer.errors.api import ApiException, InvalidMetadataException, RetriableException
from aioproducer.errors.error_code import ErrorCode


class OffsetOutOfRangeException(ApiException):
    """The offset asked for is not, or no longer, in the partition's log."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class UnknownTopicOrPartitionException(InvalidMetadataException):
    """The broker asked does not know this topic or partition."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    advice = "create the topic, or see whether it was deleted"


class LeaderNotAvailableException(InvalidMetadataException):
    """The partition has no leader at the moment (an election is under way)."""

    code = ErrorCode.LEADER_NOT_AVAILABLE


class NotLeaderOrFollowerException(InvalidMetadataException):
    """The broker asked is no longer the partition's leader."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class BrokerNotAvailableException(ApiException):
    """The broker is not available."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


class ReplicaNotAvailableException(InvalidMetadataException):
    """The replica is not available on the broker asked."""

    code = ErrorCode.REPLICA_NOT_AVAILABLE


class NotControllerException(RetriableException):
    """The broker asked is not the controller."""

    code = ErrorCode.NOT_CONTROLLER


class KafkaStorageException(InvalidMetadataException):
    """The broker could not write to, or read from, its disk."""

    code = ErrorCode.KAFKA_STORAGE_ERROR
    advice = "see the broker's log and its disks"


class ListenerNotFoundException(InvalidMetadataException):
    """The leader has no listener of the kind we connected to."""

    code = ErrorCode.LISTENER_NOT_FOUND


class FencedLeaderEpochException(InvalidMetadataException):
    """Our leader epoch is older than the broker's."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpochException(RetriableException):
    """Our leader epoch is newer than the broker's."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class OffsetNotAvailableException(RetriableException):
    """The leader was just elected and cannot tell this offset yet."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


class UnknownTopicIdException(InvalidMetadataException):
    """The broker does not know this topic id: the topic was deleted, or deleted and created anew."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


class InconsistentTopicIdException(InvalidMetadataException):
    """The topic id in the log differs from the one in the request."""

    code = ErrorCode.INCONSISTENT_TOPIC_ID


class RebootstrapRequiredException(ApiException):
    """The client should start again from its bootstrap servers."""

    code = ErrorCode.REBOOTSTRAP_REQUIRED
