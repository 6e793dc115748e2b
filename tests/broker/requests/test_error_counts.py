from __future__ import annotations

from aioproducer.broker.requests.error_counts import counting_errors, error_counts
from aioproducer.broker.requests.long_work import finish
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult
from aioproducer.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from aioproducer.protocol.messages.list_transactions import ListTransactionsResponse
from aioproducer.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse


def test_of_every_partition() -> None:
    codes = (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE)
    topics = [TopicProduceResponse("t", partition_responses=[PartitionProduceResponse(0, code)]) for code in codes]
    assert error_counts(ProduceResponse(topics)) == {ErrorCode.NONE: 2, ErrorCode.NOT_LEADER_OR_FOLLOWER: 1}


def test_errors_of_the_response_and_of_its_parts_are_counted() -> None:
    topics = [FetchableTopicResponse("t", partitions=[PartitionData(0, ErrorCode.OFFSET_OUT_OF_RANGE)])]
    assert error_counts(FetchResponse(responses=topics)) == {ErrorCode.NONE: 1, ErrorCode.OFFSET_OUT_OF_RANGE: 1}


def test_arrays_of_anything_else_are_passed_over() -> None:
    assert error_counts(ListTransactionsResponse(error_code=14, unknown_state_filters=["x"])) == {14: 1}
    assert error_counts(DescribeConfigsResponse(results=[DescribeConfigsResult(40, None)])) == {40: 1}


def test_errors_of_a_large_response_are_counted_in_steps() -> None:
    partitions = [PartitionData(index, ErrorCode.OFFSET_OUT_OF_RANGE if index % 7 else 0) for index in range(1_000)]
    topics = [FetchableTopicResponse("t", partitions=partitions), FetchableTopicResponse("u", partitions=partitions)]
    response = FetchResponse(error_code=14, responses=topics)
    assert finish(counting_errors(response)) == error_counts(response)
    assert len(list(counting_errors(response))) >= 20
    for small in (ProduceResponse([]), ListTransactionsResponse(error_code=14, unknown_state_filters=["x"])):
        assert finish(counting_errors(small)) == error_counts(small)
