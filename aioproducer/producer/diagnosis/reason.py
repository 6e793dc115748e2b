"""The reasons why records have not been sent: one list for readiness, ``explain`` and the ledger of a time-out."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """Why records wait. The values are the causes in the ledger of a time-out."""

    NOTHING = "nothing to send"
    FAILED = "the producer has failed"
    NO_BROKER = "no connection to any broker"
    SERIALIZER = "serializer at work"
    METADATA = "no metadata"
    PARTITION = "no such partition"
    MEMORY = "no memory"
    LINGER = "linger"
    COMPRESSION = "being compressed"
    NO_LEADER = "no leader"
    LEADER_UNKNOWN = "leader not in the cluster"
    NOT_CONNECTED = "leader not connected"
    THROTTLED = "throttled by the broker"
    PRODUCER_ID = "no producer id"
    TRANSACTION = "partition not in the transaction yet"
    BACKOFF = "retry back-off"
    ORDER = "one request at a time"
    """max.in.flight.requests.per.connection=1 mutes a partition while a batch of it is under way."""
    WINDOW = "partition's window full"
    RECOVERY = "gap in the sequence numbers"
    CONNECTION_WINDOW = "connection's window full"
    SOCKET = "broker does not read"
    SLOW_LINE = "smaller batches first on a slow line"
    IN_FLIGHT = "not answered"
    READY = "ready"
    """No obstacle: the next turn of the loop sends it."""
