"""The APIs that are spoken here: which messages they have, and in which versions."""

from __future__ import annotations

from typing import NamedTuple

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from aioproducer.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from aioproducer.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from aioproducer.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from aioproducer.protocol.messages.fetch import FetchRequest, FetchResponse
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from aioproducer.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aioproducer.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from aioproducer.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from aioproducer.protocol.messages.produce import ProduceRequest, ProduceResponse
from aioproducer.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from aioproducer.protocol.schema import Request, Response

__all__ = ["APIS", "Api", "ApiKey"]


class Api(NamedTuple):
    """The two messages of an API. Their versions are class attributes: ``MIN_VERSION``, ``MAX_VERSION``, …"""

    request: type[Request]
    response: type[Response]


APIS: dict[ApiKey, Api] = {
    ApiKey.PRODUCE: Api(ProduceRequest, ProduceResponse),
    ApiKey.FETCH: Api(FetchRequest, FetchResponse),
    ApiKey.LIST_OFFSETS: Api(ListOffsetsRequest, ListOffsetsResponse),
    ApiKey.METADATA: Api(MetadataRequest, MetadataResponse),
    ApiKey.OFFSET_COMMIT: Api(OffsetCommitRequest, OffsetCommitResponse),
    ApiKey.OFFSET_FETCH: Api(OffsetFetchRequest, OffsetFetchResponse),
    ApiKey.FIND_COORDINATOR: Api(FindCoordinatorRequest, FindCoordinatorResponse),
    ApiKey.API_VERSIONS: Api(ApiVersionsRequest, ApiVersionsResponse),
    ApiKey.CREATE_TOPICS: Api(CreateTopicsRequest, CreateTopicsResponse),
    ApiKey.DELETE_TOPICS: Api(DeleteTopicsRequest, DeleteTopicsResponse),
    ApiKey.INIT_PRODUCER_ID: Api(InitProducerIdRequest, InitProducerIdResponse),
    ApiKey.ADD_PARTITIONS_TO_TXN: Api(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
    ApiKey.ADD_OFFSETS_TO_TXN: Api(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
    ApiKey.END_TXN: Api(EndTxnRequest, EndTxnResponse),
    ApiKey.TXN_OFFSET_COMMIT: Api(TxnOffsetCommitRequest, TxnOffsetCommitResponse),
    ApiKey.DESCRIBE_CONFIGS: Api(DescribeConfigsRequest, DescribeConfigsResponse),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
}
"""By key, in the order of the keys."""
