"""Topics that cannot be made or changed."""

from __future__ import annotations

from aioproducer.errors.api import ApiException, InvalidConfigurationException
from aioproducer.errors.error_code import ErrorCode


class InvalidTopicException(InvalidConfigurationException):
    """The topic name is not allowed: 1 to 249 of letters, digits, '.', '_' and '-'."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class TopicExistsException(ApiException):
    """A topic of this name exists already."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitionsException(ApiException):
    """The number of partitions is not possible."""

    code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactorException(InvalidConfigurationException):
    """The replication factor is below 1 or above the number of brokers."""

    code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignmentException(ApiException):
    """The replica assignment is not possible."""

    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class PolicyViolationException(ApiException):
    """A policy of the cluster forbids this."""

    code = ErrorCode.POLICY_VIOLATION


class TopicDeletionDisabledException(ApiException):
    """delete.topic.enable is false on the broker."""

    code = ErrorCode.TOPIC_DELETION_DISABLED
