"""A cluster whose brokers answer each request as a script says.

Behind the script is the embedded broker's own request handling, so tests can read its logs. A script is a list of steps
for an API: the first request of that API gets the first step, and so on. When no step is left, requests get the right
answer. The requests of one connection are handled one after the other.
"""

from __future__ import annotations

import asyncio
import copy
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.kafka_apis import KafkaApis
from aioproducer.broker.log.batch_scanner import BatchScanner
from aioproducer.broker.purgatory.purgatory import raise_fatal
from aioproducer.broker.requests.fatal_exit_error import FatalExitError
from aioproducer.broker.requests.long_work import LongWork
from aioproducer.broker.requests.request import ClientSoftware
from aioproducer.broker.requests.request import Request as HandledRequest
from aioproducer.broker.requests.response import CloseConnectionResponse, RequestEnd, SendResponse
from aioproducer.broker.requests.slices import Slices
from aioproducer.broker.state.cluster_journal import IN_MEMORY
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.framing import decode_request, decode_request_header, decode_response, encode_response
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from aioproducer.protocol.primitives import Buffer
from aioproducer.protocol.schema import Response
from aioproducer.timing.clock import SystemClock

T = TypeVar("T")


class Drop(Exception):
    """Raised by a step to end the connection."""


class Exchange:
    """One request, and the ways to answer it."""

    def __init__(self, broker: ScriptedBroker, frame: bytes, writer: asyncio.StreamWriter) -> None:
        self.broker = broker
        self.frame = frame
        self.writer = writer
        self.header: RequestHeader
        self.request: Any
        self.header, self.body_at = decode_request_header(frame)
        self.request = decode_request(frame)[1]
        self._parts: Sequence[Buffer] | None = None
        self.software: ClientSoftware | None = None
        self.user = "ANONYMOUS"
        self.security_protocol = "PLAINTEXT"
        self.authenticator = None

    @property
    def api(self) -> ApiKey:
        return ApiKey(self.header.api_key)

    def handle(self) -> Any:
        """Has the embedded broker handle the request; returns its response, which may be edited, or None (acks=0)."""
        self._parts = None
        self.broker.apis.handle(HandledRequest(self.header, self, self), self.frame, self.body_at)
        if self._parts is None:
            return None
        version = 0 if self.api is ApiKey.API_VERSIONS and self.header.api_version > 4 else self.header.api_version
        return decode_response(APIS[self.api].response, version, b"".join(self._parts)[4:])[1]

    def encoded(self, response: Response, *, correlation_id: int | None = None) -> bytes:
        return b"".join(
            encode_response(
                response,
                version=self.header.api_version,
                correlation_id=self.header.correlation_id if correlation_id is None else correlation_id,
            )
        )

    def reply(self, response: Response | None) -> None:
        if response is not None:
            self.writer.write(self.encoded(response))

    # aioproducer.broker.requests.request.ResponseChannel

    def send_response(self, request: HandledRequest, response: RequestEnd) -> None:
        if isinstance(response, CloseConnectionResponse):
            raise Drop(response.reason)
        if isinstance(response, SendResponse):
            self._parts = response.parts

    def send_callback(self, request: HandledRequest, fun: Callable[[], object]) -> None:
        fun()

    def call_now(self, request: HandledRequest, fun: Callable[[], object]) -> None:
        fun()

    # aioproducer.broker.requests.request.Connection

    def release(self, size: int) -> None:
        pass

    id = "scripted"
    listener = "PLAINTEXT"
    address = "127.0.0.1"


Step = Callable[[Exchange], Awaitable[None]]


class ScriptedBroker:
    """One node. ``requests`` are all requests that it got, in order."""

    def __init__(self, context: BrokerContext, newest_versions: Mapping[int, int] | None = None) -> None:
        self.node_id = context.node_id
        self.context = context
        self.apis = KafkaApis(context, newest_versions)
        self.requests: list[tuple[RequestHeader, Any]] = []
        self.accepted = 0
        self.connections: set[asyncio.StreamWriter] = set()
        self.held: dict[asyncio.StreamWriter, Held] = {}
        """Connections on which an answer that is kept must come first."""
        self._scripts: dict[ApiKey, deque[Step]] = defaultdict(deque)
        self._always: dict[ApiKey, Step] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()

    def script(self, api: ApiKey, *steps: Step) -> None:
        """Adds steps for the next requests of this API, one for each."""
        self._scripts[api].extend(steps)

    def always(self, api: ApiKey, step: Step | None) -> None:
        """Sets the step for requests of this API when no other is left; None means the right answer."""
        if step is None:
            self._always.pop(api, None)
        else:
            self._always[api] = step

    def count(self, api: ApiKey) -> int:
        return sum(header.api_key == api for header, _ in self.requests)

    def sent(self, api: ApiKey) -> list[Any]:
        """The requests of one API, as messages."""
        return [request for header, request in self.requests if header.api_key == api]

    async def until(self, condition: Callable[[ScriptedBroker], bool]) -> None:
        """Waits for a condition, which is checked whenever a request comes or a connection opens or ends."""
        while not condition(self):
            self._news.clear()
            await self._news.wait()

    async def received(self, api: ApiKey, count: int = 1) -> None:
        """Returns when this many requests of the API have come."""
        await self.until(lambda broker: broker.count(api) >= count)

    def drop_connections(self) -> None:
        for writer in self.connections:
            writer.transport.abort()

    # As aioproducer.broker.broker_server.BrokerServer

    async def open(self, host: str, port: int) -> int:
        self._server = await asyncio.start_server(self._accepted, host, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    was_stopped = False

    async def shutdown(self, committed: object) -> None:
        await self.abort()

    def crash(self) -> None:
        self.drop_connections()

    async def abort(self) -> None:
        self.was_stopped = True
        self.context.purgatories.shutdown()
        if self._server is None:
            return
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()
        self._server = None

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.was_stopped:  # the connection was under way while the port was closed
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.transport.abort())  # even if it was cancelled before it began

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.connections.add(writer)
        self._news.set()
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                exchange = Exchange(self, await reader.readexactly(size), writer)
                self.requests.append((exchange.header, exchange.request))
                self._news.set()
                held = self.held.get(writer)
                if held is not None and exchange.api not in self._always:
                    held.behind(exchange)
                    continue
                steps = self._scripts[exchange.api]
                step = steps.popleft() if steps else self._always.get(exchange.api, answer)
                await step(exchange)
        except (Drop, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.connections.discard(writer)
            self._news.set()


class _AtRest(SystemClock):
    """A clock that stands still, so that all work counts as short."""

    monotonic = staticmethod(lambda: 0.0)


class _Here(BatchScanner):
    """Reads batches at once, without a thread."""

    def run(self, read: Callable[[], T], then: Callable[[asyncio.Future[T]], object]) -> None:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            done.set_result(read())
        except Exception as error:
            done.set_exception(error)
        then(done)


class ScriptedCluster(EmbeddedCluster):
    """An :class:`EmbeddedCluster` of scripted brokers: ``cluster.brokers[0].script(ApiKey.PRODUCE, drop())``."""

    def __init__(self, nodes: int = 1, **config: Any) -> None:
        super().__init__(nodes, **config)
        self.brokers = [self.another_broker(node_id) for node_id in range(nodes)]

    def another_broker(self, node_id: int = 0) -> ScriptedBroker:
        """Another broker with the id of a node, not started: for its own port."""
        return ScriptedBroker(self._context(node_id), self._newest_versions)

    def _context(self, node_id: int, on_fatal: Callable[[FatalExitError], object] = raise_fatal) -> BrokerContext:
        """Handles every request at once, so that steps get a response and not a future."""
        context = super()._context(node_id, on_fatal)
        long_work = LongWork(Slices(_AtRest()), IN_MEMORY)
        return replace(context, long_work=long_work, scanner=_Here(context.threads))

    @property
    def broker(self) -> ScriptedBroker:
        """The only one, or the first."""
        return self.brokers[0]

    async def start_node(self, node_id: int, *, port: int | None = None) -> None:
        """Starts a node on the port it had before, or on ``port`` (0: a free one)."""
        broker = self.brokers[node_id]
        if broker.was_stopped:
            broker.was_stopped = False
            broker.context = self._context(node_id)
            broker.apis = KafkaApis(broker.context, self._newest_versions)
        host, before = self.listener(node_id)
        opened = await broker.open(host, before if port is None else port)
        self._servers[node_id] = broker  # type: ignore[assignment]
        end_point = EndPoint("PLAINTEXT", host, opened)
        self._state.node_started(node_id, self._listening(node_id, {end_point.listener: end_point}))

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        """The records in the log."""
        return [record.value for record in self.log(topic, partition).records()]


# Steps


async def answer(exchange: Exchange) -> None:
    """The right answer."""
    exchange.reply(exchange.handle())


def edited(edit: Callable[[Any], object]) -> Step:
    """Handles the request, and answers with the response after ``edit(response)``."""

    async def step(exchange: Exchange) -> None:
        response = exchange.handle()
        edit(response)
        exchange.reply(response)

    return step


def error(code: ErrorCode, *, appended: bool = False) -> Step:
    """Answers with an error; with ``appended`` the request is handled all the same."""

    async def step(exchange: Exchange) -> None:
        response = exchange.handle() if appended or exchange.api is not ApiKey.PRODUCE else _refusal(exchange.request)
        set_error(response, code)
        exchange.reply(response)

    return step


def _refusal(request: Any) -> Any:
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name, topic.topic_id, [PartitionProduceResponse(p.index, 0, -1) for p in topic.partition_data]
            )
            for topic in request.topic_data
        ]
    )


def set_error(response: Any, code: ErrorCode) -> None:
    """Sets the error of a response: in every partition (Produce), in every topic (Metadata) or at the top."""
    if hasattr(response, "responses"):
        for topic in response.responses:
            for partition in topic.partition_responses:
                partition.error_code = code
                partition.base_offset = -1
    elif hasattr(response, "topics"):
        for topic in response.topics:
            topic.error_code = code
            topic.partitions = []
    else:
        response.error_code = code


def drop(*, appended: bool = False) -> Step:
    """Ends the connection in place of an answer, before or after handling the request."""

    async def step(exchange: Exchange) -> None:
        if appended:
            exchange.handle()
        raise Drop

    return step


def after(event: asyncio.Event, *, appended: bool = False) -> Step:
    """Answers when ``event`` is set; handles the request then, or at once if ``appended``."""

    async def step(exchange: Exchange) -> None:
        response = exchange.handle() if appended else None
        await event.wait()
        exchange.reply(response if appended else exchange.handle())

    return step


class Held:
    """A step that keeps requests until they are released, and continues to read.

    Later requests of the same connection are kept behind them, because brokers answer in order.
    """

    def __init__(self) -> None:
        self._kept: deque[tuple[Exchange, bool]] = deque()

    async def __call__(self, exchange: Exchange) -> None:
        exchange.broker.held[exchange.writer] = self
        self._kept.append((exchange, True))

    def behind(self, exchange: Exchange) -> None:
        self._kept.append((exchange, False))

    @property
    def exchanges(self) -> list[Exchange]:
        """The requests that the step has kept."""
        return [exchange for exchange, meant in self._kept if meant]

    def release(self, count: int | None = None) -> None:
        """Answers the oldest ``count`` of them, or all, and the requests between and behind them."""
        left = len(self.exchanges) if count is None else count
        while self._kept and (left > 0 or not self._kept[0][1]):
            exchange, meant = self._kept.popleft()
            left -= meant
            exchange.reply(exchange.handle())
            if all(other.writer is not exchange.writer for other, _ in self._kept):
                exchange.broker.held.pop(exchange.writer, None)


def never(*, appended: bool = False) -> Step:
    """Never answers, and reads nothing more from this connection."""
    return after(asyncio.Event(), appended=appended)


def raw(data: bytes) -> Step:
    """Answers with these bytes, unchecked."""

    async def step(exchange: Exchange) -> None:
        exchange.writer.write(data)

    return step


def wrong_correlation_id(off_by: int = 1) -> Step:
    async def step(exchange: Exchange) -> None:
        response = exchange.handle()
        exchange.writer.write(exchange.encoded(response, correlation_id=exchange.header.correlation_id + off_by))

    return step


def partial(share: float = 0.5) -> Step:
    """Sends the first part of the right answer, and ends the connection."""

    async def step(exchange: Exchange) -> None:
        data = exchange.encoded(exchange.handle())
        exchange.writer.write(data[: max(1, int(len(data) * share))])
        await exchange.writer.drain()
        exchange.writer.write_eof()
        await asyncio.Event().wait()

    return step


def crumbs(size: int = 1) -> Step:
    """The right answer, in many small pieces."""

    async def step(exchange: Exchange) -> None:
        data = exchange.encoded(exchange.handle())
        for start in range(0, len(data), size):
            exchange.writer.write(data[start : start + size])
            await asyncio.sleep(0)

    return step


def with_appendix(data: bytes = b"\0\0\0\1x") -> Step:
    """The right answer, followed in the same segment by bytes that answer no request."""

    async def step(exchange: Exchange) -> None:
        exchange.writer.write(exchange.encoded(exchange.handle()) + data)

    return step


# Edits of responses, for ``edited``


def throttled(milliseconds: int) -> Callable[[Any], None]:
    def edit(response: Any) -> None:
        response.throttle_time_ms = milliseconds

    return edit


def without_partition(index: int) -> Callable[[Any], None]:
    """Leaves a partition out of a Produce response."""

    def edit(response: Any) -> None:
        for topic in response.responses:
            topic.partition_responses = [p for p in topic.partition_responses if p.index != index]

    return edit


def doubled_partitions(response: Any) -> None:
    """Answers every partition of a Produce request a second time, with an error."""
    for topic in response.responses:
        again = copy.deepcopy(topic.partition_responses)
        for partition in again:
            partition.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        topic.partition_responses += again
