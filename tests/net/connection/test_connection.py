from __future__ import annotations

import asyncio
import errno
import socket
import struct
import time
from typing import Any

import pytest

from aioproducer.errors import InvalidReceiveException, KafkaError, NetworkException, SchemaException, TimeoutException
from aioproducer.metrics.network_metrics import NetworkMetrics
from aioproducer.metrics.registry import MetricRegistry
from aioproducer.net.connection.connection import LISTENS, Connection
from aioproducer.net.connection.connection_protocol import ConnectionProtocol
from aioproducer.net.connection.in_flight_request import InFlightRequest, MessageRequest
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.frame_reader import FrameReader
from aioproducer.protocol.framing import decode_request, encode_response
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from tests.support.leaks import no_leaks as no_leaks
from tests.support.turns import shortest_turns as shortest_turns
from tests.support.virtual_time import World, virtual

pytestmark = pytest.mark.usefixtures("no_leaks")

VERSION = 9


class Transport:
    """Keeps what is written, and reports its end to the protocol as asyncio does."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.written = bytearray()
        self.closed = ""
        self.high = 0
        self.writes = 0
        self.reading = True
        self.waiting = 0
        """Bytes that the socket has not taken."""
        self.options: list[tuple[int, int, int | bytes]] = []

    def get_extra_info(self, name: str) -> Any:
        """Of which there is but one: the transport is its own socket."""
        return self if name == "socket" else None

    def fileno(self) -> int:
        return -1

    def setsockopt(self, *option: Any) -> None:
        if self.closed:
            raise OSError(errno.EBADF, "Bad file descriptor")
        self.options.append(option)

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def writelines(self, parts: Any) -> None:
        assert not self.closed
        self.writes += 1
        self.written += b"".join(parts)

    def is_closing(self) -> bool:
        return bool(self.closed)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def write(self, data: Any) -> None:
        self.writelines([data])

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high
        if self.waiting > high:
            self.connection.pause_writing()

    def close(self) -> None:
        self._end("close")

    def abort(self) -> None:
        self._end("abort")

    def _end(self, how: str) -> None:
        if not self.closed:
            self.closed = how
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)


class Scene:
    """A connection on a test transport, and everything that it reports."""

    def __init__(
        self, *, request_timeout: float = 30.0, connected: bool = True, spare_buffers: list[bytearray] | None = None
    ) -> None:
        self.closings: list[KafkaError] = []
        self.crashes: list[BaseException] = []
        self.bug: Exception | None = None
        """An error that is raised when the connection reports a throttle."""
        self.rooms = 0
        self.throttled: list[int] = []
        self.metrics = NetworkMetrics(MetricRegistry())
        self.connection = Connection(
            "broker:1",
            client_id="me",
            request_timeout=request_timeout,
            send_buffer=131072,
            write_buffer=1000,
            on_closed=lambda connection, error: self.closings.append(error),
            on_room=self._has_room,
            on_throttled=self._throttled,
            on_crash=self.crashes.append,
            metrics=self.metrics.node(0),
            spare_buffers=[] if spare_buffers is None else spare_buffers,
        )
        self.transport = Transport(self.connection)
        if connected:
            self.connect()

    def _has_room(self) -> None:
        self.rooms += 1

    def _throttled(self, milliseconds: int) -> None:
        if self.bug is not None:
            raise self.bug
        self.throttled.append(milliseconds)

    def connect(self) -> None:
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    def send(self, results: list[Any], version: int = VERSION, **options: Any) -> None:
        """Sends a request; ``results`` gets (response, error)."""
        request = MetadataRequest(topics=[])
        self.connection.send(MessageRequest(request, version, lambda *end: results.append(end)), **options)

    def correlation_ids(self) -> list[int]:
        """Of everything sent so far."""
        ids, data = [], bytes(self.transport.written)
        while data:
            size = int.from_bytes(data[:4], "big")
            ids.append(decode_request(data[4 : 4 + size])[0].correlation_id)
            data = data[4 + size :]
        return ids

    def answer(self, correlation_id: int, cluster_id: str = "c", version: int = VERSION, throttle: int = 0) -> bytes:
        response = MetadataResponse(cluster_id=cluster_id, throttle_time_ms=throttle)
        parts = encode_response(response, version=version, correlation_id=correlation_id)
        return b"".join(parts)

    def receive(self, data: bytes) -> None:
        while data:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            data = data[count:]
            self.connection.buffer_updated(count)


async def test_answers_come_in_order_however_they_are_cut() -> None:
    scene = Scene()
    results: list[Any] = []
    for _ in range(3):
        scene.send(results)
    ids = scene.correlation_ids()
    assert len(set(ids)) == 3
    data = b"".join(scene.answer(correlation_id, str(n)) for n, correlation_id in enumerate(ids))
    for byte in data[:-1]:
        scene.receive(bytes([byte]))
    assert len(results) == 2
    scene.receive(data[-1:])
    assert [response.cluster_id for response, _ in results] == ["0", "1", "2"]
    assert scene.connection.answers == 3
    scene.connection.close(NetworkException("the end"))


async def test_connections_share_the_buffers_into_which_answers_are_read() -> None:
    spare: list[bytearray] = []
    scenes = [Scene(spare_buffers=spare) for _ in range(10)]
    results: list[Any] = []
    for scene in scenes:
        scene.send(results)
        scene.receive(scene.answer(scene.correlation_ids()[0]))
        assert len(spare) == 1, "the next connection reads into the same one"
    begun = scenes[0]
    begun.send(results)
    answer = begun.answer(begun.correlation_ids()[1], "begun")
    begun.receive(answer[:20])
    assert not spare, "an answer that has begun keeps its buffer"
    scenes[1].send(results)
    scenes[1].receive(scenes[1].answer(scenes[1].correlation_ids()[1], "between"))
    begun.receive(answer[20:])
    assert [response.cluster_id for response, _ in results[10:]] == ["between", "begun"]
    for scene in scenes:
        scene.connection.close(NetworkException("the end"))


async def test_requests_and_responses_are_measured() -> None:
    scene = Scene()
    results: list[Any] = []
    for _ in range(3):
        scene.send(results)
    scene.send(results, expect_response=False)
    answers = b"".join(map(scene.answer, scene.correlation_ids()[:2]))
    scene.receive(answers)
    node = scene.metrics.node(0)
    assert (node.sent.count, node.sent.total) == (4, len(scene.transport.written))
    assert (node.received.count, node.received.total) == (2, len(answers))
    assert (scene.metrics.opened.count, scene.metrics.closed.count) == (1, 0)
    scene.connection.close(NetworkException("the end"))
    await asyncio.sleep(0)
    assert (scene.metrics.opened.count, scene.metrics.closed.count) == (1, 1)


async def test_a_connection_given_up_before_it_was_made_counts_as_made_and_closed() -> None:
    scene = Scene(connected=False)
    scene.connection.close(NetworkException("given up"))
    scene.connect()
    await asyncio.sleep(0)
    assert (scene.metrics.opened.count, scene.metrics.closed.count) == (1, 1)


async def test_all_answers_in_one_piece() -> None:
    scene = Scene()
    results: list[Any] = []
    for _ in range(3):
        scene.send(results)
    scene.receive(b"".join(map(scene.answer, scene.correlation_ids())))
    assert len(results) == 3
    assert not scene.connection.in_flight
    scene.connection.close(NetworkException("the end"))


@pytest.mark.parametrize(
    ("data", "kind", "says"),
    [
        (b"\xff\xff\xff\xff", InvalidReceiveException, "negative"),
        (b"HTTP/1.1 400", InvalidReceiveException, "HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x50", InvalidReceiveException, "TLS"),
        (b"\0\0\0\x02ab", SchemaException, ""),
        (b"\0\0\0\x06\x7f\xff\xff\xff\0\0", SchemaException, ""),
    ],
)
async def test_bytes_that_are_no_answer_end_everything_with_that_cause(
    data: bytes, kind: type[KafkaError], says: str
) -> None:
    scene = Scene()
    results: list[Any] = []
    scene.send(results)
    scene.send(results)
    scene.receive(data)
    assert [type(error) for error in scene.closings] == [kind]
    assert says in str(scene.closings[0])
    for response, error in results:
        assert response is None
        assert isinstance(error, NetworkException)
        assert isinstance(error.__cause__, kind)
        assert "METADATA" in str(error)
    assert scene.transport.closed == "abort"
    assert not scene.crashes


async def test_an_answer_to_another_request_is_not_believed() -> None:
    scene = Scene()
    results: list[Any] = []
    scene.send(results)
    scene.send(results)
    scene.receive(scene.answer(scene.correlation_ids()[1]))
    assert isinstance(scene.closings[0], SchemaException)
    await asyncio.sleep(0)  # its requests end
    assert [response for response, _ in results] == [None, None]


async def test_an_answer_without_a_request_ends_the_connection_and_the_rest_is_ignored() -> None:
    scene = Scene()
    results: list[Any] = []
    scene.send(results)
    (correlation_id,) = scene.correlation_ids()
    scene.receive(scene.answer(correlation_id) + scene.answer(correlation_id) * 2)
    assert results[0][1] is None
    assert len(scene.closings) == 1
    assert "answer no request" in str(scene.closings[0])


@pytest.mark.parametrize("how", ["eof", "lost", "lost with an error"])
async def test_the_end_of_the_connection_is_reported_once(how: str) -> None:
    scene = Scene()
    results: list[Any] = []
    scene.send(results)
    if how == "eof":
        assert not scene.connection.eof_received()
    else:
        scene.connection.connection_lost(ConnectionResetError("reset") if how == "lost with an error" else None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(scene.closings) == len(results) == 1
    assert ("reset" in str(results[0][1])) == (how == "lost with an error")
    ended = results[0][1].__cause__
    assert ended is scene.closings[0]
    assert type(ended.__cause__) is (ConnectionResetError if how == "lost with an error" else type(None))
    with pytest.raises(NetworkException):
        scene.send(results)


async def test_the_oldest_request_out_of_time_ends_the_connection() -> None:
    scene = Scene(request_timeout=0.01)
    results: list[Any] = []
    scene.send(results)
    scene.connection.request_timeout = 10.0
    scene.send(results)
    await asyncio.wait([scene.connection.ended])
    assert isinstance(scene.closings[0], TimeoutException)
    assert "request.timeout.ms" in str(scene.closings[0])
    assert [type(error) for _, error in results] == [NetworkException, NetworkException]


async def test_the_timer_moves_on_with_the_answers() -> None:
    scene = Scene(request_timeout=0.02)
    results: list[Any] = []
    loop = asyncio.get_running_loop()
    until = loop.time() + 0.06
    while loop.time() < until:
        scene.send(results)
        scene.receive(scene.answer(scene.correlation_ids()[-1]))
        await asyncio.sleep(0.002)
    assert not scene.closings
    scene.connection.close(NetworkException("the end"))
    assert scene.connection._timer is None


async def test_a_request_without_response_is_not_waited_for() -> None:
    scene = Scene()
    results: list[Any] = []
    scene.send(results, expect_response=False)
    assert scene.correlation_ids()
    assert not scene.connection.in_flight
    scene.connection.close(NetworkException("the end"))
    assert not results


async def test_backpressure_is_passed_on() -> None:
    scene = Scene()
    assert scene.transport.high == 1000
    assert scene.connection.writable
    scene.connection.pause_writing()
    assert not scene.connection.writable
    scene.connection.resume_writing()
    assert scene.connection.writable
    assert scene.rooms == 1
    scene.connection.close(NetworkException("the end"))
    assert not scene.connection.writable


async def test_a_socket_that_takes_nothing_is_given_up_though_no_answer_is_due() -> None:
    """With acks=0 there is no request to be late: without this a dead connection would be kept until it is idle."""
    scene = Scene(request_timeout=0.01)
    scene.send([], expect_response=False)
    scene.connection.pause_writing()
    await asyncio.wait([scene.connection.ended])
    (error,) = scene.closings
    assert isinstance(error, TimeoutException)
    assert "did not take what was sent to it within 10 ms (request.timeout.ms)" in str(error)


async def test_a_socket_that_takes_bytes_again_in_time_is_kept() -> None:
    scene = Scene(request_timeout=0.02)
    results: list[Any] = []
    scene.connection.pause_writing()
    scene.connection.resume_writing()
    await asyncio.sleep(0.04)
    assert not scene.closings
    assert scene.connection._timer is None
    scene.send(results)
    scene.connection.pause_writing()
    scene.connection.resume_writing()
    await asyncio.wait([scene.connection.ended])
    assert "did not answer METADATA" in str(scene.closings[0]), "what is due is its answer"


async def test_an_answered_call_makes_room_even_if_its_caller_is_gone() -> None:
    scene = Scene()
    call = scene.connection.call(MetadataRequest(topics=[]), MetadataResponse, VERSION)
    gone = scene.connection.call(MetadataRequest(topics=[]), MetadataResponse, VERSION)
    lost = scene.connection.call(MetadataRequest(topics=[]), MetadataResponse, VERSION)
    gone.cancel()
    scene.receive(b"".join(map(scene.answer, scene.correlation_ids()[:2])))
    assert (await call).cluster_id == "c"
    assert scene.rooms == 2
    scene.connection.close(NetworkException("the end"))
    with pytest.raises(NetworkException):
        await lost
    assert scene.rooms == 2, "the link reports that its end makes room"


async def test_a_request_is_written_in_one_go() -> None:
    scene = Scene()
    scene.send([])
    assert scene.transport.writes == 1
    assert len(scene.correlation_ids()) == 1


async def test_backpressure_that_writelines_forgets_to_pass_on() -> None:
    scene = Scene()
    scene.transport.waiting = 1000
    scene.send([])
    assert scene.connection.writable
    scene.transport.waiting = 1001
    scene.send([])
    assert not scene.connection.writable
    assert len(scene.correlation_ids()) == 2


async def test_a_connection_given_up_before_it_was_made() -> None:
    scene = Scene(connected=False)
    with pytest.raises(NetworkException, match="not connected"):
        scene.send([])
    scene.connection.close(NetworkException("never mind"))
    scene.connect()
    assert scene.transport.closed == "abort"
    assert not scene.connection.writable


async def test_call_returns_the_answer_or_raises() -> None:
    scene = Scene()
    calls = [
        asyncio.ensure_future(scene.connection.call(MetadataRequest(topics=[]), MetadataResponse, VERSION))
        for _ in range(3)
    ]
    await asyncio.sleep(0)
    calls[1].cancel()
    await asyncio.sleep(0)
    ids = scene.correlation_ids()
    scene.receive(scene.answer(ids[0], "first") + scene.answer(ids[1]))  # the second one's caller is gone
    scene.connection.close(NetworkException("the end"))
    assert (await calls[0]).cluster_id == "first"
    with pytest.raises(NetworkException, match="the end"):
        await calls[2]
    assert not scene.crashes


async def test_the_send_buffer_is_resized_while_there_is_a_socket() -> None:
    scene = Scene()
    scene.connection.resize_send_buffer(262144)
    assert scene.connection.send_buffer == 262144
    assert scene.transport.options == [(socket.SOL_SOCKET, socket.SO_SNDBUF, 262144)]
    scene.connection.close(NetworkException("given up"))
    scene.connection.resize_send_buffer(524288)  # it refuses options by now
    await scene.connection.ended
    scene.connection.resize_send_buffer(524288)
    assert len(scene.transport.options) == 1
    assert not scene.crashes


async def test_a_graceful_close_lets_what_was_written_leave() -> None:
    scene = Scene()
    results: list[Any] = []
    scene.send(results)
    scene.connection.close(NetworkException("the end"), graceful=True)
    await scene.connection.ended
    assert scene.transport.closed == "close"
    assert scene.transport.options == []
    assert isinstance(results[0][1], NetworkException)


async def test_unsent_bytes_are_dropped_with_the_connection() -> None:
    """A request that is sent again must not reach the broker over the old connection, long after it was given up."""
    scene = Scene()
    scene.send([])
    scene.connection.close(NetworkException("the end"))
    assert scene.transport.closed == "abort"
    assert scene.transport.options == [(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))]
    scene.connection.abort()


async def test_the_kernel_sends_the_rest_of_a_connection_on_which_no_answer_is_due() -> None:
    """With acks=0 these are records that nobody sends again."""
    scene = Scene()
    scene.send([], expect_response=False)
    scene.connection.close(NetworkException("idle"))
    assert scene.transport.closed == "abort"
    assert scene.transport.options == []


async def test_a_connection_that_is_not_made_yet_is_aborted_at_once() -> None:
    scene = Scene(connected=False)
    scene.connection.close(NetworkException("the end"), graceful=True)
    await asyncio.sleep(0)  # its requests end
    assert scene.connection.ended.done()
    scene.connect()
    assert scene.transport.closed == "abort"


async def test_a_graceful_close_when_answered_lets_what_was_written_leave() -> None:
    """An answer that nobody reads would have the system reset the connection, and what acks=0 wrote would be lost."""
    scene = Scene()
    results: list[Any] = []
    scene.send(results)
    scene.send([], expect_response=False)
    scene.connection.close_when_answered(NetworkException("the end"), graceful=True)
    await asyncio.sleep(0)
    assert scene.transport.closed == ""
    scene.receive(scene.answer(scene.correlation_ids()[0]))
    await scene.connection.ended
    assert scene.transport.closed == "close"
    assert results[0][1] is None


async def test_close_when_answered() -> None:
    scene = Scene()
    results: list[Any] = []
    scene.send(results)
    scene.send(results)
    last_words = NetworkException("it has moved")
    scene.connection.close_when_answered(last_words)
    with pytest.raises(NetworkException, match="it has moved"):
        scene.send(results)
    ids = scene.correlation_ids()
    scene.receive(scene.answer(ids[0]))
    assert not scene.closings
    scene.receive(scene.answer(ids[1]))
    assert scene.closings == [last_words]
    assert all(error is None for _, error in results)
    idle = Scene()
    idle.connection.close_when_answered(last_words)
    assert idle.closings == [last_words]


async def test_an_error_in_a_handler_is_a_crash_and_the_other_requests_end() -> None:
    scene = Scene()
    results: list[Any] = []
    bug = ValueError("a bug")

    def buggy(response: Any, error: Any) -> None:
        raise bug

    scene.connection.send(MessageRequest(MetadataRequest(topics=[]), VERSION, buggy))
    scene.send(results)
    ids = scene.correlation_ids()
    scene.receive(scene.answer(ids[0]) + scene.answer(ids[1]))
    await asyncio.sleep(0)  # on a busy machine the second one has a turn of its own
    assert scene.crashes == [bug]
    assert len(results) == 1
    scene.connection.send(MessageRequest(MetadataRequest(topics=[]), VERSION, buggy))
    scene.send(results)
    scene.connection.close(NetworkException("the end"))
    await scene.connection.ended
    assert scene.crashes == [bug, bug]
    assert len(results) == 2


async def test_a_bug_in_what_the_loop_calls_is_a_crash() -> None:
    scene = Scene()
    scene.bug = ValueError("a bug")
    results: list[Any] = []
    scene.send(results)
    scene.receive(scene.answer(1, throttle=5))
    assert not results
    assert scene.crashes == [scene.bug]
    scene.connection.close(NetworkException("the end"))


async def test_correlation_ids_stay_positive() -> None:
    scene = Scene()
    scene.connection._correlation_id = 0x7FFFFFFF - 1
    results: list[Any] = []
    scene.send(results)
    scene.send(results)
    assert scene.correlation_ids() == [0x7FFFFFFF, 0]
    scene.connection.close(NetworkException("the end"))


async def test_every_request_has_the_client_id() -> None:
    scene = Scene()
    scene.send([])
    header, _ = decode_request(bytes(scene.transport.written)[4:])
    assert header.client_id == "me"


async def test_an_answer_may_ask_to_be_left_alone() -> None:
    scene = Scene()
    results: list[Any] = []
    for version, throttle in ((6, 0), (6, 70), (5, 80)):
        scene.send(results, version)
        scene.receive(scene.answer(len(results) + 1, version=version, throttle=throttle))
    assert len(results) == 3
    assert scene.throttled == [70], "a broker of before KIP-219 has waited itself before it answered"


# Large answers


def large_answer(scene: Scene, correlation_id: int, brokers: int = 3000) -> bytes:
    named = [MetadataResponseBroker(number, "host", 1) for number in range(brokers)]
    response = MetadataResponse(brokers=named, cluster_id="large")
    return b"".join(encode_response(response, version=VERSION, correlation_id=correlation_id))


async def turns(scene: Scene) -> int:
    """How many turns of the loop pass until all that was received has been read."""
    count = 0
    connection = scene.connection
    while not (connection._receiving or connection.error is not None) and count < 100_000:
        await asyncio.sleep(0)
        count += 1
    assert not scene.crashes
    return count


@pytest.mark.usefixtures("shortest_turns")
async def test_others_have_turns_while_a_large_answer_is_read_and_those_behind_it_wait() -> None:
    scene = Scene()
    results: list[Any] = []
    for _ in range(4):
        scene.send(results)
    one, two, three, four = scene.correlation_ids()
    large = large_answer(scene, two)
    scene.receive(scene.answer(one, "one") + large + scene.answer(three, "three"))
    assert [response.cluster_id for response, _ in results] == ["one"]
    assert not scene.transport.reading
    assert await turns(scene) > len(large) // 4000
    assert [response.cluster_id for response, _ in results] == ["one", "large", "three"]
    assert len(results[1][0].brokers) == 3000
    assert scene.transport.reading
    assert scene.connection.answers == 3
    scene.receive(large_answer(scene, four))
    await turns(scene)
    assert len(results) == 4
    scene.connection.close(NetworkException("the end"))


@pytest.mark.usefixtures("shortest_turns")
@pytest.mark.parametrize("closed", [False, True])
async def test_others_have_turns_between_answers_in_one_piece(closed: bool) -> None:
    scene = Scene(request_timeout=0.05)
    results: list[Any] = []
    for _ in range(4):
        scene.send(results)
    ids = scene.correlation_ids()
    scene.receive(b"".join(scene.answer(number, str(number)) for number in ids))
    assert len(results) == 1
    assert not scene.transport.reading
    scene.connection.in_flight[0].deadline = scene.connection._loop.time() - 1
    scene.connection._check_timeout()  # its answer has arrived
    assert len(results) == 1
    if closed:
        scene.connection.close(NetworkException("the end"))
        await asyncio.sleep(0.01)
        assert [error is None for _, error in results] == [True, False, False, False]
    else:
        assert await turns(scene) == 3
        assert [response.cluster_id for response, _ in results] == [str(number) for number in ids]
        assert scene.transport.reading
        scene.connection.close(NetworkException("the end"))
    assert not scene.crashes


@pytest.mark.usefixtures("shortest_turns")
async def test_two_large_answers_in_one_piece() -> None:
    scene = Scene()
    results: list[Any] = []
    for _ in range(3):
        scene.send(results)
    ids = scene.correlation_ids()
    scene.receive(large_answer(scene, ids[0], 1200) + large_answer(scene, ids[1], 1200) + scene.answer(ids[2]))
    await turns(scene)
    assert [len(response.brokers) for response, _ in results] == [1200, 1200, 0]
    assert scene.transport.reading
    scene.connection.close(NetworkException("the end"))


@pytest.mark.usefixtures("shortest_turns")
async def test_an_answer_that_is_being_read_is_not_late_and_the_next_one_may_be() -> None:
    scene = Scene(request_timeout=0.05)
    results: list[Any] = []
    for _ in range(2):
        scene.send(results)
    scene.receive(large_answer(scene, scene.correlation_ids()[0]))
    scene.connection.in_flight[0].deadline = scene.connection._loop.time() - 1
    scene.connection._check_timeout()
    assert not results
    await turns(scene)
    assert results[0][1] is None
    await asyncio.sleep(0.1)
    assert isinstance(results[1][1].__cause__, TimeoutException)


@pytest.mark.usefixtures("shortest_turns")
async def test_a_connection_that_ends_while_it_reads_ends_all_requests_once() -> None:
    scene = Scene()
    results: list[Any] = []
    for _ in range(2):
        scene.send(results)
    ids = scene.correlation_ids()
    scene.receive(large_answer(scene, ids[0]) + scene.answer(ids[1]))
    await asyncio.sleep(0)
    scene.connection.close(NetworkException("the end"))
    await asyncio.sleep(0.01)
    assert [type(error) for _, error in results] == [NetworkException, NetworkException]
    assert not scene.crashes


@pytest.mark.usefixtures("shortest_turns")
async def test_a_large_answer_that_is_none_closes_the_connection() -> None:
    scene = Scene()
    results: list[Any] = []
    scene.send(results)
    large = large_answer(scene, scene.correlation_ids()[0])
    scene.receive(large[:-3000] + b"\xff" * 3000)
    await turns(scene)
    assert isinstance(scene.closings[0], SchemaException)
    await asyncio.sleep(0)  # its requests end
    assert len(results) == 1


async def test_an_answer_may_be_as_large_as_its_api_allows() -> None:
    scene = Scene()
    results: list[Any] = []
    settle = lambda *end: results.append(end)  # noqa: E731
    scene.connection.send(MessageRequest(MetadataRequest(topics=[]), VERSION, settle))
    scene.connection.send(MessageRequest(ApiVersionsRequest(), 0, settle))
    scene.receive((50_000_000).to_bytes(4, "big"))
    assert not scene.closings
    scene = Scene()
    scene.connection.send(MessageRequest(ApiVersionsRequest(), 0, settle))
    scene.connection.send(MessageRequest(MetadataRequest(topics=[]), VERSION, settle))
    scene.receive((50_000_000).to_bytes(4, "big"))
    (error,) = scene.closings
    assert isinstance(error, InvalidReceiveException)
    assert "above the limit of 16384: 50000000" in str(error)
    await asyncio.sleep(0)  # its requests end
    assert len(results) == 2


async def test_an_answer_without_a_request_may_not_be_large() -> None:
    scene = Scene()
    scene.receive((20_000).to_bytes(4, "big"))
    assert isinstance(scene.closings[0], InvalidReceiveException)


# What was received before the end


BAD_SIZES = pytest.mark.parametrize("size", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfb", b"HTTP"])


@BAD_SIZES
async def test_answers_in_front_of_an_impossible_size_count(size: bytes) -> None:
    scene = Scene()
    results: list[Any] = []
    for _ in range(3):
        scene.send(results)
    one, two, three = scene.correlation_ids()
    scene.receive(scene.answer(one, "one") + scene.answer(two, "two") + size + scene.answer(three))
    scene.receive(scene.answer(three))
    await turns(scene)
    assert [response.cluster_id for response, error in results if error is None] == ["one", "two"]
    await asyncio.sleep(0)  # its requests end
    assert isinstance(results[2][1].__cause__, InvalidReceiveException)
    assert [type(error) for error in scene.closings] == [InvalidReceiveException]


@pytest.mark.usefixtures("shortest_turns")
@BAD_SIZES
async def test_answers_in_front_of_an_impossible_size_count_in_later_turns(size: bytes) -> None:
    scene = Scene()
    results: list[Any] = []
    for _ in range(4):
        scene.send(results)
    ids = scene.correlation_ids()
    gathered = large_answer(scene, ids[0], 80_000)
    assert len(gathered) > FrameReader.LARGE
    scene.receive(gathered[:-10])
    scene.receive(gathered[-10:] + scene.answer(ids[1], "one") + large_answer(scene, ids[2], 1000) + size)
    assert not scene.closings
    assert not scene.connection.writable, "nothing is sent to which no answer would be read"
    scene.connection.resume_writing()
    assert not scene.connection.writable
    await turns(scene)
    assert [len(response.brokers) for response, error in results if error is None] == [80_000, 0, 1000]
    await asyncio.sleep(0)  # its requests end
    assert isinstance(results[3][1].__cause__, InvalidReceiveException)
    assert len(scene.closings) == 1


@pytest.mark.usefixtures("shortest_turns")
@pytest.mark.parametrize("how", ["eof", "lost", "stuck"])
@pytest.mark.parametrize("passed", [0, 1, 3])
async def test_answers_that_wait_for_their_turn_when_the_connection_ends_count(how: str, passed: int) -> None:
    scene = Scene()
    results: list[Any] = []
    for _ in range(5):
        scene.send(results)
    ids = scene.correlation_ids()
    answers = scene.answer(ids[0], "one") + large_answer(scene, ids[1]) + scene.answer(ids[2], "three")
    scene.receive(answers + large_answer(scene, ids[3]) + scene.answer(ids[4])[:-1])
    for _ in range(passed):
        await asyncio.sleep(0)
    assert len(results) == 1
    if how == "eof":
        scene.connection.eof_received()
    elif how == "lost":
        scene.connection.connection_lost(ConnectionResetError("reset"))
    else:
        scene.connection._stuck_at = 0.0
        scene.connection._check_timeout()
    assert not scene.connection.writable
    await asyncio.sleep(0.05)  # all is handled
    assert [response.cluster_id for response, _ in results[:4]] == ["one", "large", "three", "large"]
    assert results[4][1].__cause__ is scene.closings[0]
    assert len(scene.closings) == 1
    await asyncio.sleep(0.01)
    assert len(results) == 5
    assert not scene.crashes


@virtual
async def test_a_request_is_not_late_while_the_socket_has_more(world: World) -> None:
    scene = Scene(request_timeout=1)
    results: list[Any] = []
    for _ in range(3):
        scene.send(results)
    ids = scene.correlation_ids()
    scene.connection._loop.hold(2)  # type: ignore[attr-defined]
    scene.receive(scene.answer(ids[0]))
    scene.connection._check_timeout()
    assert not scene.closings
    scene.receive(scene.answer(ids[1]))
    await asyncio.sleep(LISTENS + 0.001)
    assert not scene.closings
    await asyncio.sleep(LISTENS + 0.001)
    assert isinstance(scene.closings[0], TimeoutException)
    assert [error is None for _, error in results] == [True, True, False]


@pytest.mark.usefixtures("shortest_turns")
async def test_a_handler_that_closes_the_connection_while_it_ends_leaves_the_rest_unanswered() -> None:
    scene = Scene()
    results: list[Any] = []
    own = NetworkException("refused")
    scene.send(results)
    scene.connection.send(MessageRequest(MetadataRequest(topics=[]), VERSION, lambda *_: scene.connection.close(own)))
    scene.send(results)
    scene.receive(b"".join(map(scene.answer, scene.correlation_ids())))
    scene.connection.connection_lost(None)
    await asyncio.sleep(0.05)  # all is handled
    assert [error is None for _, error in results] == [True, False]
    assert scene.closings == [own]


@pytest.mark.usefixtures("shortest_turns")
async def test_a_bug_in_the_last_answers_is_a_crash_and_the_connection_ends() -> None:
    scene = Scene()
    scene.bug = ValueError("a bug")
    results: list[Any] = []
    for _ in range(3):
        scene.send(results)
    one, two, three = scene.correlation_ids()
    scene.receive(scene.answer(one) + scene.answer(two, throttle=5) + scene.answer(three))
    scene.connection.connection_lost(None)
    await asyncio.sleep(0.05)  # all is handled
    assert scene.crashes == [scene.bug]
    scene.connection.close(NetworkException("the producer failed"))  # as the crash of a producer does
    await asyncio.sleep(0.05)
    assert scene.connection.ended.done()
    assert len(scene.closings) == 1


# Handlers that take several turns


def in_steps(scene: Scene, steps: int, done: list[str], name: str, *, bug_at: int = -1) -> None:
    """Sends a request whose answer, or end without one, is handled in steps, each of which it notes."""

    class InSteps(InFlightRequest):
        at = 0

        def body(self) -> list[bytes | memoryview]:
            return [b"\0"]

        def read(self, frame: bytes) -> int:
            return 0

        def answered(self) -> bool:
            self.at += 1
            done.append(f"{name}{self.at}")
            if self.at == bug_at:
                raise ValueError("a bug")
            return self.at == steps

        def failed(self, error: KafkaError) -> bool:
            self.at += 1
            done.append(f"{name} failed")
            if self.at == bug_at:
                raise ValueError("a bug")
            return self.at >= steps

    scene.connection.send(InSteps(ApiKey.METADATA, VERSION))


async def answered_in_steps(scene: Scene, steps: list[int], answered: int, *, bug_at: int = -1) -> list[str]:
    """Sends requests a, b, c, … and receives the answers of so many; what has been done, which grows."""
    done: list[str] = []
    for name, count in zip("abcd", steps, strict=False):
        in_steps(scene, count, done, name, bug_at=bug_at)
    numbers = range(1, answered + 1)
    scene.receive(b"".join(scene.answer(number) for number in numbers))
    return done


@pytest.mark.usefixtures("shortest_turns")
async def test_an_answer_is_handled_in_turns_and_those_behind_it_wait() -> None:
    scene = Scene()
    done = await answered_in_steps(scene, [3, 1, 2], 3)
    assert done == ["a1"]
    assert not scene.transport.reading
    assert await turns(scene) == 5
    assert done == ["a1", "a2", "a3", "b1", "c1", "c2"]
    assert scene.transport.reading
    scene.connection.close(NetworkException("the end"))
    assert len(done) == 6
    assert not scene.crashes


@pytest.mark.usefixtures("shortest_turns")
async def test_while_an_answer_is_handled_the_next_one_is_not_late() -> None:
    scene = Scene()
    done = await answered_in_steps(scene, [3, 1], 1)
    scene.connection.in_flight[0].deadline = scene.connection._loop.time() - 1
    scene.connection._check_timeout()
    assert done == ["a1"]
    await turns(scene)
    assert done == ["a1", "a2", "a3"]
    await asyncio.sleep(0.02)
    assert isinstance(scene.closings[0], TimeoutException)
    assert done[3:] == ["b failed"]


@pytest.mark.usefixtures("shortest_turns")
@pytest.mark.parametrize("how", ["own", "eof", "lost"])
@pytest.mark.parametrize("passed", [0, 1])
async def test_an_answer_is_handled_to_its_end_before_the_connection_ends(how: str, passed: int) -> None:
    scene = Scene()
    done = await answered_in_steps(scene, [4, 2, 1], 2)
    for _ in range(passed):
        await asyncio.sleep(0)
    if how == "own":
        scene.connection.close(NetworkException("the end"))
    elif how == "eof":
        scene.connection.eof_received()
    else:
        scene.connection.connection_lost(None)
    await asyncio.sleep(0.01)  # its requests end
    assert done[:4] == ["a1", "a2", "a3", "a4"]
    assert done[4:] == (["b failed", "b failed", "c failed"] if how == "own" else ["b1", "b2", "c failed"])
    count = len(done)
    await asyncio.sleep(0.01)
    assert len(done) == count
    assert len(scene.closings) == 1
    assert not scene.crashes


@pytest.mark.usefixtures("shortest_turns")
async def test_a_bug_in_a_later_turn_is_a_crash_and_the_other_answers_are_handled() -> None:
    scene = Scene()
    done = await answered_in_steps(scene, [3, 1], 2, bug_at=2)
    await asyncio.sleep(0.01)
    assert done == ["a1", "a2", "b1"]
    assert [type(error) for error in scene.crashes] == [ValueError]
    scene.connection.close(NetworkException("the end"))


@pytest.mark.usefixtures("shortest_turns")
async def test_close_when_answered_waits_until_the_answer_has_been_handled() -> None:
    scene = Scene()
    done = await answered_in_steps(scene, [3], 1)
    last_words = NetworkException("it has moved")
    scene.connection.close_when_answered(last_words)
    assert done == ["a1"]
    await turns(scene)
    assert done == ["a1", "a2", "a3"]
    assert scene.closings == [last_words]
    assert not scene.crashes


@pytest.mark.usefixtures("shortest_turns")
async def test_requests_without_an_answer_end_in_turns_oldest_first() -> None:
    scene = Scene()
    done = await answered_in_steps(scene, [3, 1, 2], 0)
    the_end = NetworkException("the end")
    scene.connection.close(the_end)
    assert scene.closings == [the_end], "those that wait for the connection hear at once that it is gone"
    assert scene.connection.unsettled
    turns_before: list[int] = []
    while not scene.connection.ended.done():
        turns_before.append(len(done))
        await asyncio.sleep(0)
    assert turns_before == [0, 1, 2, 3, 4, 5]
    assert done == ["a failed"] * 3 + ["b failed"] + ["c failed"] * 2
    assert not scene.crashes


@pytest.mark.usefixtures("shortest_turns")
async def test_a_bug_in_the_end_of_a_request_is_a_crash_and_the_others_end() -> None:
    scene = Scene()
    done = await answered_in_steps(scene, [3, 1], 0, bug_at=2)
    scene.connection.connection_lost(None)
    await asyncio.sleep(0.01)
    assert done == ["a failed", "a failed", "b failed"]
    assert [type(error) for error in scene.crashes] == [ValueError]
    assert scene.connection.ended.done()
    assert len(scene.closings) == 1


# What the kernel has received when the event loop lets go of the socket


@pytest.mark.parametrize("written_first", [False, True])
@pytest.mark.parametrize("how", ["reset", "closed"])
@pytest.mark.parametrize("loops", ["asyncio", "uvloop"])
def test_answers_in_the_socket_of_a_connection_that_is_reset_count(loops: str, how: str, written_first: bool) -> None:
    """The loop has stood still while the answers came, and then the reset; a write may discover that first."""
    loop_factory = pytest.importorskip(loops).new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_reset_behind_answers(how, written_first))


async def _reset_behind_answers(how: str, written_first: bool) -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        scene = Scene(connected=False)
        await loop.create_connection(lambda: ConnectionProtocol(scene.connection), *listener.getsockname())
        peer, _ = listener.accept()
        results: list[Any] = []
        for _ in range(3):
            scene.send(results)
        await asyncio.sleep(0.01)
        received = 0
        while received < 3:  # a request is one frame
            size = int.from_bytes(peer.recv(4, socket.MSG_WAITALL), "big")
            peer.recv(size, socket.MSG_WAITALL)
            received += 1
        peer.sendall(scene.answer(1, "one") + scene.answer(2, "two") + scene.answer(3, "three")[:-1])
        if how == "reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        time.sleep(0.02)  # noqa: ASYNC251 - nothing is read meanwhile
        if written_first:
            scene.send(results)
            scene.send(results)
        await asyncio.wait([scene.connection.ended], timeout=5)
        assert scene.connection.ended.done()
        answered = [response.cluster_id for response, error in results if error is None]
        assert answered == ["one", "two"]
        assert len(results) == (5 if written_first else 3)
        assert not scene.crashes
