"""A client that sends random requests, and looks at every answer. Its sockets block: it runs in a thread of its own."""

from __future__ import annotations

import contextlib
import socket
from random import Random
from typing import Any, Self

from aiokafka.record.memory_records import MemoryRecords

from aioproducer.errors import SchemaException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.framing import decode_response, encode_request
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aioproducer.protocol.schema import Request, Response
from aioproducer.records.record_batch import read_batches
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.sasl import PASSWORD

from .learned_values import LearnedValues
from .mutations import mutated
from .random_batches import RandomBatches
from .random_requests import RandomRequests

JUDGED = "judged"
"""A topic that random requests do not name: its records were accepted from :meth:`FuzzingClient.send_batch`."""

PATIENCE = 30.0
"""Seconds after which the broker is taken to be stopped."""

HURRY = 0.1
"""Seconds that a random request may wait: many rightly do."""

_PRODUCE, _FETCH, _METADATA = 12, 12, 13


class WrongAnswer(Exception):
    """What a broker must not say."""


class _Connection:
    def __init__(self, port: int, *, logs_in: bool) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if logs_in:
            self.request(SaslHandshakeRequest("PLAIN"), 1)
            self.request(SaslAuthenticateRequest(f"\0alice\0{PASSWORD}".encode()), 2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self, patience: float) -> bytes | None:
        """The next frame; None if none comes in time, or the broker has closed the connection."""
        self._socket.settimeout(patience)
        try:
            size = self._read(4)
            return None if size is None else self._read(int.from_bytes(size, "big"))
        except OSError:
            return None
        finally:
            self._socket.settimeout(PATIENCE)

    def _read(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            chunk = self._socket.recv(min(size - len(data), 1 << 20))
            if not chunk:
                return None
            data += chunk
        return bytes(data)

    def request(self, request: Request, version: int) -> Any:
        """The broker's response; raises :class:`WrongAnswer` if none comes."""
        self.send(b"".join(encode_request(request, version=version, correlation_id=1, client_id="honest")))
        frame = self.receive(PATIENCE)
        if frame is None:
            raise WrongAnswer(f"an honest {type(request).__name__} got no answer")
        return decode_response(APIS[request.API_KEY].response, version, frame)[1]


class FuzzingClient:
    """``logs_in``: mostly, to a broker that knows Alice (``raw_clients/sasl.py``). ``hurry``: see :data:`HURRY`."""

    def __init__(self, port: int, random: Random, *, logs_in: bool = False, hurry: float = HURRY) -> None:
        self._port = port
        self._random = random
        self._logs_in = logs_in
        self._hurry = hurry
        self._learned = LearnedValues(random, hidden=[JUDGED])
        self._batches = RandomBatches(random, self._learned)
        self._requests = RandomRequests(random, self._learned, self._batches)
        self._connection: _Connection | None = None
        self.last = b""
        """What was sent last."""
        self.answers = 0
        self.accepted = 0
        """Batches that are in the log, each of which two readers could read."""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.__exit__()
            self._connection = None

    def send(self) -> None:
        """Does one random thing. Raises :class:`WrongAnswer`."""
        chance = self._random.random()
        if chance < 0.25:
            self.send_batch()
        elif chance < 0.27:
            self._send_garbage()
        else:
            self._send_request()

    def _send_request(self) -> None:
        self.last = frame = self._requests.frame()
        try:
            connection = self._connected()
            connection.send(len(frame).to_bytes(4, "big") + frame)
        except OSError:
            self.close()  # the broker has closed the connection after what came before
            return
        answer = connection.receive(self._hurry)
        if answer is None:
            self.close()
        else:
            self.answers += 1
            self._learn(frame, answer)

    def _learn(self, frame: bytes, answer: bytes) -> None:
        key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
        cls: type[Response] = APIS[ApiKey(key)].response
        if version not in cls.VALID_VERSIONS:
            version = 0  # of ApiVersions
        try:
            response = decode_response(cls, version, answer)[1]
        except SchemaException as error:
            raise WrongAnswer(f"an answer is not as its version has it: {error}") from None
        self._learned.learn(response)

    def _send_garbage(self) -> None:
        """Bytes that are no frame, or not the whole of one, on a connection of their own."""
        frame = self._requests.frame()
        framed = len(frame).to_bytes(4, "big") + frame
        self.last = mutated(self._random, framed[: self._random.randrange(len(framed))])
        with contextlib.suppress(OSError), _Connection(self._port, logs_in=False) as connection:
            connection.send(self.last)
            connection.receive(0.01)

    def send_batch(self) -> None:
        """Produces a random batch; one that is accepted must be readable. Raises :class:`WrongAnswer`."""
        self.last = batch = self._batches.batch()
        with _Connection(self._port, logs_in=self._logs_in) as connection:
            (produced,) = _produce(connection, batch).responses[0].partition_responses
            if produced.error_code != ErrorCode.NONE:
                return
            self.accepted += 1
            partition = FetchPartition(0, fetch_offset=produced.base_offset, partition_max_bytes=1)
            request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchTopic(JUDGED, partitions=[partition])])
            response = connection.request(request, _FETCH)
            if not response.throttle_time_ms:  # a random quota leaves records out
                (fetched,) = response.responses[0].partitions
                _read(bytes(fetched.records or b""), produced.base_offset)

    def is_served(self) -> None:
        """Asks as an honest client does. Raises :class:`WrongAnswer` unless it is answered."""
        self.last = b""
        with _Connection(self._port, logs_in=self._logs_in) as connection:
            if not connection.request(MetadataRequest([]), _METADATA).brokers:
                raise WrongAnswer("Metadata without a broker")
            _produce(connection, make_batch(b"honest"))

    def _connected(self) -> _Connection:
        if self._connection is not None and self._random.random() < 0.01:
            self.close()
        if self._connection is None:
            logs_in = self._logs_in and self._random.random() < 0.8
            self._connection = _Connection(self._port, logs_in=logs_in)
        return self._connection


def _produce(connection: _Connection, batch: bytes) -> Any:
    data = TopicProduceData(JUDGED, partition_data=[PartitionProduceData(0, batch)])
    return connection.request(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[data]), _PRODUCE)


def _read(data: bytes, offset: int) -> None:
    """Reads everything with this project's reader and with aiokafka's."""
    try:
        offsets = [record.offset for batch in read_batches(data) for record in batch.records()]
        theirs = _read_by_aiokafka(data)
    except UnicodeDecodeError:
        return  # of a header's key. Kafka accepts any bytes; Java's consumer and this project's reader replace them.
    except Exception as error:
        raise WrongAnswer(f"a batch was accepted that cannot be read: {error!r}") from None
    if offsets != theirs or offset not in offsets:
        raise WrongAnswer(f"the batch at {offset} is read as {offsets[:5]}, and by aiokafka as {theirs[:5]}")


def _read_by_aiokafka(data: bytes) -> list[int]:
    """The offsets of all records."""
    records, offsets = MemoryRecords(data), []
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc(), "the checksum is wrong"
        offsets += [record.offset for record in batch]
    return offsets
