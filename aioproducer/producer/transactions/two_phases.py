"""Two-phase commit (KIP-939) in InitProducerId: the version that has it, and what errors mean for it. Rules only."""

from __future__ import annotations

from aioproducer.errors import KafkaError
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.schema import Request

INIT_PRODUCER_ID_VERSION = 6
"""Unstable in Kafka 4.3.1: brokers offer it with ``unstable.api.versions.enable=true``."""

_NOT_ALLOWED = (
    "for transaction.two.phase.commit.enable=true the broker's config of the same name must be true, and the principal "
    "needs the operation TWO_PHASE_COMMIT on the transactional id"
)
_NOT_SPOKEN = (
    "transaction.two.phase.commit.enable=true needs a broker with InitProducerId 6, which Kafka 4.3.1 has with "
    "unstable.api.versions.enable=true"
)
_NOT_KEPT = (
    "Kafka up to 4.3.1 has no keep_prepared_txn: if there is a prepared transaction, it is still open; end it with "
    "KafkaAdmin.end_transaction"
)


def is_of_two_phases(request: Request) -> bool:
    """Whether it asks for transactions that take part in a two-phase commit."""
    return isinstance(request, InitProducerIdRequest) and request.enable2_pc


def explained(request: Request, error: KafkaError) -> KafkaError:
    """The error, with what it means for a two-phase commit."""
    if not (isinstance(request, InitProducerIdRequest) and request.enable2_pc):
        return error
    match error.code:
        case ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            advice = _NOT_ALLOWED
        case ErrorCode.UNSUPPORTED_VERSION:
            advice = _NOT_KEPT if request.keep_prepared_txn else _NOT_SPOKEN
        case _:
            return error
    explained = type(error)(f"{error}; {advice}")
    explained.__cause__ = error
    return explained
