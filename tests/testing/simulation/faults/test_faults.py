from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from aioproducer.broker import AppendFault, Partition, PartitionLog, ReceivedRequest
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.state.transaction_metadata import TransactionMetadata, TransactionState
from aioproducer.errors import error_class
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.codec import encode
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.schema import Request
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.simulation.faults.faults import (
    APPENDED,
    APPENDED_FOR_GOOD,
    KINDS,
    NO_COORDINATOR_FOR_GOOD,
    NO_COORDINATOR_FOR_NOW,
    REFUSED_FOR_GOOD,
    REFUSED_FOR_NOW,
    SimulatedFaults,
)
from aioproducer.testing.simulation.loop import EPOCH_MS
from aioproducer.testing.simulation.network.network import Fate
from aioproducer.testing.simulation.releases import BEFORE_KIP_1269, NEWEST, OLD, Release, Releases
from aioproducer.testing.simulation.trace import Trace
from tests.broker.raw_clients.batches import make_batch

TIMES = 1000

# The errors that a broker may answer to Produce in any producer state: ProduceResponse of Kafka names them, and
# LogValidator and ReplicaManager add some.
PRODUCE_ERRORS = {
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.UNSUPPORTED_VERSION,
}


def make(*kinds: str, rate: float = 1.0, seed: int = 0) -> SimulatedFaults:
    return SimulatedFaults(Random(seed), dict.fromkeys(kinds, rate), 0.1, Trace())


@pytest.fixture
def partition() -> Partition:
    return Partition("t", 0, (0,), PartitionLog("t-0", TopicConfig.of({}, BrokerConfig.of({}))), leader=0)


def received(api: ApiKey, message: Request | None = None) -> ReceivedRequest:
    """A request in a version that has the message, if there is one."""
    version, body = 9, b""
    if message is not None:
        version = 4
        body = b"".join(encode(message, version))
    return ReceivedRequest(0, RequestHeader(api, version, 1, "client"), body, 0, ClusterState([0], BrokerConfig()))


INIT = received(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(None, 1000))


def consulted(faults: SimulatedFaults, partition: Partition, batch: RecordBatch) -> list[Any]:
    """The answers of all kinds of faults."""
    end: Any = None
    answers = [
        faults.connecting("kafka") is not Fate.ARRIVE,
        faults.cut(end, 10) is not None,
        *(faults.on_request(received(api)) for api in (ApiKey.PRODUCE, ApiKey.METADATA, ApiKey.INIT_PRODUCER_ID)),
        faults.on_append(0, partition, batch, None),
        faults.leaves_out(0),
        faults.throttle_ms(0),
        faults.on_topic_metadata(0, "t"),
        faults.coordinator_error(0, "x"),
        faults.clock_jump(),
    ]
    return [answer for answer in answers if answer]


def test_nothing_goes_wrong_without_a_rate_or_when_it_is_over(partition: Partition) -> None:
    batch = RecordBatch(make_batch(b"v"))
    over = make(*KINDS)
    assert consulted(over, partition, batch)
    over.over = True
    for faults in (make(), over):
        assert consulted(faults, partition, batch) == []
        assert faults.unreachable_until(("kafka", 1)) == 0.0
        assert faults.leader(0, partition) == (partition.leader, partition.leader_epoch)


def test_a_kind_strikes_as_often_as_its_rate_says() -> None:
    faults = make("refuse", rate=0.3)
    fates = Counter(faults.connecting("kafka") for _ in range(TIMES))
    assert 200 < fates[Fate.REFUSED] < 400
    assert fates.keys() == {Fate.REFUSED, Fate.ARRIVE}


def test_connections_are_cut_before_within_and_after_what_is_written() -> None:
    faults = make("reset")
    end: Any = None
    cuts = Counter(faults.cut(end, 100) for _ in range(TIMES))
    assert cuts[0] > 200
    assert cuts[100] > 200
    assert any(cut is not None and 0 < cut < 100 for cut in cuts)


def test_an_outage_is_of_one_port_and_has_an_end() -> None:
    faults = make()
    faults.cut_off(9092, 12.5)
    assert faults.unreachable_until(("kafka", 9092)) == 12.5
    assert faults.unreachable_until(("kafka", 9093)) == 0.0


def test_every_error_of_produce_is_answered_appended_or_not(partition: Partition) -> None:
    faults = make("codes")
    batch = RecordBatch(make_batch(b"v"))
    found = {faults.on_append(0, partition, batch, None) for _ in range(10 * TIMES)} - {None}
    assert {fault.code for fault in found if fault is not None} >= PRODUCE_ERRORS
    assert {fault.code for fault in found if fault is not None and fault.appended} == {
        *APPENDED,
        *APPENDED_FOR_GOOD,
    }
    assert {fault.code for fault in found if fault is not None and not fault.appended} == {
        *REFUSED_FOR_NOW,
        *REFUSED_FOR_GOOD,
    }


def test_an_error_for_good_is_not_retriable() -> None:
    assert all(error_class(code).retriable for code in (*REFUSED_FOR_NOW, *APPENDED))
    assert not any(error_class(code).retriable for code in (*REFUSED_FOR_GOOD, *APPENDED_FOR_GOOD))


def test_faults_may_all_pass(partition: Partition) -> None:
    faults = make("codes", "metadata", "coordinators", "ids")
    faults.for_good = 0.0
    batch = RecordBatch(make_batch(b"v"))
    found = {faults.on_append(0, partition, batch, None) for _ in range(10 * TIMES)} - {None}
    codes = {fault.code for fault in found if fault is not None}
    codes |= {faults.on_topic_metadata(0, "t") for _ in range(TIMES)}
    codes |= {faults.coordinator_error(0, "id") for _ in range(TIMES)}
    assert all(error_class(code).retriable for code in codes)
    for _ in range(TIMES):
        faults.on_request(received(ApiKey.INIT_PRODUCER_ID))
    assert not faults.fatal


@pytest.mark.parametrize(
    ("release", "refused"), [(OLD[0], True), (OLD[1], True), (OLD[2], False), (BEFORE_KIP_1269, False), (NEWEST, False)]
)
def test_brokers_before_2_5_say_that_they_do_not_know_a_producer(
    partition: Partition, release: Release, refused: bool
) -> None:
    faults = make()
    faults.releases = Releases(release)
    first, second = (
        RecordBatch(make_batch(b"v", producer_id=3, producer_epoch=0, base_sequence=sequence)) for sequence in (0, 1)
    )
    unknown = AppendFault(ErrorCode.UNKNOWN_PRODUCER_ID, appended=False)
    assert faults.on_append(0, partition, second, None) == (unknown if refused else None)
    assert faults.on_append(0, partition, first, None) is None
    partition.log.append(first, leader_epoch=0, now_ms=first.max_timestamp)
    assert faults.on_append(0, partition, second, None) is None


@pytest.mark.parametrize(("idle", "forgotten"), [(10.0, False), (11.0, True)])
def test_a_producer_that_was_idle_for_long_is_forgotten(partition: Partition, idle: float, forgotten: bool) -> None:
    faults = make("expiry")
    faults.expiry, now = 10.0, [0.0]
    faults.now = lambda: now[0]
    for sequence in range(3):
        batch = RecordBatch(make_batch(b"v", producer_id=3, producer_epoch=0, base_sequence=sequence))
        assert faults.on_append(0, partition, batch, None) is None
        entry = partition.log.producer_state.entry(3)
        assert (entry is None) == (sequence == 0 or forgotten)
        partition.log.append(batch, leader_epoch=0, now_ms=batch.max_timestamp)
        now[0] += idle


@pytest.mark.parametrize(("days", "forgotten"), [(0, False), (2, True)])
@pytest.mark.parametrize(
    ("epoch", "sequence", "ahead"),
    [(4, 7, True), (4, 8, True), (4, 6, False), (4, 5, False), (5, 0, True), (3, 9, False)],
)
def test_a_producer_of_old_records_is_forgotten_before_a_batch_that_is_not_in_the_log(
    partition: Partition, days: int, forgotten: bool, epoch: int, sequence: int, ahead: bool
) -> None:
    faults = make("expiry")
    faults.expiry = 10.0
    time: Any = {"base_timestamp": EPOCH_MS - days * 86_400_000, "max_timestamp": EPOCH_MS - days * 86_400_000}
    first = RecordBatch(make_batch(b"v", **time, producer_id=3, producer_epoch=4, base_sequence=6))
    assert faults.on_append(0, partition, first, None) is None
    partition.log.append(first, leader_epoch=0, now_ms=first.max_timestamp)
    batch = RecordBatch(make_batch(b"v", producer_id=3, producer_epoch=epoch, base_sequence=sequence))
    assert faults.on_append(0, partition, batch, None) is None
    assert (partition.log.producer_state.entry(3) is None) == (forgotten and ahead)


def test_a_batch_that_comes_again_may_be_known_without_its_offset(partition: Partition) -> None:
    faults = make("codes")
    batch = RecordBatch(make_batch(b"v", producer_id=3, producer_epoch=0, base_sequence=0))
    partition.log.append(batch, leader_epoch=0, now_ms=batch.max_timestamp)
    found = Counter(faults.on_append(0, partition, batch, None) for _ in range(TIMES))
    codes = Counter({fault.code: count for fault, count in found.items() if fault is not None})
    assert codes[ErrorCode.DUPLICATE_SEQUENCE_NUMBER] > 100
    assert not codes.keys() & {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID}


def test_a_watcher_sees_every_batch(partition: Partition) -> None:
    faults = make()
    seen: list[tuple[Partition, RecordBatch]] = []
    faults.on_batch = lambda partition, batch: seen.append((partition, batch))
    batch = RecordBatch(make_batch(b"v"))
    assert faults.on_append(0, partition, batch, None) is None
    assert seen == [(partition, batch)]


def test_requests_are_lost_held_up_and_answered_with_garbage() -> None:
    assert make("lost").on_request(received(ApiKey.PRODUCE)).lost  # type: ignore[union-attr]
    for kind, name in (("unanswered", "unanswered"), ("queue", "handled_after"), ("late", "answered_after")):
        assert getattr(make(kind).on_request(received(ApiKey.PRODUCE)), name)
    faults = make("garbage")
    frames = {faults.on_request(received(ApiKey.PRODUCE)).garbage for _ in range(100)}  # type: ignore[union-attr]
    sizes = {int.from_bytes(frame[:4], "big", signed=True) for frame in frames if frame is not None}
    assert min(sizes) < 0
    assert max(sizes) == 2**31 - 1


def test_a_producer_id_may_be_refused_for_good() -> None:
    faults = make("ids")
    codes = set()
    for _ in range(TIMES):
        fault = faults.on_request(received(ApiKey.INIT_PRODUCER_ID))
        assert fault is not None
        codes.add(fault.code)
        assert faults.on_request(received(ApiKey.PRODUCE)) is None
    assert faults.fatal
    assert {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CLUSTER_AUTHORIZATION_FAILED} <= codes


def test_coordinators_are_not_ready_or_refuse_for_good() -> None:
    faults = make("coordinators")
    codes = {faults.coordinator_error(0, "x") for _ in range(TIMES)}
    assert codes == {*NO_COORDINATOR_FOR_NOW, *NO_COORDINATOR_FOR_GOOD}
    assert all(error_class(code).retriable for code in NO_COORDINATOR_FOR_NOW)
    assert not any(error_class(code).retriable for code in NO_COORDINATOR_FOR_GOOD)


def test_a_coordinator_that_has_committed_does_not_demand_an_abort() -> None:
    faults = make("coordinators")
    metadata = TransactionMetadata("x", 1, 1000)
    metadata.state = TransactionState.COMPLETE_COMMIT
    faults.transaction = lambda transactional_id: metadata
    codes = {faults.coordinator_error(0, "x") for _ in range(TIMES)}
    possible = {*NO_COORDINATOR_FOR_NOW, *NO_COORDINATOR_FOR_GOOD, ErrorCode.NONE}
    assert codes == possible - {ErrorCode.TRANSACTION_ABORTABLE}


def test_metadata_may_be_old_news(partition: Partition) -> None:
    faults = make("metadata")
    for epoch in range(5):
        partition.leader, partition.leader_epoch = epoch % 3, epoch
        assert faults.leader(0, partition)[1] >= epoch - 2
    answers = {faults.leader(0, partition) for _ in range(100)}
    assert answers == {(2, 2), (0, 3), (1, 4)}


def test_a_producer_id_may_have_hardly_an_epoch_left() -> None:
    faults = make("epochs")
    fault = faults.on_request(INIT)
    assert fault is not None
    assert fault.edit is not None
    responses = [InitProducerIdResponse(producer_id=7, producer_epoch=0) for _ in range(20)]
    for response in responses:
        fault.edit(response)
    assert {response.producer_epoch for response in responses} == {2**15 - 3, 2**15 - 2, 2**15 - 1}
    refused = InitProducerIdResponse(error_code=ErrorCode.NOT_COORDINATOR, producer_epoch=-1)
    fault.edit(refused)
    assert refused.producer_epoch == -1
    assert faults.on_request(received(ApiKey.PRODUCE)) is None


def test_a_coordinator_may_have_hardly_an_epoch_left() -> None:
    faults = make("epochs")
    metadata = TransactionMetadata("id", 7, 1000)
    faults.transaction = {"id": metadata}.get
    epochs = set()
    for _ in range(20):
        metadata.producer_epoch = 0
        fault = faults.on_request(received(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest("id", 1000)))
        assert fault is not None
        assert fault.edit is not None
        response = InitProducerIdResponse(producer_id=7, producer_epoch=0)
        fault.edit(response)
        assert response.producer_epoch == metadata.producer_epoch
        epochs.add(response.producer_epoch)
        again = InitProducerIdResponse(producer_id=7, producer_epoch=metadata.producer_epoch)
        fault.edit(again)
        assert again == response, "they are used up once"
    assert epochs == set(range(2**15 - 6, 2**15 - 1))


def test_a_request_that_is_too_new_for_its_broker_is_reported() -> None:
    faults = make()
    reported: list[str] = []
    faults.on_too_new = reported.append
    faults.releases = Releases({ApiKey.PRODUCE: 8})
    for api in (ApiKey.METADATA, ApiKey.PRODUCE):
        assert faults.on_request(received(api)) is None
    assert reported == ["node 0: PRODUCE version 9"]
