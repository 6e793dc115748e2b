"""EndTxn: commit or abort a transaction; version 5 answers with the producer's next epoch (KIP-890)."""

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


@message(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnRequest(Request):
    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    committed: bool = bool_("0+")


@message(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnResponse(Response):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
