"""The APIs that are spoken here: which messages they have, and in which versions."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.schema import Request, Response

MAX_RESPONSE_SIZE = 100 * 1024 * 1024
"""The largest response accepted, in bytes; a broker limits requests to as many (``socket.request.max.bytes``)."""

SMALL_RESPONSE = 64 * 1024
"""One error message may have half of this."""

VERSIONS_RESPONSE = 16 * 1024
"""The first that a peer says, which may be no broker: brokers have some 100 APIs, of 7 bytes each."""

NEVER_THROTTLED = 2**15 - 1
"""Clients are not throttled before they have authenticated."""


class Api:
    """The two messages of an API. Their versions are class attributes: ``MIN_VERSION``, ``MAX_VERSION``, …

    Their module is imported when one of them is first used: a producer needs a dozen of these modules, and declaring
    all messages takes as long as importing the rest of the package.
    """

    def __init__(self, key: ApiKey, client_throttles_from: int, largest_response: int = MAX_RESPONSE_SIZE) -> None:
        self.key = key
        self.client_throttles_from = client_throttles_from
        """From this version on the broker answers at once, and the client waits out a throttle itself (KIP-219)."""
        self.largest_response = largest_response
        """In bytes; small for a response that does not grow with topics, partitions, groups or records."""

    @cached_property
    def request(self) -> type[Request]:
        message: type[Request] = self._message("Request")
        return message

    @cached_property
    def response(self) -> type[Response]:
        message: type[Response] = self._message("Response")
        return message

    def _message(self, kind: str) -> Any:
        """``INIT_PRODUCER_ID`` has ``InitProducerIdRequest`` and ``…Response``, in ``messages/init_producer_id.py``."""
        name = self.key.name
        module = import_module(f"aioproducer.protocol.messages.{name.lower()}")
        return getattr(module, name.title().replace("_", "") + kind)


APIS: dict[ApiKey, Api] = {
    api.key: api
    for api in (
        Api(ApiKey.PRODUCE, 6),
        Api(ApiKey.FETCH, 8),
        Api(ApiKey.LIST_OFFSETS, 3),
        Api(ApiKey.METADATA, 6),
        Api(ApiKey.OFFSET_COMMIT, 4),
        Api(ApiKey.OFFSET_FETCH, 4),
        Api(ApiKey.FIND_COORDINATOR, 2, SMALL_RESPONSE),
        Api(ApiKey.JOIN_GROUP, 3),
        Api(ApiKey.HEARTBEAT, 2, SMALL_RESPONSE),
        Api(ApiKey.LEAVE_GROUP, 2),
        Api(ApiKey.SYNC_GROUP, 2),
        Api(ApiKey.DESCRIBE_GROUPS, 2),
        Api(ApiKey.LIST_GROUPS, 2),
        Api(ApiKey.SASL_HANDSHAKE, NEVER_THROTTLED, SMALL_RESPONSE),
        Api(ApiKey.API_VERSIONS, 2, VERSIONS_RESPONSE),
        Api(ApiKey.CREATE_TOPICS, 3),
        Api(ApiKey.DELETE_TOPICS, 2),
        Api(ApiKey.DELETE_RECORDS, 1),
        Api(ApiKey.INIT_PRODUCER_ID, 1, SMALL_RESPONSE),
        Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 3),
        Api(ApiKey.ADD_PARTITIONS_TO_TXN, 1),
        Api(ApiKey.ADD_OFFSETS_TO_TXN, 1, SMALL_RESPONSE),
        Api(ApiKey.END_TXN, 1, SMALL_RESPONSE),
        Api(ApiKey.TXN_OFFSET_COMMIT, 1),
        Api(ApiKey.DESCRIBE_ACLS, 1),
        Api(ApiKey.CREATE_ACLS, 1),
        Api(ApiKey.DELETE_ACLS, 1),
        Api(ApiKey.DESCRIBE_CONFIGS, 2),
        Api(ApiKey.ALTER_CONFIGS, 1),
        Api(ApiKey.SASL_AUTHENTICATE, NEVER_THROTTLED, SMALL_RESPONSE),
        Api(ApiKey.CREATE_PARTITIONS, 1),
        Api(ApiKey.DELETE_GROUPS, 1),
        Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0),
        Api(ApiKey.OFFSET_DELETE, 0),
        Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0),
        Api(ApiKey.ALTER_CLIENT_QUOTAS, 0),
        Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0),
        Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0),
        Api(ApiKey.DESCRIBE_CLUSTER, 0),
        Api(ApiKey.DESCRIBE_PRODUCERS, 0),
        Api(ApiKey.DESCRIBE_TRANSACTIONS, 0),
        Api(ApiKey.LIST_TRANSACTIONS, 0),
        Api(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0),
        Api(ApiKey.PUSH_TELEMETRY, 0, SMALL_RESPONSE),
        Api(ApiKey.LIST_CONFIG_RESOURCES, 0),
    )
}
"""By key, in the order of the keys."""
