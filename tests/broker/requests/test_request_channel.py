from __future__ import annotations

import asyncio
import gc
import itertools
import weakref

import pytest

from aioproducer.broker.requests.fatal_exit_error import FatalExitError
from aioproducer.broker.requests.request import ClientSoftware, Request
from aioproducer.broker.requests.request_channel import CallbackRequest, RequestChannel
from aioproducer.broker.requests.request_handler import KafkaRequestHandlerPool, avg_idle_percent
from aioproducer.broker.requests.response import NoOpResponse, RequestEnd
from aioproducer.protocol.headers import RequestHeader
from aioproducer.timing.clock import SystemClock
from tests.broker.raw_clients.served import Handler
from tests.support.manual_clock import ManualClock


class Connection:
    """Where requests come from, and their processor."""

    id, listener, address = "local-remote-0", "PLAINTEXT", "127.0.0.1"
    user, security_protocol, authenticator = "ANONYMOUS", "PLAINTEXT", None

    def __init__(self) -> None:
        self.software: ClientSoftware | None = None
        self.responses: list[RequestEnd] = []
        self.released: list[int] = []

    def release(self, size: int) -> None:
        self.released.append(size)

    def enqueue_response(self, request: Request, response: RequestEnd) -> None:
        self.responses.append(response)


def make_request(channel: RequestChannel, number: int = 0, connection: Connection | None = None) -> Request:
    connection = connection or Connection()
    return Request(RequestHeader(3, 0, number, None), channel, connection, b"frame", processor=7)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_full_queue_makes_senders_wait() -> None:
    channel = RequestChannel(2, SystemClock())
    requests = [make_request(channel, number) for number in range(4)]
    assert channel.offer(requests[0])
    assert channel.offer(requests[1])
    assert not channel.offer(requests[2])
    sending = [asyncio.create_task(channel.send_request(request)) for request in requests[2:]]
    await turns()
    assert len(channel) == 2
    assert not any(task.done() for task in sending)
    assert await channel.receive_request() is requests[0]
    await turns()
    assert [task.done() for task in sending] == [True, False]
    assert [await channel.receive_request() for _ in range(2)] == requests[1:3]
    await turns()
    assert await channel.receive_request() is requests[3]


async def test_the_addresses_of_clients_take_turns() -> None:
    channel = RequestChannel(10, SystemClock())
    many = [make_request(channel, number) for number in range(3)]
    other = Connection()
    other.address = "127.0.0.2"
    for request in (*many, alone := make_request(channel, 3, other)):
        channel.offer(request)
    assert [await channel.receive_request() for _ in range(4)] == [many[0], alone, *many[1:]]


async def test_a_cancelled_sender_passes_its_turn_on() -> None:
    channel = RequestChannel(1, SystemClock())
    requests = [make_request(channel, number) for number in range(3)]
    channel.offer(requests[0])
    first, second = (asyncio.create_task(channel.send_request(request)) for request in requests[1:])
    await turns()
    assert await channel.receive_request() is requests[0]  # wakes the first, which is cancelled before it runs
    first.cancel()
    await turns()
    assert second.done()
    assert await channel.receive_request() is requests[2]


async def test_callbacks_come_before_requests() -> None:
    channel = RequestChannel(10, SystemClock())
    request = make_request(channel)
    channel.offer(request)
    request.call_back(int)
    callback = await channel.receive_request()
    assert isinstance(callback, CallbackRequest)
    assert (callback.request, callback.fun) == (request, int)
    assert await channel.receive_request() is request


async def test_a_callback_wakes_a_handler_that_waits() -> None:
    channel = RequestChannel(10, SystemClock())
    waiting = asyncio.create_task(channel.receive_request())
    await turns()
    make_request(channel).call_back(int)
    assert isinstance(await waiting, CallbackRequest)


@pytest.mark.parametrize("size", [1, 2])
async def test_senders_outnumber_the_room_and_none_waits_for_ever(size: int) -> None:
    channel = RequestChannel(size, SystemClock())
    handler = Handler()
    pool = KafkaRequestHandlerPool("handler", channel, handler, SystemClock())
    pool.resize(8)
    await turns()
    sending = [asyncio.create_task(channel.send_request(make_request(channel, number))) for number in range(40)]
    await turns(200)
    assert all(task.done() for task in sending)
    assert len(handler.requests) == 40
    pool.abort()
    await pool.wait_closed()


async def test_a_later_request_does_not_pass_one_whose_handler_is_still_being_woken() -> None:
    channel = RequestChannel(10, SystemClock())
    connection = Connection()
    first, second = (make_request(channel, number, connection) for number in range(2))
    waiting = asyncio.create_task(channel.receive_request())
    await turns()
    channel.offer(first)
    channel.offer(second)
    assert channel.poll() is first, "a handler that is awake comes before the one that is being woken"
    assert await waiting is second


async def test_a_handler_that_is_cancelled_loses_no_request() -> None:
    channel = RequestChannel(10, SystemClock())
    waiting = asyncio.create_task(channel.receive_request())
    await turns()
    request = make_request(channel)
    channel.offer(request)
    waiting.cancel()
    await turns()
    assert await channel.receive_request() is request


async def test_a_handler_that_is_cancelled_may_be_passed_over_before_it_knows() -> None:
    channel = RequestChannel(10, SystemClock())
    waiting = asyncio.create_task(channel.receive_request())
    await turns()
    request = make_request(channel)
    waiting.cancel()
    channel.offer(request)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await channel.receive_request() is request


async def test_a_cancelled_sender_may_be_skipped_before_it_runs() -> None:
    channel = RequestChannel(1, SystemClock())
    channel.offer(make_request(channel))
    waiting = asyncio.create_task(channel.send_request(make_request(channel)))
    await turns()
    waiting.cancel()
    await channel.receive_request()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_response_without_a_processor_is_dropped() -> None:
    channel = RequestChannel(10, SystemClock())
    connection = Connection()
    channel.add_processor(7, connection)
    request = make_request(channel)
    request.no_response()
    assert [type(response) for response in connection.responses] == [NoOpResponse]
    channel.remove_processor(7)
    request.no_response()
    assert len(connection.responses) == 1


async def test_the_time_line_of_a_request() -> None:
    clock = ManualClock(1.0)
    channel = RequestChannel(10, clock)
    handler = Handler()
    pool = KafkaRequestHandlerPool("handler", channel, handler, clock)
    pool.resize(1)
    request = make_request(channel)
    clock.advance(1)
    channel.offer(request)
    await turns()
    clock.advance(1)
    handler.requests.pop().no_response()
    assert (request.request_dequeue_time, request.api_local_complete_time) == (2.0, 2.0)
    assert request.response_complete_time == 3.0
    pool.abort()
    await pool.wait_closed()


async def test_handlers_take_a_request_each_in_one_turn() -> None:
    channel = RequestChannel(100, SystemClock())
    handler = Handler()
    pool = KafkaRequestHandlerPool("handler", channel, handler, SystemClock())
    pool.resize(4)
    await turns(1)
    for number in range(20):
        channel.offer(make_request(channel, number))
    seen = []
    for _ in range(6):
        await asyncio.sleep(0)
        seen.append(len(handler.requests))
    assert seen[-1] == 20
    assert max(after - before for before, after in itertools.pairwise(seen)) <= 4
    assert [request.header.correlation_id for request in handler.requests] == list(range(20))
    pool.abort()
    await pool.wait_closed()


async def test_the_pool_grows_and_shrinks_while_it_works() -> None:
    channel = RequestChannel(100, SystemClock())
    handler = Handler()
    pool = KafkaRequestHandlerPool("handler", channel, handler, SystemClock())
    pool.resize(4)
    await turns()
    assert channel.idle_handlers == 4
    pool.resize(8)
    await turns()
    assert channel.idle_handlers == 8
    pool.resize(3)
    await turns()
    assert channel.idle_handlers == 3
    channel.offer(make_request(channel))
    await turns()
    assert len(handler.requests) == 1
    pool.resize(0)
    await pool.wait_closed()
    assert channel.idle_handlers == 0


@pytest.mark.parametrize("in_callback", [False, True])
async def test_after_a_fatal_error_nothing_more_is_handled(in_callback: bool, caplog: pytest.LogCaptureFixture) -> None:
    class Fatal(Handler):
        def handle(self, request: Request, frame: bytes | memoryview, body_at: int) -> None:
            super().handle(request, frame, body_at)
            if not in_callback:
                raise FatalExitError("no way on")
            request.call_back(self.go_on)

        def go_on(self) -> None:
            raise FatalExitError("no way on")

    handler = Fatal()
    channel = RequestChannel(100, SystemClock())
    errors: list[str] = []
    pool = KafkaRequestHandlerPool(
        "handler", channel, handler, SystemClock(), on_fatal=lambda error: errors.append(str(error))
    )
    pool.resize(1)
    for number in range(4):
        assert channel.offer(make_request(channel, number))
    await turns()
    pool.resize(4)
    await turns()
    assert len(handler.requests) == 1
    assert errors == ["no way on"]
    assert not channel.handle_now(make_request(channel))
    (record,) = caplog.records
    assert record.levelname == "CRITICAL"
    assert record.message.endswith("the node stops: no way on")
    await pool.wait_closed()


async def test_idle_and_busy() -> None:
    clock = ManualClock(1.0)

    class Slow(Handler):
        def handle(self, request: Request, frame: bytes | memoryview, body_at: int) -> None:
            clock.advance(10)

    channel = RequestChannel(100, clock)
    pool = KafkaRequestHandlerPool("handler", channel, Slow(), clock)
    assert avg_idle_percent([pool], clock.monotonic()) == 1.0
    pool.resize(2)
    connection = Connection()
    pool.handle(make_request(channel, connection=connection))
    clock.advance(20)
    assert connection.released == [5]
    idle = avg_idle_percent([pool], clock.monotonic())
    assert 0.85 < idle < 0.95
    another = KafkaRequestHandlerPool("another", RequestChannel(100, clock), Slow(), clock)
    another.resize(6)
    assert avg_idle_percent([another], clock.monotonic()) == 1.0
    of_all = avg_idle_percent([pool, another], clock.monotonic())
    assert of_all == pytest.approx((2 * idle + 6) / 8), "a pool counts as much as it has handlers"
    for each in (pool, another):
        each.abort()
        await each.wait_closed()


async def test_a_waiter_for_rest_is_woken_when_a_handler_is_idle() -> None:
    channel = RequestChannel(5, SystemClock())
    for number in range(2):
        assert channel.offer(make_request(channel, number))
    waiting = asyncio.create_task(channel.rest())

    async def handler() -> None:
        while True:
            await channel.receive_request()
            await asyncio.sleep(0)

    handling = asyncio.create_task(handler())
    while len(channel):
        assert not waiting.done()
        await asyncio.sleep(0)
    await waiting
    handling.cancel()


async def test_a_handler_that_waits_keeps_no_request() -> None:
    """It may wait for long, and its last request may have had 100 MB."""

    class Large:
        """Something that a callback holds."""

        def call(self) -> None:
            pass

    channel = RequestChannel(10, SystemClock())
    pool = KafkaRequestHandlerPool("handler", channel, Handler(), SystemClock())
    pool.resize(2)
    await turns()
    large = Large()
    held = weakref.ref(large)
    gc.disable()
    try:
        channel.send_callback(make_request(channel), large.call)
        del large
        await turns()
        assert held() is None
    finally:
        gc.enable()
    pool.abort()
    await pool.wait_closed()
