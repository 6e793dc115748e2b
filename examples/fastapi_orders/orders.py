"""An order service: POST /orders is answered when the order is in Kafka, POST /clicks when the producer has taken it.

    uvicorn --app-dir examples/fastapi_orders orders:app

runs it on an embedded broker, which ends with it; KAFKA_BOOTSTRAP_SERVERS=localhost:9092 names a cluster instead.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from prometheus_client import make_asgi_app
from pydantic import BaseModel

from aioproducer.broker import EmbeddedCluster
from aioproducer.integrations.fastapi import Producer, add_error_handlers, health_router, kafka_lifespan
from aioproducer.integrations.prometheus import PrometheusReporter

# A request hears within delivery.timeout.ms what became of its record: together with max.block.ms, less than its client
# and the load balancer wait.
TIMEOUTS = {"delivery_timeout_ms": 10_000, "request_timeout_ms": 4_000, "max_block_ms": 2_000}


class Order(BaseModel):
    id: str
    customer: str
    total: float


class Click(BaseModel):
    id: str
    page: str


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
    async with cluster() as servers:
        config = {"bootstrap_servers": servers, "client_id": "orders", "metric_reporters": [PrometheusReporter()]}
        async with kafka_lifespan(**config, **TIMEOUTS)(app) as state:
            yield {**state}


app = FastAPI(title="Orders", lifespan=lifespan)
app.include_router(health_router())
app.mount("/metrics", make_asgi_app())
add_error_handlers(app)


@app.post("/orders", status_code=201)
async def create_order(order: Order, producer: Producer) -> Receipt:
    """201: it is in the log. 503: it is not; try again. 504: nobody knows."""
    metadata = await producer.send("orders", order.model_dump_json().encode(), key=order.customer.encode())
    return Receipt(partition=metadata.partition, offset=metadata.offset)


@app.post("/clicks", status_code=202)
async def take_click(click: Click, producer: Producer) -> None:
    """202: it is delivered soon, and before the service ends. 503: there is no memory for it at the moment."""
    _ = await producer.enqueue("clicks", click.model_dump_json().encode())
