"""Records and batches that a broker does not take."""

from __future__ import annotations

from aioproducer.errors.api import ApiException, InvalidConfigurationException, RetriableException
from aioproducer.errors.error_code import ErrorCode


class CorruptRecordException(RetriableException):
    """A record batch failed its CRC or its structure is broken."""

    code = ErrorCode.CORRUPT_MESSAGE
    advice = "the bytes were damaged on their way or in a memory: look at network and hardware"


class RecordTooLargeException(ApiException):
    """A record, or the batch it makes, is larger than the limit the message names."""

    code = ErrorCode.MESSAGE_TOO_LARGE
    advice = "raise max.message.bytes of the topic (message.max.bytes of the brokers), or send smaller records"


class RecordBatchTooLargeException(InvalidConfigurationException):
    """The batch is larger than the broker's segment size."""

    code = ErrorCode.RECORD_LIST_TOO_LARGE
    advice = "send smaller records, or raise segment.bytes of the topic"


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


class InvalidTimestampException(ApiException):
    """The record's timestamp is outside what the topic allows."""

    code = ErrorCode.INVALID_TIMESTAMP
    advice = "see message.timestamp.before.max.ms and message.timestamp.after.max.ms of the topic"


class UnsupportedForMessageFormatException(InvalidConfigurationException):
    """The broker's message format does not support this."""

    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


class OutOfOrderSequenceException(ApiException):
    """The broker saw a gap in this producer's sequence numbers."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    advice = "if its outcome is unknown, the record may be in the log: look there before it is sent again"


class DuplicateSequenceException(ApiException):
    """The broker has this batch already, too far back to tell its offset."""

    code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


class UnknownProducerIdException(OutOfOrderSequenceException):
    """The broker has no record of this producer id (its data may have been deleted)."""

    code = ErrorCode.UNKNOWN_PRODUCER_ID


class UnsupportedCompressionTypeException(ApiException):
    """The broker does not accept this compression for this API version."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    advice = "choose another compression.type"


class InvalidRecordException(InvalidConfigurationException):
    """The broker's validation refused a record of the batch."""

    code = ErrorCode.INVALID_RECORD
    advice = "a compacted topic, for one, takes no record without a key"
