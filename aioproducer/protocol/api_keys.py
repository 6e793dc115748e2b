"""The APIs that are spoken here: which messages they have, and in which versions."""

from __future__ import annotations

from typing import NamedTuple

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from aioproducer.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from aioproducer.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from aioproducer.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from aioproducer.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from aioproducer.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from aioproducer.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from aioproducer.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from aioproducer.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from aioproducer.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from aioproducer.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from aioproducer.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from aioproducer.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from aioproducer.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from aioproducer.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from aioproducer.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from aioproducer.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from aioproducer.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from aioproducer.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from aioproducer.protocol.messages.fetch import FetchRequest, FetchResponse
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from aioproducer.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from aioproducer.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from aioproducer.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from aioproducer.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from aioproducer.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from aioproducer.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aioproducer.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from aioproducer.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from aioproducer.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from aioproducer.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from aioproducer.protocol.messages.produce import ProduceRequest, ProduceResponse
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from aioproducer.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from aioproducer.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from aioproducer.protocol.schema import Request, Response

MAX_RESPONSE_SIZE = 100 * 1024 * 1024
"""The largest response accepted, in bytes; a broker limits requests to as many (``socket.request.max.bytes``)."""

SMALL_RESPONSE = 64 * 1024
"""One error message may have half of this."""

VERSIONS_RESPONSE = 16 * 1024
"""The first that a peer says, which may be no broker: brokers have some 100 APIs, of 7 bytes each."""


class Api(NamedTuple):
    """The two messages of an API. Their versions are class attributes: ``MIN_VERSION``, ``MAX_VERSION``, …"""

    request: type[Request]
    response: type[Response]
    client_throttles_from: int
    """From this version on the broker answers at once, and it is the client that waits out a throttle (KIP-219)."""
    largest_response: int = MAX_RESPONSE_SIZE
    """In bytes: of an answer that does not grow with topics, partitions, groups or records, little."""


NEVER_THROTTLED = 2**15 - 1
"""Nobody is throttled before it is known who he is."""


APIS: dict[ApiKey, Api] = {
    ApiKey.PRODUCE: Api(ProduceRequest, ProduceResponse, 6),
    ApiKey.FETCH: Api(FetchRequest, FetchResponse, 8),
    ApiKey.LIST_OFFSETS: Api(ListOffsetsRequest, ListOffsetsResponse, 3),
    ApiKey.METADATA: Api(MetadataRequest, MetadataResponse, 6),
    ApiKey.OFFSET_COMMIT: Api(OffsetCommitRequest, OffsetCommitResponse, 4),
    ApiKey.OFFSET_FETCH: Api(OffsetFetchRequest, OffsetFetchResponse, 4),
    ApiKey.FIND_COORDINATOR: Api(FindCoordinatorRequest, FindCoordinatorResponse, 2, SMALL_RESPONSE),
    ApiKey.JOIN_GROUP: Api(JoinGroupRequest, JoinGroupResponse, 3),
    ApiKey.HEARTBEAT: Api(HeartbeatRequest, HeartbeatResponse, 2, SMALL_RESPONSE),
    ApiKey.LEAVE_GROUP: Api(LeaveGroupRequest, LeaveGroupResponse, 2),
    ApiKey.SYNC_GROUP: Api(SyncGroupRequest, SyncGroupResponse, 2),
    ApiKey.DESCRIBE_GROUPS: Api(DescribeGroupsRequest, DescribeGroupsResponse, 2),
    ApiKey.LIST_GROUPS: Api(ListGroupsRequest, ListGroupsResponse, 2),
    ApiKey.SASL_HANDSHAKE: Api(SaslHandshakeRequest, SaslHandshakeResponse, NEVER_THROTTLED, SMALL_RESPONSE),
    ApiKey.API_VERSIONS: Api(ApiVersionsRequest, ApiVersionsResponse, 2, VERSIONS_RESPONSE),
    ApiKey.CREATE_TOPICS: Api(CreateTopicsRequest, CreateTopicsResponse, 3),
    ApiKey.DELETE_TOPICS: Api(DeleteTopicsRequest, DeleteTopicsResponse, 2),
    ApiKey.DELETE_RECORDS: Api(DeleteRecordsRequest, DeleteRecordsResponse, 1),
    ApiKey.INIT_PRODUCER_ID: Api(InitProducerIdRequest, InitProducerIdResponse, 1, SMALL_RESPONSE),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, 3),
    ApiKey.ADD_PARTITIONS_TO_TXN: Api(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, 1),
    ApiKey.ADD_OFFSETS_TO_TXN: Api(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, 1, SMALL_RESPONSE),
    ApiKey.END_TXN: Api(EndTxnRequest, EndTxnResponse, 1, SMALL_RESPONSE),
    ApiKey.TXN_OFFSET_COMMIT: Api(TxnOffsetCommitRequest, TxnOffsetCommitResponse, 1),
    ApiKey.DESCRIBE_ACLS: Api(DescribeAclsRequest, DescribeAclsResponse, 1),
    ApiKey.CREATE_ACLS: Api(CreateAclsRequest, CreateAclsResponse, 1),
    ApiKey.DELETE_ACLS: Api(DeleteAclsRequest, DeleteAclsResponse, 1),
    ApiKey.DESCRIBE_CONFIGS: Api(DescribeConfigsRequest, DescribeConfigsResponse, 2),
    ApiKey.ALTER_CONFIGS: Api(AlterConfigsRequest, AlterConfigsResponse, 1),
    ApiKey.SASL_AUTHENTICATE: Api(SaslAuthenticateRequest, SaslAuthenticateResponse, NEVER_THROTTLED, SMALL_RESPONSE),
    ApiKey.CREATE_PARTITIONS: Api(CreatePartitionsRequest, CreatePartitionsResponse, 1),
    ApiKey.DELETE_GROUPS: Api(DeleteGroupsRequest, DeleteGroupsResponse, 1),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, 0),
    ApiKey.OFFSET_DELETE: Api(OffsetDeleteRequest, OffsetDeleteResponse, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Api(DescribeClientQuotasRequest, DescribeClientQuotasResponse, 0),
    ApiKey.ALTER_CLIENT_QUOTAS: Api(AlterClientQuotasRequest, AlterClientQuotasResponse, 0),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Api(
        DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse, 0
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Api(AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, 0),
    ApiKey.DESCRIBE_CLUSTER: Api(DescribeClusterRequest, DescribeClusterResponse, 0),
    ApiKey.DESCRIBE_PRODUCERS: Api(DescribeProducersRequest, DescribeProducersResponse, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: Api(DescribeTransactionsRequest, DescribeTransactionsResponse, 0),
    ApiKey.LIST_TRANSACTIONS: Api(ListTransactionsRequest, ListTransactionsResponse, 0),
}
"""By key, in the order of the keys."""
