"""The APIs that are spoken here: which messages they have, and in which versions."""

from __future__ import annotations

from typing import NamedTuple

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from aioproducer.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from aioproducer.protocol.messages.fetch import FetchRequest, FetchResponse
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aioproducer.protocol.messages.produce import ProduceRequest, ProduceResponse
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
    ApiKey.FIND_COORDINATOR: Api(FindCoordinatorRequest, FindCoordinatorResponse),
    ApiKey.API_VERSIONS: Api(ApiVersionsRequest, ApiVersionsResponse),
    ApiKey.CREATE_TOPICS: Api(CreateTopicsRequest, CreateTopicsResponse),
    ApiKey.DELETE_TOPICS: Api(DeleteTopicsRequest, DeleteTopicsResponse),
    ApiKey.INIT_PRODUCER_ID: Api(InitProducerIdRequest, InitProducerIdResponse),
}
"""By key, in the order of the keys."""
