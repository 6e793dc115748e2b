"""InitProducerId: a producer id for an idempotent producer.

Versions 0 to 5.

Simplification: a request with a transactional id is answered with ``UNSUPPORTED_VERSION``: there are no transactions.
Without one every request gets a new id with epoch 0, also one that names the id it has (as in Kafka: an idempotent
producer bumps its epoch by itself, and asks anew when its epochs are used up).
"""

from __future__ import annotations

from aioproducer.broker.context import BrokerContext
from aioproducer.broker.request import Request
from aioproducer.error_code import ErrorCode
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 5)


def handle(context: BrokerContext, request: Request, message: InitProducerIdRequest) -> InitProducerIdResponse:
    if message.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=context.state.allocate_producer_id(), producer_epoch=0)
