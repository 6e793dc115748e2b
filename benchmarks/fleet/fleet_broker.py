"""A broker of the fleet: it answers from the cluster's map, and keeps nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Protocol

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.framing import decode_request, encode_response
from aioproducer.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from aioproducer.testing.simulation.network.endpoint import Endpoint
from aioproducer.testing.simulation.network.network import Network
from benchmarks.fleet.cluster_map import METADATA_VERSION, PORT, ClusterMap

SERVICE: Final = 0.001
"""Seconds from a request to its answer: what replication takes."""

SPOKEN: Final = {
    ApiKey.PRODUCE: (3, 13),
    ApiKey.METADATA: (METADATA_VERSION, METADATA_VERSION),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
}

READ_AT_ONCE: Final = 1 << 20


@dataclass
class Traffic:
    """What has crossed the network to all brokers, in all."""

    requests: Counter[str] = field(default_factory=Counter)
    """By the name of their API."""
    batches: int = 0
    metadata_bytes: int = 0
    """Of answers."""
    connections: int = 0


class Timer(Protocol):
    """The loop."""

    def at(self, when: float, callback: object, /) -> None: ...

    def exact_time(self) -> float: ...


class FleetBroker:
    """Listens on its port while it is started. ``traffic`` is shared by all brokers."""

    def __init__(self, number: int, cluster: ClusterMap, network: Network, traffic: Traffic) -> None:
        self.number = number
        self.cluster = cluster
        self.network = network
        self.traffic = traffic
        self.host = cluster.host(number)
        self._connections: dict[BrokerConnection, None] = {}
        self.start()

    def start(self) -> None:
        self.network.listen(self, self.host, PORT)

    def stop(self) -> None:
        """Closes its port and its connections; requests without an answer get none."""
        self.network.unlisten(self.host, PORT)
        for connection in list(self._connections):
            connection.close()

    def connected(self, end: Endpoint) -> None:
        """Called with each client's connection."""
        self.traffic.connections += 1
        self._connections[BrokerConnection(self, end)] = None

    def closed(self, connection: BrokerConnection) -> None:
        self._connections.pop(connection, None)

    def answer(self, frame: bytes) -> list[bytes | memoryview] | None:
        """The response to a request; None if there is none."""
        header, request = decode_request(frame)
        self.traffic.requests[request.API_KEY.name] += 1
        version, correlation_id = header.api_version, header.correlation_id
        match request:
            case ProduceRequest():
                if request.acks == 0:
                    return None
                return encode_response(self._produce(request), version=version, correlation_id=correlation_id)
            case MetadataRequest():
                body = self.cluster.metadata([topic.name or "" for topic in request.topics or ()])
                self.traffic.metadata_bytes += len(body)
                size = 4 + 1 + len(body)  # the header is the correlation id, and no tags
                return [b"%b%b\0" % (size.to_bytes(4, "big"), correlation_id.to_bytes(4, "big")), body]
            case ApiVersionsRequest():
                spoken = [ApiVersion(key, low, high) for key, (low, high) in SPOKEN.items()]
                versions = ApiVersionsResponse(api_keys=spoken)
                return encode_response(versions, version=version, correlation_id=correlation_id)
            case InitProducerIdRequest():
                given = InitProducerIdResponse(producer_id=1, producer_epoch=0)
                return encode_response(given, version=version, correlation_id=correlation_id)
            case _:
                raise NotImplementedError(f"the fleet's brokers do not speak {request.API_KEY.name}")

    def _produce(self, request: ProduceRequest) -> ProduceResponse:
        leaders: set[int] = set()
        answers = [self._topic(data, leaders) for data in request.topic_data]
        hosts = [NodeEndpoint(leader, self.cluster.host(leader), PORT) for leader in sorted(leaders)]
        return ProduceResponse(answers, node_endpoints=hosts)

    def _topic(self, data: TopicProduceData, leaders: set[int]) -> TopicProduceResponse:
        topic = self.cluster.by_id.get(data.topic_id) or self.cluster.topics.get(data.name)
        answers = []
        for one in data.partition_data:
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if data.name else ErrorCode.UNKNOWN_TOPIC_ID
                answers.append(PartitionProduceResponse(one.index, code, -1))
                continue
            leader, epoch = self.cluster.leader(topic, one.index)
            if leader == self.number:
                self.traffic.batches += 1
                answers.append(PartitionProduceResponse(one.index, ErrorCode.NONE, 0))
            else:
                current = LeaderIdAndEpoch(leader, epoch)
                moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
                answers.append(PartitionProduceResponse(one.index, moved, -1, current_leader=current))
                if leader >= 0:
                    leaders.add(leader)
        return TopicProduceResponse(data.name, data.topic_id, answers)


class BrokerConnection:
    """The broker's end of a connection: frames in, frames out, in order."""

    wants_to_read = True
    wants_to_write = False

    def __init__(self, broker: FleetBroker, end: Endpoint) -> None:
        self._broker = broker
        self._end = end
        self._received = bytearray()
        end.transport = self
        end.look()

    def read_ready(self) -> None:
        """Called when bytes have come, or the connection has ended."""
        end = self._end
        if end.closed:
            return
        if end.at_eof():
            self.close()
            return
        try:
            self._received += end.receive(READ_AT_ONCE)
        except ConnectionError:
            self.close()
            return
        while len(self._received) >= 4:
            size = 4 + int.from_bytes(self._received[:4], "big")
            if len(self._received) < size:
                return
            frame = bytes(memoryview(self._received)[4:size])
            del self._received[:size]
            if (parts := self._broker.answer(frame)) is not None:
                network = self._broker.network
                network.at(network.time() + SERVICE, lambda parts=parts: self._send(parts))  # type: ignore[misc]

    def write_ready(self) -> None:
        """Never called: the window takes every answer."""

    def close(self) -> None:
        self._end.close()
        self._broker.closed(self)

    def _send(self, parts: list[bytes | memoryview]) -> None:
        if self._end.closed:
            return
        data = memoryview(b"".join(parts))
        try:
            sent = self._end.send(data)
        except ConnectionError:
            self.close()
            return
        if sent < len(data):
            raise RuntimeError(f"an answer of {len(data)} bytes does not fit into the network's window")
