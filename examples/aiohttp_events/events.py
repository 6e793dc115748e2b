"""An event collector: POST /events takes one event, POST /events/bulk a line of JSON for each.

    python examples/aiohttp_events/events.py [PORT]

runs it on port 8080 and on an embedded broker, which ends with it; KAFKA_BOOTSTRAP_SERVERS=localhost:9092 names a
cluster instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from aioproducer import Outcome
from aioproducer.broker import EmbeddedCluster
from aioproducer.integrations.aiohttp import error_middleware, get_producer, health_routes, kafka_context

# A request hears within delivery.timeout.ms what became of its records: together with max.block.ms, less than its
# client and the load balancer wait.
TIMEOUTS = {"delivery_timeout_ms": 10_000, "request_timeout_ms": 4_000, "max_block_ms": 2_000}


async def take_event(request: web.Request) -> web.Response:
    """201: it is in the log. 503: it is not; try again. 504: nobody knows."""
    metadata = await get_producer(request).send("events", await request.read())
    return web.json_response({"partition": metadata.partition, "offset": metadata.offset}, status=201)


async def take_events(request: web.Request) -> web.Response:
    """201: all of them are in the log. 503: none is; try again.

    207: anything else; ``failed`` has the number of each line that failed, and whether it may be in the log.
    """
    result = await get_producer(request).send_many("events", (await request.read()).splitlines())
    errors = [error for _, error in result.errors]
    if not result.delivered and all(error.retriable and error.outcome is Outcome.NOT_SENT for error in errors):
        result.raise_if_failed()
    failed = {index: error.outcome.value for index, error in result.errors}
    return web.json_response({"delivered": result.delivered, "failed": failed}, status=207 if failed else 201)


async def kafka(app: web.Application) -> AsyncIterator[None]:
    named = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if named:
        async with producing(app, named):
            yield
    else:
        async with EmbeddedCluster(configs={"num.partitions": 3}) as cluster, producing(app, cluster.bootstrap_servers):
            yield


@asynccontextmanager
async def producing(app: web.Application, servers: str) -> AsyncIterator[None]:
    async with asynccontextmanager(kafka_context(bootstrap_servers=servers, client_id="events", **TIMEOUTS))(app):
        yield


def make_app() -> web.Application:
    app = web.Application(middlewares=[error_middleware()])
    app.cleanup_ctx.append(kafka)
    app.add_routes(health_routes())
    app.add_routes([web.post("/events", take_event), web.post("/events/bulk", take_events)])
    return app


if __name__ == "__main__":
    web.run_app(make_app(), host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 8080)
