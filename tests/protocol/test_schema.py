from __future__ import annotations

import copy
import pickle

import pytest

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
    TopicProduceResponse,
)
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.protocol.schema import Versions, records_


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3+", [3, 4, 32767], [2, -1]), ("0-12", [0, 12], [-1, 13]), ("6", [6], [5, 7]), ("none", [], [-1, 0, 1])],
)
def test_versions(text: str, inside: list[int], outside: list[int]) -> None:
    versions = Versions.parse(text)
    assert str(versions) == text
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_a_message_starts_with_kafkas_defaults() -> None:
    partition = PartitionProduceResponse()
    assert partition.base_offset == 0
    assert partition.log_append_time_ms == -1
    assert partition.record_errors == []
    assert partition.error_message is None
    assert partition.current_leader == LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
    assert partition.producer_state_batches_to_retain == 5
    assert partition.unknown_tagged_fields == {}
    assert TopicProduceResponse().name == ""
    assert TopicProduceResponse().topic_id is ZERO_UUID
    assert PartitionProduceData().records is None


def test_defaults_are_not_shared() -> None:
    one, other = PartitionProduceResponse(), PartitionProduceResponse()
    one.record_errors.append(None)  # type: ignore[arg-type]
    one.current_leader.leader_id = 1
    assert other == PartitionProduceResponse()
    with pytest.raises(TypeError):
        one.unknown_tagged_fields[1] = b""  # type: ignore[index]


def test_arguments_follow_the_wire_order() -> None:
    assert ProduceRequest("t", -1, 5).timeout_ms == 5
    assert TopicProduceData("n", unknown_tagged_fields={9: b""}) != TopicProduceData("n")


def test_a_message_knows_its_key_versions_and_fields() -> None:
    assert ProduceRequest.API_KEY is ApiKey.PRODUCE
    assert (ProduceRequest.MIN_VERSION, ProduceRequest.MAX_VERSION, ProduceRequest.FLEXIBLE_VERSION) == (3, 14, 9)
    assert [field.name for field in ProduceRequest.FIELDS] == ["transactional_id", "acks", "timeout_ms", "topic_data"]


def test_an_unstable_version_is_not_offered() -> None:
    for cls in (InitProducerIdRequest, InitProducerIdResponse):
        assert cls.MAX_VERSION == 5
        assert 6 in cls.VALID_VERSIONS


def test_misspelled_fields_are_refused() -> None:
    with pytest.raises(AttributeError):
        ProduceRequest().timeout = 5  # type: ignore[attr-defined]


def test_records_are_not_printed() -> None:
    assert repr(PartitionProduceData(3, b"secret")) == "PartitionProduceData(index=3)"


def test_records_cannot_be_tagged() -> None:
    with pytest.raises(TypeError, match="records"):
        records_("0+", tag=0)


def test_copies() -> None:
    message = ProduceRequest(topic_data=[TopicProduceData("n")])
    assert copy.deepcopy(message) == message
    assert pickle.loads(pickle.dumps(message)) == message
