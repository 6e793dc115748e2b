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

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from typing import Annotated, Any, Final, Unpack

try:
    from fastapi import APIRouter, Depends, FastAPI, WebSocket
    from fastapi.requests import HTTPConnection
    from fastapi.responses import JSONResponse, Response
    from fastapi.websockets import WebSocketState
except ModuleNotFoundError as error:
    raise ImportError("aioproducer.integrations.fastapi needs FastAPI: pip install 'aioproducer[fastapi]'") from error

from aioproducer import HealthThresholds, KafkaError, KafkaProducer
from aioproducer.config_types import ProducerConfigs
from aioproducer.configs.producer_config import with_serializers
from aioproducer.errors import IllegalStateException
from aioproducer.integrations.answer import RETRY_AFTER, Answer, Answers
from aioproducer.integrations.running import CLOSE_TIMEOUT, running
from aioproducer.integrations.service_health import LIVE, READY, liveness, readiness
from aioproducer.serializers import SerializerLike

__all__ = ["Producer", "add_error_handlers", "get_producer", "health_router", "kafka_lifespan", "producer_named"]

NAME: Final = "kafka_producer"
"""The producer's key in the lifespan's state, which every request gets."""

CLOSE_CODES: Final = {413: 1009, 422: 1007, 503: 1013, 504: 1011}
"""The codes that close an accepted WebSocket, by status of the response (RFC 6455, 7.4.1; IANA's registry)."""

KafkaLifespan = Callable[[FastAPI], AbstractAsyncContextManager[Mapping[str, Any]]]
GetProducer = Callable[[HTTPConnection], Awaitable[KafkaProducer[Any, Any]]]


def kafka_lifespan(
    *,
    name: str = NAME,
    close_timeout: float | None = CLOSE_TIMEOUT,
    key_serializer: SerializerLike[Any] | None = None,
    value_serializer: SerializerLike[Any] | None = None,
    **config: Unpack[ProducerConfigs],
) -> KafkaLifespan:
    """A lifespan with a producer, made from ``config`` like ``KafkaProducer(**config)``.

    The service starts without waiting for a broker, but is ready only when it has reached one. At its end
    all accepted records are delivered, within ``close_timeout`` seconds: by default 20, because Kubernetes gives a
    service 30 after SIGTERM. None waits for all records, at most delivery.timeout.ms. A second producer of
    a service needs a ``name`` (see :func:`producer_named`).

    To combine it with other resources, use it inside your own lifespan::

        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
            async with connect() as database, kafka_lifespan(bootstrap_servers="localhost:9092")(app) as kafka:
                yield {"database": database, **kafka}
    """

    given = with_serializers(config, key_serializer, value_serializer)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        async with running(close_timeout, given) as producer:
            yield {name: producer}

    return lifespan


@cache
def producer_named(name: str) -> GetProducer:
    """The dependency that gets the producer of ``kafka_lifespan(name=name)``; the same one for the same name.

    ::

        Clicks = Annotated[KafkaProducer, Depends(producer_named("clicks"))]
    """

    async def get(connection: HTTPConnection) -> KafkaProducer[Any, Any]:
        producer = getattr(connection.state, name, None)
        if not isinstance(producer, KafkaProducer):
            raise IllegalStateException(
                f"the service has no producer {name!r}: make it with FastAPI(lifespan=kafka_lifespan(...)); inside a "
                "lifespan of your own, yield its state, too"
            )
        return producer

    return get


get_producer: GetProducer = producer_named(NAME)
"""The dependency: the service's producer, for HTTP and for WebSockets. Tests override it."""

Producer = Annotated[KafkaProducer, Depends(get_producer)]
"""The type of a parameter that gets the service's producer.

With serializers: ``Annotated[KafkaProducer[str, Order], Depends(get_producer)]``.
"""


def add_error_handlers(app: FastAPI, *, retry_after: int = RETRY_AFTER) -> None:
    """Answers errors of ``send`` and ``enqueue``: 413, 422, 503 with Retry-After (in seconds), 504; see ``answer.py``.

    A WebSocket that was accepted is closed with 1009, 1007, 1013 or 1011. The service's own errors remain errors:
    500, with a traceback in the log. An application that is mounted in another one needs its own handlers.
    """

    answers = Answers(retry_after=retry_after)

    async def respond(connection: Any, error: Exception) -> Response | None:
        answer = answers.to(error) if isinstance(error, KafkaError) else None
        if answer is None:
            raise error
        if not isinstance(connection, WebSocket):
            return _response(answer)
        if _can_be_refused(connection):
            await connection.send_denial_response(_response(answer))
        elif connection.client_state is not WebSocketState.DISCONNECTED:
            await connection.close(CLOSE_CODES[answer.status], answer.body["error"])
        return None

    handler: Any = respond  # for both kinds of connection, which Starlette's types do not allow
    app.add_exception_handler(KafkaError, handler)


def _can_be_refused(socket: WebSocket) -> bool:
    """Whether it is not accepted yet, and the server can answer the handshake with a response."""
    extensions = socket.scope.get("extensions") or {}
    return socket.application_state is WebSocketState.CONNECTING and "websocket.http.response" in extensions


def health_router(thresholds: HealthThresholds | None = None, *, names: Sequence[str] = (NAME,)) -> APIRouter:
    """``GET /health/live`` (503: restart it) and ``GET /health/ready`` (503: send it nothing), with all findings.

    With several ``names``, the answer covers all of these producers.
    """
    router = APIRouter(tags=["health"])
    producers = Depends(_all_of(names))

    @router.get(LIVE)
    async def live(producers: list[KafkaProducer[Any, Any]] = producers) -> JSONResponse:
        return _response(liveness(producers, thresholds))

    @router.get(READY)
    async def ready(producers: list[KafkaProducer[Any, Any]] = producers) -> JSONResponse:
        return _response(readiness(producers, thresholds))

    return router


def _all_of(names: Sequence[str]) -> Callable[..., Awaitable[list[KafkaProducer[Any, Any]]]]:
    """A dependency on each of the named producers, so that tests may override each."""
    if not names:
        return _none

    async def together(
        first: KafkaProducer[Any, Any] = Depends(producer_named(names[0])),  # noqa: B008 - FastAPI reads it
        others: list[KafkaProducer[Any, Any]] = Depends(_all_of(names[1:])),  # noqa: B008
    ) -> list[KafkaProducer[Any, Any]]:
        return [first, *others]

    return together


async def _none() -> list[KafkaProducer[Any, Any]]:
    return []


def _response(answer: Answer) -> JSONResponse:
    return JSONResponse(answer.body, answer.status, answer.headers)
