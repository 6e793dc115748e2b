"""InitProducerId: a producer id and epoch, for idempotence and transactions.

A producer without transactions must say ``transactional_id=None``: Kafka's default is the empty string. Version 6
(KIP-939, two-phase commit) is used only by who asks for it: Kafka calls it unstable.
"""

from __future__ import annotations

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.schema import (
    Request,
    Response,
    bool_,
    int16,
    int32,
    int64,
    message,
    string,
)


@message(ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+", latest_version_unstable=True)
class InitProducerIdRequest(Request):
    transactional_id: str | None = string("0+", nullable="0+")
    transaction_timeout_ms: int = int32("0+")
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = bool_("6+")
    keep_prepared_txn: bool = bool_("6+")


@message(ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+", latest_version_unstable=True)
class InitProducerIdResponse(Response):
    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    producer_id: int = int64("0+", default=-1)
    producer_epoch: int = int16("0+")
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)
