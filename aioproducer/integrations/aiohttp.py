"""The producer in an aiohttp service.

::

    app = web.Application(middlewares=[error_middleware()])
    app.cleanup_ctx.append(kafka_context(bootstrap_servers="localhost:9092"))
    app.add_routes(health_routes())


    async def create(request: web.Request) -> web.Response:
        await get_producer(request).send("events", await request.read())
        return web.Response(status=201)

``docs/services.md`` has the rest. Needs the extra ``aiohttp``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, Unpack

try:
    from aiohttp import web
    from aiohttp.typedefs import Handler, Middleware
except ModuleNotFoundError as error:
    raise ImportError("aioproducer.integrations.aiohttp needs aiohttp: pip install 'aioproducer[aiohttp]'") from error

from aioproducer import HealthThresholds, KafkaError, KafkaProducer
from aioproducer.config_types import ProducerConfigs
from aioproducer.configs.producer_config import with_serializers
from aioproducer.errors import IllegalStateException
from aioproducer.integrations.answer import RETRY_AFTER, Answer, Answers
from aioproducer.integrations.running import CLOSE_TIMEOUT, running
from aioproducer.integrations.service_health import LIVE, READY, liveness, readiness
from aioproducer.serializers import SerializerLike

__all__ = ["PRODUCER", "error_middleware", "get_producer", "health_routes", "kafka_context"]

ProducerKey = web.AppKey[KafkaProducer[Any, Any]]

PRODUCER: Final[ProducerKey] = web.AppKey("kafka_producer", KafkaProducer)
"""The application's key for the producer."""


def kafka_context(
    *,
    key: ProducerKey = PRODUCER,
    close_timeout: float | None = CLOSE_TIMEOUT,
    key_serializer: SerializerLike[Any] | None = None,
    value_serializer: SerializerLike[Any] | None = None,
    **config: Unpack[ProducerConfigs],
) -> Callable[[web.Application], AsyncIterator[None]]:
    """A cleanup context with a producer, made from ``config`` like ``KafkaProducer(**config)``.

    The service starts without waiting for a broker, but is ready only when it has reached one. At its end
    all accepted records are delivered, within ``close_timeout`` seconds: by default 20, because Kubernetes gives a
    service 30 after SIGTERM. None waits for all records, at most delivery.timeout.ms. A second producer of
    an application needs its own ``key``.

    Within a context of your own: ``async with asynccontextmanager(kafka_context(...))(app): yield``.
    """

    given = with_serializers(config, key_serializer, value_serializer)

    async def context(app: web.Application) -> AsyncIterator[None]:
        async with running(close_timeout, given) as producer:
            app[key] = producer
            yield

    return context


def get_producer(request: web.Request, key: ProducerKey = PRODUCER) -> KafkaProducer[Any, Any]:
    """The producer of the request's application, or of the application that contains it."""
    producer = request.config_dict.get(key)
    if not isinstance(producer, KafkaProducer):
        raise IllegalStateException(
            f"the service has no producer with the key {key}: app.cleanup_ctx.append(kafka_context(...))"
        )
    return producer


def error_middleware(*, retry_after: int = RETRY_AFTER) -> Middleware:
    """Answers errors of ``send`` and ``enqueue``: 413, 422, 503 with Retry-After (in seconds), 504; see ``answer.py``.

    The service's own errors remain errors: 500, with a traceback in the log. So do errors after the beginning of a
    streamed response or of a WebSocket, because the status was sent.
    """

    answers = Answers(retry_after=retry_after)

    @web.middleware
    async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except KafkaError as error:
            begun = request.writer.output_size > 0
            answer = None if begun else answers.to(error)
            if answer is None:
                raise
            return _response(answer)

    return answering


def health_routes(
    thresholds: HealthThresholds | None = None, *, keys: Sequence[ProducerKey] = (PRODUCER,)
) -> list[web.RouteDef]:
    """``GET /health/live`` (503: restart it) and ``GET /health/ready`` (503: send it nothing), with all findings.

    With several ``keys``, the answer covers all of these producers.
    """

    def producers(request: web.Request) -> list[KafkaProducer[Any, Any]]:
        return [get_producer(request, key) for key in keys]

    async def live(request: web.Request) -> web.Response:
        return _response(liveness(producers(request), thresholds))

    async def ready(request: web.Request) -> web.Response:
        return _response(readiness(producers(request), thresholds))

    return [web.get(LIVE, live), web.get(READY, ready)]


def _response(answer: Answer) -> web.Response:
    return web.json_response(answer.body, status=answer.status, headers=answer.headers)
