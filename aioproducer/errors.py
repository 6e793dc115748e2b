"""Everything that can go wrong, as one tree.

    KafkaError
    ├── ConfigException                 a config that is unknown, impossible or not supported yet
    ├── SerializationException          a key, value or header that cannot become bytes
    ├── IllegalArgumentException        an argument that can never be right (misuse)
    │   └── PartitionerException        the user's partitioner failed, or answered nonsense
    ├── IllegalStateException           a call that the object's state does not allow (misuse)
    ├── SchemaException                 bytes that are not a message of Kafka's protocol
    ├── InvalidReceiveException         a frame whose length cannot be right (often not a Kafka broker at all)
    ├── DeliveryError                   mixed into whatever ends a delivery: adds ``outcome`` and ``topic_partition``
    └── ApiException                    everything Kafka has a number for
        ├── RetriableException
        │   └── InvalidMetadataException     also asks for fresh metadata
        └── …                           one class per error the clients meet

Names and numbers are Kafka's (``org.apache.kafka.common.protocol.Errors``, 4.3.1). Class attributes say what a
caller may do about an error: ``retriable`` (the same request may succeed later), ``refresh_metadata`` (the cluster has
changed), ``abortable`` (abort the transaction, then go on), ``fatal`` (this producer cannot be used any more), and
``advice`` (what to do about it).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from aioproducer.error_code import ErrorCode
from aioproducer.printable import printable
from aioproducer.types import LedgerEntry


class Outcome(Enum):
    """What is known about a record whose delivery failed."""

    NOT_SENT = "not_sent"
    """Proven absent: it is not in the log and never will be."""
    UNKNOWN = "unknown"
    """It may be in the log: its bytes left, and no answer settled what became of them."""


class KafkaError(Exception):
    """The root of every error this package raises on purpose. Its text is one line, whatever a broker told."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    retriable: ClassVar[bool] = False
    refresh_metadata: ClassVar[bool] = False
    abortable: ClassVar[bool] = False
    fatal: ClassVar[bool] = False
    advice: ClassVar[str] = ""
    """What to do about it, where general advice is possible."""
    refused_records: Mapping[int, str] = MappingProxyType({})
    """By index in the batch, why the broker refuses a record (KIP-467); the batch's other records are fine."""

    def __str__(self) -> str:
        return printable(super().__str__())

    def fresh(self) -> Self:
        """A copy without traceback or context, to be raised.

        One failure may be raised for thousands of waiters; with each of them, a shared exception object's traceback
        would grow.
        """
        return _copied(self).with_traceback(None)


E = TypeVar("E", bound=KafkaError)


def _copied(error: E) -> E:
    twin = copy.copy(error)
    if error.__cause__ is not None:  # setting it at all would hide the context that the copy is raised in
        twin.__cause__ = error.__cause__
    return twin


class ConfigException(KafkaError, ValueError):
    """A config is unknown, impossible, contradicts another one, or names something that is not supported.

    ``name`` and ``value`` tell which; a value that may be a secret is never in the message.
    """

    def __init__(self, message: str, *, name: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.name = name
        self.value = value


class SerializationException(KafkaError, ValueError):
    """A key, value or header could not be turned into bytes."""


class IllegalArgumentException(KafkaError, ValueError):
    """An argument that can never be right: a negative partition or timestamp, say."""


class PartitionerException(IllegalArgumentException):
    """The user's partitioner failed, or returned what is not a partition of the topic."""


class IllegalStateException(KafkaError, RuntimeError):
    """The call is not allowed in the object's present state: closed, not started, another loop, another process."""


class SchemaException(KafkaError, ValueError):
    """Bytes that cannot be read as the message they should be; names the message, the field and the position."""


class InvalidReceiveException(KafkaError):
    """A frame length that is negative or beyond the limit: the other side does not speak Kafka's protocol here."""


class DataDirectoryException(KafkaError):
    """An embedded broker's data directory cannot be used: another broker has it, or it is of another cluster."""


class DeliveryError(KafkaError):
    """Mixed into the error that ends a delivery, so ``except TimeoutException`` and ``except DeliveryError`` both work.

    ``outcome`` says whether the record is proven absent from the log or may be in it.
    """

    outcome: Outcome = Outcome.UNKNOWN
    topic_partition: tuple[str, int] | None = None

    def told_of(self, index: int) -> DeliveryError:
        """The error for the record at ``index`` of the batch: a new one each time, like ``fresh``."""
        told = self.fresh()
        if not self.refused_records:
            return told
        if index in self.refused_records:
            told.args = (f"{self._where()}: {self.refused_records[index] or type(self).__doc__}",)
            return told
        refused = ", ".join(map(str, sorted(self.refused_records)))
        alone = KafkaError(f"{self._where()}: not appended, as its batch had records that were refused: {refused}")
        return DeliveryError.of(alone, self.outcome, self.topic_partition)

    def _where(self) -> str:
        return "{}-{}".format(*self.topic_partition) if self.topic_partition else "the record"

    @staticmethod
    def of(error: KafkaError, outcome: Outcome, topic_partition: tuple[str, int] | None = None) -> DeliveryError:
        """``error`` as the end of a delivery: same class, message and cause, plus the outcome."""
        ended: KafkaError = _copied(error)
        if not isinstance(ended, DeliveryError):
            ended.__class__ = _delivery_class(type(error))
        assert isinstance(ended, DeliveryError)
        ended.outcome = outcome
        ended.topic_partition = topic_partition
        return ended

    def __reduce__(self) -> tuple[Any, ...]:
        plain = _PLAIN_CLASS.get(type(self), type(self))
        return _rebuild, (plain, self.args, self.__dict__)


_DELIVERY_CLASS: dict[type[KafkaError], type[KafkaError]] = {}
_PLAIN_CLASS: dict[type[KafkaError], type[KafkaError]] = {}


def _delivery_class(plain: type[KafkaError]) -> type[KafkaError]:
    made = _DELIVERY_CLASS.get(plain)
    if made is None:
        namespace = {"__module__": plain.__module__, "__doc__": plain.__doc__, "__qualname__": plain.__qualname__}
        made = type(plain.__name__, (DeliveryError, plain), namespace)
        _DELIVERY_CLASS[plain] = made
        _PLAIN_CLASS[made] = plain
    return made


def _rebuild(plain: type[KafkaError], args: tuple[Any, ...], state: dict[str, Any]) -> KafkaError:
    error = plain.__new__(plain)
    error.args = args
    if not issubclass(plain, DeliveryError):
        error.__class__ = _delivery_class(plain)
    error.__dict__.update(state)
    return error


class ApiException(KafkaError):
    """An error that has a number in Kafka's protocol; ``code`` is that number."""


class RetriableException(ApiException):
    """The same request may succeed later."""

    retriable = True


class InvalidMetadataException(RetriableException):
    """The same request may succeed later, elsewhere: what we know of the cluster is out of date."""

    refresh_metadata = True


class InvalidConfigurationException(ApiException):
    """The broker refuses a config or an argument."""

    code = ErrorCode.INVALID_CONFIG


class AuthorizationException(InvalidConfigurationException):
    """The broker knows who we are and does not allow this."""


class AuthenticationException(InvalidConfigurationException):
    """Authentication failed, or was required and did not happen. Trying again changes nothing."""


class SslAuthenticationException(AuthenticationException):
    """The TLS handshake failed: one side does not trust the other's certificate, or they have no protocol in common."""


class SaslAuthenticationException(AuthenticationException):
    """The broker did not accept the credentials."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    advice = "see sasl.mechanism and the credentials"


class UnsupportedSaslMechanismException(AuthenticationException):
    """The broker has no such SASL mechanism enabled."""

    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    advice = "choose another sasl.mechanism"


class IllegalSaslStateException(AuthenticationException):
    """The request does not belong to this point of an authentication: the listener has no SASL, maybe."""

    code = ErrorCode.ILLEGAL_SASL_STATE
    advice = "see security.protocol"


class UnknownServerException(ApiException):
    """The broker met an error it could not name; its log says more."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetOutOfRangeException(ApiException):
    """The offset asked for is not, or no longer, in the partition's log."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptRecordException(RetriableException):
    """A record batch failed its CRC or its structure is broken."""

    code = ErrorCode.CORRUPT_MESSAGE
    advice = "the bytes were damaged on their way or in a memory: look at network and hardware"


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


class TimeoutException(RetriableException):
    """Something did not happen within its time-out; the message names which one.

    ``ledger`` tells what a record's time was spent on; its entries add up to it. Empty where no record waited.
    """

    code = ErrorCode.REQUEST_TIMED_OUT
    ledger: tuple[LedgerEntry, ...] = ()


class BrokerNotAvailableException(ApiException):
    """The broker is not available."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


class ReplicaNotAvailableException(InvalidMetadataException):
    """The replica is not available on the broker asked."""

    code = ErrorCode.REPLICA_NOT_AVAILABLE


class RecordTooLargeException(ApiException):
    """A record, or the batch it makes, is larger than the limit the message names."""

    code = ErrorCode.MESSAGE_TOO_LARGE
    advice = "raise max.message.bytes of the topic (message.max.bytes of the brokers), or send smaller records"


class OffsetMetadataTooLarge(ApiException):
    """The metadata string committed with an offset is too long."""

    code = ErrorCode.OFFSET_METADATA_TOO_LARGE


class NetworkException(InvalidMetadataException):
    """The connection ended before the broker's answer was received."""

    code = ErrorCode.NETWORK_EXCEPTION


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


class InvalidTopicException(InvalidConfigurationException):
    """The topic name is not allowed: 1 to 249 of letters, digits, '.', '_' and '-'."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class RecordBatchTooLargeException(InvalidConfigurationException):
    """The batch is larger than the broker's segment size."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE
    advice = "lower batch.size, or raise segment.bytes of the topic"


class NotEnoughReplicasException(RetriableException):
    """Fewer replicas are in sync than min.insync.replicas asks for; nothing was appended."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS
    advice = "bring the replicas back, or lower min.insync.replicas of the topic"


class NotEnoughReplicasAfterAppendException(RetriableException):
    """Appended, but fewer replicas than min.insync.replicas confirmed it."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    advice = "bring the replicas back, or lower min.insync.replicas of the topic"


class InvalidRequiredAcksException(InvalidConfigurationException):
    """acks must be 0, 1 or all."""

    code = ErrorCode.INVALID_REQUIRED_ACKS


class GroupAuthorizationException(AuthorizationException):
    """Not authorized for this group."""

    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    advice = "allow this principal to READ the group (an ACL)"


class TopicAuthorizationException(AuthorizationException):
    """Not authorized for this topic."""

    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    advice = "allow this principal to WRITE to the topic (an ACL)"


class ClusterAuthorizationException(AuthorizationException):
    """Not authorized for this operation on the cluster."""

    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    advice = "allow this principal to IDEMPOTENT_WRITE on the cluster (an ACL), or set enable.idempotence=false"


class InvalidTimestampException(ApiException):
    """The record's timestamp is outside what the topic allows."""

    code = ErrorCode.INVALID_TIMESTAMP
    advice = "see message.timestamp.before.max.ms and message.timestamp.after.max.ms of the topic"


class UnsupportedVersionException(InvalidConfigurationException):
    """The broker does not speak any version of this API that we speak."""

    code = ErrorCode.UNSUPPORTED_VERSION
    advice = "use a broker of a version that speaks it"


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


class NotControllerException(RetriableException):
    """The broker asked is not the controller."""

    code = ErrorCode.NOT_CONTROLLER


class InvalidRequestException(ApiException):
    """The broker found the request malformed; its log says more."""

    code = ErrorCode.INVALID_REQUEST


class UnsupportedForMessageFormatException(InvalidConfigurationException):
    """The broker's message format does not support this."""

    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


class PolicyViolationException(ApiException):
    """A policy of the cluster forbids this."""

    code = ErrorCode.POLICY_VIOLATION


class OutOfOrderSequenceException(ApiException):
    """The broker saw a gap in this producer's sequence numbers."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    advice = "if its outcome is unknown, the record may be in the log: look there before it is sent again"


class DuplicateSequenceException(ApiException):
    """The broker has this batch already, too far back to tell its offset."""

    code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


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


class OperationNotAttemptedException(ApiException):
    """The broker did not try, as something else in the same request failed."""

    code = ErrorCode.OPERATION_NOT_ATTEMPTED


class InvalidProducerEpochException(ApiException):
    """The producer's epoch is older than the one the broker knows."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH
    advice = "if its outcome is unknown, the record may be in the log: look there before it is sent again"


class InvalidTxnStateException(ApiException):
    """The transaction is in a state that does not allow this."""

    code = ErrorCode.INVALID_TXN_STATE
    advice = "brokers abort one that is open beyond transaction.timeout.ms, or when another producer takes over"


class InvalidPidMappingException(ApiException):
    """The producer id does not belong to this transactional id (any more)."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidTxnTimeoutException(ApiException):
    """transaction.timeout.ms is above the broker's transaction.max.timeout.ms."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class ConcurrentTransactionsException(RetriableException):
    """An earlier transaction of this transactional id is still being completed."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class TransactionalIdAuthorizationException(AuthorizationException):
    """Not authorized for this transactional id."""

    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    advice = "allow this principal to DESCRIBE and WRITE to the transactional id (an ACL)"


class SecurityDisabledException(ApiException):
    """Security features are disabled on the broker."""

    code = ErrorCode.SECURITY_DISABLED


class KafkaStorageException(InvalidMetadataException):
    """The broker could not write to, or read from, its disk."""

    code = ErrorCode.KAFKA_STORAGE_ERROR
    advice = "see the broker's log and its disks"


class UnknownProducerIdException(OutOfOrderSequenceException):
    """The broker has no record of this producer id (its data may have been deleted)."""

    code = ErrorCode.UNKNOWN_PRODUCER_ID


class ListenerNotFoundException(InvalidMetadataException):
    """The leader has no listener of the kind we connected to."""

    code = ErrorCode.LISTENER_NOT_FOUND


class TopicDeletionDisabledException(ApiException):
    """delete.topic.enable is false on the broker."""

    code = ErrorCode.TOPIC_DELETION_DISABLED


class FencedLeaderEpochException(InvalidMetadataException):
    """Our leader epoch is older than the broker's."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpochException(RetriableException):
    """Our leader epoch is newer than the broker's."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class UnsupportedCompressionTypeException(ApiException):
    """The broker does not accept this compression for this API version."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    advice = "choose another compression.type"


class OffsetNotAvailableException(RetriableException):
    """The leader was just elected and cannot tell this offset yet."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


class InvalidRecordException(InvalidConfigurationException):
    """The broker's validation refused a record of the batch."""

    code = ErrorCode.INVALID_RECORD
    advice = "a compacted topic, for one, takes no record without a key"


class ThrottlingQuotaExceededException(RetriableException):
    """A quota was exceeded; try again later."""

    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class ProducerFencedException(ApiException):
    """A newer producer with the same transactional id has taken over."""

    code = ErrorCode.PRODUCER_FENCED
    fatal = True
    advice = (
        "close this one; if both are meant to run, give each a transactional.id of its own; if there is no other, its"
        " transaction took longer than transaction.timeout.ms"
    )


class UnknownTopicIdException(InvalidMetadataException):
    """The broker does not know this topic id: the topic was deleted, or deleted and created anew."""

    code = ErrorCode.UNKNOWN_TOPIC_ID


class InconsistentTopicIdException(InvalidMetadataException):
    """The topic id in the log differs from the one in the request."""

    code = ErrorCode.INCONSISTENT_TOPIC_ID


class TransactionAbortableException(ApiException):
    """The transaction must be aborted; the producer can go on after that."""

    code = ErrorCode.TRANSACTION_ABORTABLE
    abortable = True


class TransactionAbortedException(KafkaError):
    """The record was not sent: its transaction was aborted."""


class RebootstrapRequiredException(ApiException):
    """The client should start again from its bootstrap servers."""

    code = ErrorCode.REBOOTSTRAP_REQUIRED


class BufferExhaustedException(TimeoutException):
    """No memory for the record within ``max.block.ms``: records arrive faster than they can be delivered."""


class UnnamedApiException(ApiException):
    """An error code that the clients here have no class for; the message has its name and number."""


_BY_CODE: dict[ErrorCode, type[ApiException]] = {
    cls.code: cls
    for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, ApiException) and "code" in vars(cls)
}


def error_for(code: int, message: str) -> ApiException:
    """The exception for a code in a broker's response (never call it with ``NONE``)."""
    known = ErrorCode(code)
    text = f"{message} (error {code}, {known.name})" if message else f"error {code}, {known.name}"
    return _BY_CODE.get(known, UnnamedApiException)(text)


def with_advice(words: str, code: int) -> str:
    """What went wrong, in the broker's words if it gave any, and what to do about it."""
    known = error_class(code)
    said = (words or (known.__doc__ or "").partition("\n")[0]).rstrip(".")
    return f"{said}; {known.advice}" if known.advice else said


def error_class(code: int) -> type[ApiException]:
    """The class that :func:`error_for` would make: for its flags, without making one."""
    return _BY_CODE.get(ErrorCode(code), UnnamedApiException)
