"""From a request to its handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from aioproducer.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_user_scram_credentials,
    api_versions,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_producers,
    describe_transactions,
    describe_user_scram_credentials,
    end_txn,
    fetch,
    find_coordinator,
    get_telemetry_subscriptions,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    push_telemetry,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
)
from aioproducer.broker.handlers.authentication_failure import fail
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.security.sasl_server_authenticator import Admission
from aioproducer.errors import SchemaException
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS as MESSAGES
from aioproducer.protocol.codec import Decoding, decode_prefix
from aioproducer.protocol.messages.produce import ProduceRequest
from aioproducer.protocol.schema import Response, Versions

MAX_ELEMENTS = 20_000
"""Elements in all arrays of a request together: partitions, topics, members and so on. Kafka has no such limit, except
for 10,000 partitions to create at once."""

LARGE = 16 * 1024
"""Bytes of a body beyond which a request other than Produce is decoded in slices. Most of a large Produce request is
records, which are not looked at."""

PRODUCE_AT_ONCE = 250
"""Topics and partitions beyond which a Produce request is decoded in slices."""


class Api(NamedTuple):
    """One API of the broker. ``handle`` returns the response, or steps that return it if that may take long. It returns
    None if it ends the request itself, now or later."""

    versions: Versions
    handle: Callable[[BrokerContext, Request, Any], Response | Steps[Response | None] | None]
    changes: bool = False
    """Whether the steps continue when the client has disconnected, because they change something."""


APIS: dict[int, Api] = {
    ApiKey.PRODUCE: Api(produce.VERSIONS, produce.handle),
    ApiKey.FETCH: Api(fetch.VERSIONS, fetch.handle),
    ApiKey.LIST_OFFSETS: Api(list_offsets.VERSIONS, list_offsets.handle),
    ApiKey.METADATA: Api(metadata.VERSIONS, metadata.handle),
    ApiKey.OFFSET_COMMIT: Api(offset_commit.VERSIONS, offset_commit.handle, changes=True),
    ApiKey.OFFSET_FETCH: Api(offset_fetch.VERSIONS, offset_fetch.handle),
    ApiKey.FIND_COORDINATOR: Api(find_coordinator.VERSIONS, find_coordinator.handle),
    ApiKey.JOIN_GROUP: Api(join_group.VERSIONS, join_group.handle),
    ApiKey.HEARTBEAT: Api(heartbeat.VERSIONS, heartbeat.handle),
    ApiKey.LEAVE_GROUP: Api(leave_group.VERSIONS, leave_group.handle, changes=True),
    ApiKey.SYNC_GROUP: Api(sync_group.VERSIONS, sync_group.handle, changes=True),
    ApiKey.DESCRIBE_GROUPS: Api(describe_groups.VERSIONS, describe_groups.handle),
    ApiKey.LIST_GROUPS: Api(list_groups.VERSIONS, list_groups.handle),
    ApiKey.SASL_HANDSHAKE: Api(sasl_handshake.VERSIONS, sasl_handshake.handle),
    ApiKey.CREATE_TOPICS: Api(create_topics.VERSIONS, create_topics.handle, changes=True),
    ApiKey.DELETE_TOPICS: Api(delete_topics.VERSIONS, delete_topics.handle, changes=True),
    ApiKey.DELETE_RECORDS: Api(delete_records.VERSIONS, delete_records.handle, changes=True),
    ApiKey.INIT_PRODUCER_ID: Api(init_producer_id.VERSIONS, init_producer_id.handle),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api(offset_for_leader_epoch.VERSIONS, offset_for_leader_epoch.handle),
    ApiKey.ADD_PARTITIONS_TO_TXN: Api(add_partitions_to_txn.VERSIONS, add_partitions_to_txn.handle, changes=True),
    ApiKey.ADD_OFFSETS_TO_TXN: Api(add_offsets_to_txn.VERSIONS, add_offsets_to_txn.handle, changes=True),
    ApiKey.END_TXN: Api(end_txn.VERSIONS, end_txn.handle, changes=True),
    ApiKey.TXN_OFFSET_COMMIT: Api(txn_offset_commit.VERSIONS, txn_offset_commit.handle, changes=True),
    ApiKey.DESCRIBE_ACLS: Api(describe_acls.VERSIONS, describe_acls.handle),
    ApiKey.CREATE_ACLS: Api(create_acls.VERSIONS, create_acls.handle, changes=True),
    ApiKey.DELETE_ACLS: Api(delete_acls.VERSIONS, delete_acls.handle, changes=True),
    ApiKey.DESCRIBE_CONFIGS: Api(describe_configs.VERSIONS, describe_configs.handle),
    ApiKey.ALTER_CONFIGS: Api(alter_configs.VERSIONS, alter_configs.handle, changes=True),
    ApiKey.SASL_AUTHENTICATE: Api(sasl_authenticate.VERSIONS, sasl_authenticate.handle),
    ApiKey.CREATE_PARTITIONS: Api(create_partitions.VERSIONS, create_partitions.handle, changes=True),
    ApiKey.DELETE_GROUPS: Api(delete_groups.VERSIONS, delete_groups.handle, changes=True),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(
        incremental_alter_configs.VERSIONS, incremental_alter_configs.handle, changes=True
    ),
    ApiKey.OFFSET_DELETE: Api(offset_delete.VERSIONS, offset_delete.handle, changes=True),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Api(describe_client_quotas.VERSIONS, describe_client_quotas.handle),
    ApiKey.ALTER_CLIENT_QUOTAS: Api(alter_client_quotas.VERSIONS, alter_client_quotas.handle, changes=True),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Api(
        describe_user_scram_credentials.VERSIONS, describe_user_scram_credentials.handle
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Api(
        alter_user_scram_credentials.VERSIONS, alter_user_scram_credentials.handle, changes=True
    ),
    ApiKey.DESCRIBE_CLUSTER: Api(describe_cluster.VERSIONS, describe_cluster.handle),
    ApiKey.DESCRIBE_PRODUCERS: Api(describe_producers.VERSIONS, describe_producers.handle),
    ApiKey.DESCRIBE_TRANSACTIONS: Api(describe_transactions.VERSIONS, describe_transactions.handle),
    ApiKey.LIST_TRANSACTIONS: Api(list_transactions.VERSIONS, list_transactions.handle),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: Api(get_telemetry_subscriptions.VERSIONS, get_telemetry_subscriptions.handle),
    ApiKey.PUSH_TELEMETRY: Api(push_telemetry.VERSIONS, push_telemetry.handle),
    ApiKey.LIST_CONFIG_RESOURCES: Api(list_config_resources.VERSIONS, list_config_resources.handle),
}
"""Every API except ApiVersions, whose answer lists this table."""

_REQUESTS = {key: MESSAGES[ApiKey(key)].request for key in APIS}


class KafkaApis:
    """The APIs of one node. ``newest``: lower maximum versions, by API."""

    def __init__(self, context: BrokerContext, newest: Mapping[int, int] | None = None) -> None:
        self._context = context
        self._versions = {key: api.versions for key, api in APIS.items()}
        for key, version in (newest or {}).items():
            self._lower(key, version)
        if not context.config.unstable_api_versions_enable:
            self._lower(ApiKey.INIT_PRODUCER_ID, init_producer_id.NEWEST_STABLE)
        if context.old:
            self._lower(ApiKey.PRODUCE, produce.NEWEST_BEFORE_KIP_1269)
        self._api_versions = api_versions.ApiVersionsHandler(self._versions, context.transaction_version)

    def _lower(self, key: int, newest: int) -> None:
        low, high = self._versions[key]
        self._versions[key] = Versions(low, min(newest, high))

    def is_supported(self, api_key: int, api_version: int) -> bool:
        if api_key == ApiKey.API_VERSIONS:
            return True
        versions = self._versions.get(api_key)
        return versions is not None and api_version in versions

    def handle(self, request: Request, frame: bytes | memoryview, body_at: int) -> None:
        """Decodes and handles a request of a supported API and version; see ``RequestHandler``."""
        header = request.header
        if not self._admits(request):
            return
        if header.api_key == ApiKey.API_VERSIONS:
            self._api_versions.handle(request, frame, body_at)
            return
        api = APIS[header.api_key]
        if header.api_key == ApiKey.PRODUCE:
            self._handle_produce(request, api, frame, body_at)
            return
        if len(frame) - body_at > LARGE or self._context.order.is_busy(request.connection):
            self._handle_in_order(request, api, _decode(request, frame, body_at), needed=api.changes)
            return
        # Bytes after the end are ignored, as in Kafka: librdkafka sends some with Metadata.
        message, _ = decode_prefix(_REQUESTS[header.api_key], header.api_version, frame, body_at, MAX_ELEMENTS)
        self._carry_out(request, api, message)

    def _handle_produce(self, request: Request, api: Api, frame: bytes | memoryview, body_at: int) -> None:
        header = request.header
        try:
            message, _ = decode_prefix(ProduceRequest, header.api_version, frame, body_at, PRODUCE_AT_ONCE)
        except SchemaException:  # too many elements, or an error that decoding in slices raises again
            # A client that has disconnected may have sent it with acks=0.
            self._handle_in_order(request, api, _decode_produce(request, frame, body_at), needed=True)
            return
        self._carry_out(request, api, message)

    def _carry_out(self, request: Request, api: Api, message: Any) -> None:
        """Responds at once, or runs the steps of what takes long."""
        response = api.handle(self._context, request, message)
        if isinstance(response, Response):
            request.respond(response)
        elif response is None:
            return
        elif api.changes:
            steps = self._in_order(request, response)
            self._context.order.run(request, partial(self._context.long_work.run, request, steps, needed=True))
        else:
            self._context.long_work.run(request, response)

    def _handle_in_order(self, request: Request, api: Api, decoding: Steps[Any], *, needed: bool) -> None:
        request.hold()
        steps = self._in_order(request, self._steps(request, api, decoding))
        run = self._context.long_work.run_large
        self._context.order.run(request, partial(run, request, steps, needed=needed))

    def _in_order(self, request: Request, steps: Steps[Response | None]) -> Steps[Response | None]:
        """Later requests of the connection wait until the steps have ended."""
        try:
            return (yield from steps)
        finally:
            self._context.order.ended(request)

    def _steps(self, request: Request, api: Api, decoding: Steps[Any]) -> Steps[Response | None]:
        response = api.handle(self._context, request, (yield from decoding))
        if response is None or isinstance(response, Response):
            return response
        return (yield from response)

    def _admits(self, request: Request) -> bool:
        authenticator = request.connection.authenticator
        if authenticator is None:
            return True
        api_key = request.header.api_key
        admission = authenticator.admits(api_key, self._context.clock.monotonic())
        if admission is Admission.YES:
            return True
        reason = f"it sent a request of API {api_key}, and {admission.value}"
        if admission is Admission.EXPIRED:
            request.close_connection(reason)
        else:
            fail(self._context, request, None, reason)
        return False


def _decoding(request: Request, frame: bytes | memoryview, body_at: int) -> Decoding:
    header = request.header
    return Decoding(_REQUESTS[header.api_key], header.api_version, frame, body_at, MAX_ELEMENTS, is_prefix=True)


def _decode_produce(request: Request, frame: bytes | memoryview, body_at: int) -> Steps[Any]:
    """Unless this fails, the memory is released when the batches are appended."""
    try:
        decoding = _decoding(request, frame, body_at)
        while not decoding.step():
            yield
    except BaseException:
        request.release()
        raise
    return decoding.message


def _decode(request: Request, frame: bytes | memoryview, body_at: int) -> Steps[Any]:
    try:
        decoding = _decoding(request, frame, body_at)
        while not decoding.step():
            yield
        return decoding.message
    finally:
        request.release()
