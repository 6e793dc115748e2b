"""InitProducerId: a producer id and epoch for an idempotent or transactional producer.

Versions 0 to 5; with ``unstable.api.versions.enable`` also 6, for two-phase commits (KIP-939). It keeps an open
transaction if it is asked to: this follows the KIP, because Kafka up to 4.3.1 answers ``UNSUPPORTED_VERSION``.

Without a transactional id every request gets a new id with epoch 0, also one that names the id it has (as in Kafka: an
idempotent producer bumps its epoch by itself, and requests a new id when its epochs are used up).
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator, fencing_code
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.log.producer_state import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException, InvalidRequestException
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 6)
NEWEST_STABLE = 5

_PRODUCER_FENCED_VERSION = 4


def handle(context: BrokerContext, request: Request, message: InitProducerIdRequest) -> InitProducerIdResponse:
    access = Access.of(context, request)
    try:
        if message.transactional_id is not None:
            access.check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
            if message.enable2_pc:
                access.check(AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, message.transactional_id)
        elif not access.may_some(AclOperation.WRITE, ResourceType.TOPIC):
            access.check_cluster(AclOperation.IDEMPOTENT_WRITE)
        if (message.producer_id == NO_PRODUCER_ID) != (message.producer_epoch == NO_PRODUCER_EPOCH):
            raise InvalidRequestException("a producer has both an id and an epoch, or neither")
        if message.transactional_id is None:
            return InitProducerIdResponse(producer_id=context.state.allocate_producer_id(), producer_epoch=0)
        check_coordinator(context, message.transactional_id)
        (producer_id, producer_epoch), ongoing = context.transactions.init_producer_id(
            message.transactional_id,
            message.transaction_timeout_ms,
            (message.producer_id, message.producer_epoch),
            two_phases=message.enable2_pc,
            keep=message.keep_prepared_txn,
        )
    except ApiException as error:
        code = fencing_code(error, request.header.api_version, _PRODUCER_FENCED_VERSION)
        return InitProducerIdResponse(error_code=code, producer_epoch=-1)
    return InitProducerIdResponse(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        ongoing_txn_producer_id=ongoing[0],
        ongoing_txn_producer_epoch=ongoing[1],
    )
