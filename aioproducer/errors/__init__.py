"""Everything that can go wrong, as one tree.

    KafkaError
    ├── ConfigException                 a config that is unknown, impossible or not supported yet
    ├── SerializationException          a key, value or header that cannot become bytes
    ├── IllegalArgumentException        an argument that can never be right (misuse)
    │   └── PartitionerException        the user's partitioner failed, or answered nonsense
    ├── IllegalStateException           a call that the object's state does not allow (misuse)
    ├── SchemaException                 bytes that are not a message of Kafka's protocol
    ├── InvalidReceiveException         a frame whose length cannot be right (often not a Kafka broker at all)
    ├── DeliveryError                   mixed into the error that ends a delivery: ``outcome``, ``topic_partition``
    └── ApiException                    everything Kafka has a number for
        ├── RetriableException
        │   └── InvalidMetadataException     also asks for fresh metadata
        └── …                           one class per error the clients meet

Names and numbers are Kafka's (``org.apache.kafka.common.protocol.Errors``, 4.3.1). Class attributes say what a
caller may do about an error: ``retriable`` (the same request may succeed later), ``refresh_metadata`` (the cluster has
changed), ``abortable`` (abort the transaction, then go on), ``fatal`` (this producer cannot be used any more), and
``advice`` (what to do about it).

    kafka_error.py   the root, and the outcome of a record
    local.py         errors that arise here
    delivery.py      what ends a delivery
    api.py           errors with a number, and the roots of their families
    cluster.py, groups.py, records.py, security.py, topics.py, transactions.py   the families
    error_code.py    the numbers
    by_code.py       from a number to its error
    printable.py     text of a network or a user, made fit for an error or a log line
"""

from aioproducer.errors.api import (
    ApiException,
    BufferExhaustedException,
    InvalidConfigurationException,
    InvalidMetadataException,
    InvalidRequestException,
    NetworkException,
    OperationNotAttemptedException,
    RetriableException,
    ThrottlingQuotaExceededException,
    TimeoutException,
    UnknownServerException,
    UnnamedApiException,
    UnsupportedVersionException,
)
from aioproducer.errors.by_code import error_class, error_for, with_advice
from aioproducer.errors.cluster import (
    BrokerNotAvailableException,
    FencedLeaderEpochException,
    InconsistentTopicIdException,
    KafkaStorageException,
    LeaderNotAvailableException,
    ListenerNotFoundException,
    NotControllerException,
    NotLeaderOrFollowerException,
    OffsetNotAvailableException,
    OffsetOutOfRangeException,
    RebootstrapRequiredException,
    ReplicaNotAvailableException,
    UnknownLeaderEpochException,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
)
from aioproducer.errors.delivery import DeliveryError
from aioproducer.errors.groups import (
    CoordinatorLoadInProgressException,
    CoordinatorNotAvailableException,
    FencedInstanceIdException,
    GroupIdNotFoundException,
    GroupMaxSizeReachedException,
    GroupNotEmptyException,
    IllegalGenerationException,
    InconsistentGroupProtocolException,
    InvalidGroupIdException,
    InvalidSessionTimeoutException,
    NotCoordinatorException,
    OffsetMetadataTooLarge,
    RebalanceInProgressException,
    UnknownMemberIdException,
    UnstableOffsetCommitException,
)
from aioproducer.errors.kafka_error import KafkaError, Outcome
from aioproducer.errors.local import (
    ConfigException,
    DataDirectoryException,
    IllegalArgumentException,
    IllegalStateException,
    InvalidReceiveException,
    PartitionerException,
    SchemaException,
    SerializationException,
    TransactionAbortedException,
    UnitTooLargeException,
)
from aioproducer.errors.records import (
    CorruptRecordException,
    DuplicateSequenceException,
    InvalidRecordException,
    InvalidRequiredAcksException,
    InvalidTimestampException,
    NotEnoughReplicasAfterAppendException,
    NotEnoughReplicasException,
    OutOfOrderSequenceException,
    RecordBatchTooLargeException,
    RecordTooLargeException,
    UnknownProducerIdException,
    UnsupportedCompressionTypeException,
    UnsupportedForMessageFormatException,
)
from aioproducer.errors.security import (
    AuthenticationException,
    AuthorizationException,
    ClusterAuthorizationException,
    GroupAuthorizationException,
    IllegalSaslStateException,
    SaslAuthenticationException,
    SecurityDisabledException,
    SslAuthenticationException,
    TokenUnavailableException,
    TopicAuthorizationException,
    TransactionalIdAuthorizationException,
    UnsupportedSaslMechanismException,
)
from aioproducer.errors.topics import (
    InvalidPartitionsException,
    InvalidReplicaAssignmentException,
    InvalidReplicationFactorException,
    InvalidTopicException,
    PolicyViolationException,
    TopicDeletionDisabledException,
    TopicExistsException,
)
from aioproducer.errors.transactions import (
    ConcurrentTransactionsException,
    InvalidPidMappingException,
    InvalidProducerEpochException,
    InvalidTxnStateException,
    InvalidTxnTimeoutException,
    ProducerFencedException,
    TransactionAbortableException,
)

__all__ = [
    "ApiException",
    "AuthenticationException",
    "AuthorizationException",
    "BrokerNotAvailableException",
    "BufferExhaustedException",
    "ClusterAuthorizationException",
    "ConcurrentTransactionsException",
    "ConfigException",
    "CoordinatorLoadInProgressException",
    "CoordinatorNotAvailableException",
    "CorruptRecordException",
    "DataDirectoryException",
    "DeliveryError",
    "DuplicateSequenceException",
    "FencedInstanceIdException",
    "FencedLeaderEpochException",
    "GroupAuthorizationException",
    "GroupIdNotFoundException",
    "GroupMaxSizeReachedException",
    "GroupNotEmptyException",
    "IllegalArgumentException",
    "IllegalGenerationException",
    "IllegalSaslStateException",
    "IllegalStateException",
    "InconsistentGroupProtocolException",
    "InconsistentTopicIdException",
    "InvalidConfigurationException",
    "InvalidGroupIdException",
    "InvalidMetadataException",
    "InvalidPartitionsException",
    "InvalidPidMappingException",
    "InvalidProducerEpochException",
    "InvalidReceiveException",
    "InvalidRecordException",
    "InvalidReplicaAssignmentException",
    "InvalidReplicationFactorException",
    "InvalidRequestException",
    "InvalidRequiredAcksException",
    "InvalidSessionTimeoutException",
    "InvalidTimestampException",
    "InvalidTopicException",
    "InvalidTxnStateException",
    "InvalidTxnTimeoutException",
    "KafkaError",
    "KafkaStorageException",
    "LeaderNotAvailableException",
    "ListenerNotFoundException",
    "NetworkException",
    "NotControllerException",
    "NotCoordinatorException",
    "NotEnoughReplicasAfterAppendException",
    "NotEnoughReplicasException",
    "NotLeaderOrFollowerException",
    "OffsetMetadataTooLarge",
    "OffsetNotAvailableException",
    "OffsetOutOfRangeException",
    "OperationNotAttemptedException",
    "OutOfOrderSequenceException",
    "Outcome",
    "PartitionerException",
    "PolicyViolationException",
    "ProducerFencedException",
    "RebalanceInProgressException",
    "RebootstrapRequiredException",
    "RecordBatchTooLargeException",
    "RecordTooLargeException",
    "ReplicaNotAvailableException",
    "RetriableException",
    "SaslAuthenticationException",
    "SchemaException",
    "SecurityDisabledException",
    "SerializationException",
    "SslAuthenticationException",
    "ThrottlingQuotaExceededException",
    "TimeoutException",
    "TokenUnavailableException",
    "TopicAuthorizationException",
    "TopicDeletionDisabledException",
    "TopicExistsException",
    "TransactionAbortableException",
    "TransactionAbortedException",
    "TransactionalIdAuthorizationException",
    "UnitTooLargeException",
    "UnknownLeaderEpochException",
    "UnknownMemberIdException",
    "UnknownProducerIdException",
    "UnknownServerException",
    "UnknownTopicIdException",
    "UnknownTopicOrPartitionException",
    "UnnamedApiException",
    "UnstableOffsetCommitException",
    "UnsupportedCompressionTypeException",
    "UnsupportedForMessageFormatException",
    "UnsupportedSaslMechanismException",
    "UnsupportedVersionException",
    "error_class",
    "error_for",
    "with_advice",
]
