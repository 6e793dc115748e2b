"""An order service whose requests are atomic: POST /orders writes the order and an audit entry, both or neither.

    uvicorn --app-dir examples/fastapi_units orders:app

runs it on an embedded broker, which ends with it; KAFKA_BOOTSTRAP_SERVERS=localhost:9092 names a cluster instead. Each
instance needs a name of its own that stays the same when it is started again: INSTANCE, such as a StatefulSet's pod.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from aioproducer.broker import EmbeddedCluster
from aioproducer.integrations.fastapi import Producer, add_error_handlers, health_router, kafka_lifespan

TIMEOUTS = {"delivery_timeout_ms": 10_000, "request_timeout_ms": 4_000, "max_block_ms": 2_000}


class Order(BaseModel):
    id: str
    customer: str
    total: float


class Receipt(BaseModel):
    partition: int
    offset: int


@asynccontextmanager
async def cluster() -> AsyncIterator[str]:
    """The bootstrap servers."""
    named = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if named:
        yield named
    else:
        async with EmbeddedCluster(configs={"num.partitions": 3}) as embedded:
            yield embedded.bootstrap_servers


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    name = f"orders-{os.environ.get('INSTANCE', '1')}"
    async with (
        cluster() as servers,
        kafka_lifespan(bootstrap_servers=servers, transactional_id=name, **TIMEOUTS)(app) as state,
    ):
        await state["kafka_producer"].init_transactions()
        yield {**state}


app = FastAPI(title="Orders", lifespan=lifespan)
app.include_router(health_router())
add_error_handlers(app)


@app.post("/orders", status_code=201)
async def create_order(order: Order, producer: Producer) -> Receipt:
    """201: order and audit entry are committed. 503: neither is; try again. 504: nobody knows."""
    key = order.customer.encode()
    async with producer.unit() as unit:
        await unit.send("orders", order.model_dump_json().encode(), key=key)
        await unit.send("audit", f"{order.id} by {order.customer}".encode(), key=key)
    metadata = unit.result()[0]
    return Receipt(partition=metadata.partition, offset=metadata.offset)
