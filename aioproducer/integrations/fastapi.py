"""The producer in a FastAPI service.

::

    app = FastAPI(lifespan=kafka_lifespan(bootstrap_servers="localhost:9092"))
    app.include_router(health_router())
    add_error_handlers(app)


    @app.post("/orders", status_code=201)
    async def create(order: Order, producer: Producer) -> None:
        await producer.send("orders", order.model_dump_json().encode(), key=order.customer.encode())

``docs/services.md`` has the rest. Needs the extra ``fastapi``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI
from fastapi.requests import HTTPConnection, Request
from fastapi.responses import JSONResponse, Response

from aioproducer import HealthThresholds, KafkaError, KafkaProducer
from aioproducer.errors import IllegalStateException
from aioproducer.integrations.answer import RETRY_AFTER, Answer, answer_to
from aioproducer.integrations.running import running
from aioproducer.integrations.service_health import LIVE, READY, liveness, readiness

__all__ = ["Producer", "add_error_handlers", "get_producer", "health_router", "kafka_lifespan"]

_STATE: Final = "kafka_producer"
"""The producer's key in the lifespan's state, which every request gets."""

KafkaLifespan = Callable[[FastAPI], AbstractAsyncContextManager[Mapping[str, Any]]]


def kafka_lifespan(*, close_timeout: float | None = None, **config: Any) -> KafkaLifespan:
    """A lifespan with a producer, made from ``config`` like ``KafkaProducer(**config)``.

    The service starts without waiting for a broker, but is ready only when it has reached one. At its end everything
    that was accepted is delivered, within ``close_timeout`` seconds; None waits for all, at most delivery.timeout.ms.

    To combine it with something else, use it inside your own lifespan::

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
            async with connect() as database, kafka_lifespan(bootstrap_servers="localhost:9092")(app) as kafka:
                yield {"database": database, **kafka}
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        async with running(close_timeout, config) as producer:
            yield {_STATE: producer}

    return lifespan


async def get_producer(connection: HTTPConnection) -> KafkaProducer:
    """The dependency: the service's producer, for HTTP and for WebSockets. Tests override it."""
    producer = getattr(connection.state, _STATE, None)
    if not isinstance(producer, KafkaProducer):
        raise IllegalStateException(
            "the service has no producer: make it with FastAPI(lifespan=kafka_lifespan(...)), and where another "
            "lifespan is around that, yield its state, too"
        )
    return producer


Producer = Annotated[KafkaProducer, Depends(get_producer)]
"""The type of a parameter that gets the service's producer."""


def add_error_handlers(app: FastAPI, *, retry_after: int = RETRY_AFTER) -> None:
    """Answers errors of ``send`` and ``enqueue``: 413, 422, 503 with Retry-After (in seconds), 504; see ``answer.py``.

    The service's own errors stay errors: 500, with a traceback in the log.
    """

    async def respond(request: Request, error: Exception) -> Response:
        answer = answer_to(error, retry_after=retry_after) if isinstance(error, KafkaError) else None
        if answer is None:
            raise error
        return _response(answer)

    app.add_exception_handler(KafkaError, respond)


def health_router(thresholds: HealthThresholds | None = None) -> APIRouter:
    """``GET /health/live`` (503: restart it) and ``GET /health/ready`` (503: send it nothing), with all findings."""
    router = APIRouter(tags=["health"])

    @router.get(LIVE)
    async def live(producer: Producer) -> JSONResponse:
        return _response(liveness(producer, thresholds))

    @router.get(READY)
    async def ready(producer: Producer) -> JSONResponse:
        return _response(readiness(producer, thresholds))

    return router


def _response(answer: Answer) -> JSONResponse:
    return JSONResponse(answer.body, answer.status, answer.headers)
