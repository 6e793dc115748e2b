"""A FastAPI service that is the same on each client of ``clients.py`` and ``unit_clients.py``: POST /orders is
answered when a record for the order, and one for each of its lines, are acknowledged."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI
from fastapi.requests import Request
from pydantic import BaseModel

from benchmarks.harness.runtime import COLLECTORS
from benchmarks.services.clients import CLIENTS, Send
from benchmarks.services.http_load import HOST
from benchmarks.services.unit_clients import UNIT_CLIENTS, UnitsSend


class Line(BaseModel):
    article: str
    count: int


class Order(BaseModel):
    id: str
    customer: str
    total: float
    lines: list[Line] = []


class Receipt(BaseModel):
    partition: int
    offset: int


async def sender(request: Request) -> Send:
    found: Send = request.state.send
    return found


router = APIRouter()


@router.get("/health/ready")
async def ready() -> bool:
    """It is: what a client has yet to connect to is the warm-up's to find."""
    return True


@router.get("/figures")
async def figures(send: Annotated[Send, Depends(sender)]) -> dict[str, float]:
    """What the client has measured, if it does."""
    return send.figures() if isinstance(send, UnitsSend) else {}


@router.post("/orders", status_code=201)
async def create_order(order: Order, send: Annotated[Send, Depends(sender)]) -> Receipt:
    values = [part.model_dump_json().encode() for part in (order, *order.lines)]
    partition, offset = await send(values, order.customer.encode())
    return Receipt(partition=partition, offset=offset)


def make_app(client: str, servers: str, collector: str) -> FastAPI:
    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        async with (CLIENTS | UNIT_CLIENTS)[client](servers) as send:
            COLLECTORS[collector]()
            yield {"send": send}

    app = FastAPI(lifespan=lifespan)
    app.include_router(router)
    return app


def main(client: str, port: str, servers: str, collector: str) -> None:
    """Serves until SIGTERM."""
    app = make_app(client, servers, collector)
    uvicorn.run(app, host=HOST, port=int(port), log_level="warning", access_log=False)
