from __future__ import annotations

import subprocess
import sys

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS, MAX_RESPONSE_SIZE, NEVER_THROTTLED, SMALL_RESPONSE, VERSIONS_RESPONSE
from aioproducer.protocol.schema import Request, Response

# What the broker and the clients rely on; Kafka 4.3.1 has the same, but for Produce 14 (KIP-1269).
VERSIONS = {
    "PRODUCE": (3, 14),
    "FETCH": (4, 18),
    "LIST_OFFSETS": (1, 11),
    "METADATA": (0, 13),
    "FIND_COORDINATOR": (0, 6),
    "API_VERSIONS": (0, 4),
    "CREATE_TOPICS": (2, 7),
    "DELETE_TOPICS": (1, 6),
    "INIT_PRODUCER_ID": (0, 5),
    "OFFSET_FOR_LEADER_EPOCH": (2, 4),
    "OFFSET_COMMIT": (2, 10),
    "OFFSET_FETCH": (1, 10),
    "ADD_PARTITIONS_TO_TXN": (0, 5),
    "ADD_OFFSETS_TO_TXN": (0, 4),
    "END_TXN": (0, 5),
    "TXN_OFFSET_COMMIT": (0, 5),
    "DESCRIBE_CLUSTER": (0, 2),
    "DESCRIBE_PRODUCERS": (0, 0),
    "DESCRIBE_TRANSACTIONS": (0, 0),
    "LIST_TRANSACTIONS": (0, 2),
    "GET_TELEMETRY_SUBSCRIPTIONS": (0, 0),
    "PUSH_TELEMETRY": (0, 0),
    "LIST_CONFIG_RESOURCES": (0, 1),
    "CREATE_PARTITIONS": (0, 3),
    "DELETE_RECORDS": (0, 2),
    "JOIN_GROUP": (0, 9),
    "SYNC_GROUP": (0, 5),
    "HEARTBEAT": (0, 4),
    "LEAVE_GROUP": (0, 5),
    "DESCRIBE_GROUPS": (0, 6),
    "LIST_GROUPS": (0, 5),
    "DELETE_GROUPS": (0, 2),
    "OFFSET_DELETE": (0, 0),
    "DESCRIBE_ACLS": (1, 3),
    "CREATE_ACLS": (1, 3),
    "DELETE_ACLS": (1, 3),
    "DESCRIBE_CONFIGS": (1, 4),
    "ALTER_CONFIGS": (0, 2),
    "INCREMENTAL_ALTER_CONFIGS": (0, 1),
    "DESCRIBE_CLIENT_QUOTAS": (0, 1),
    "ALTER_CLIENT_QUOTAS": (0, 1),
    "SASL_HANDSHAKE": (0, 1),
    "SASL_AUTHENTICATE": (0, 2),
    "DESCRIBE_USER_SCRAM_CREDENTIALS": (0, 0),
    "ALTER_USER_SCRAM_CREDENTIALS": (0, 0),
}


def test_versions() -> None:
    assert {key.name: (api.request.MIN_VERSION, api.request.MAX_VERSION) for key, api in APIS.items()} == VERSIONS
    assert list(APIS) == sorted(APIS)


def test_every_response_that_may_throttle_says_so() -> None:
    for api in APIS.values():
        if api.client_throttles_from == NEVER_THROTTLED:
            assert not hasattr(api.response(), "throttle_time_ms")
            continue
        assert api.request.MIN_VERSION <= api.client_throttles_from <= api.request.MAX_VERSION
        assert hasattr(api.response(), "throttle_time_ms")


def test_request_and_response_belong_together() -> None:
    for key, api in APIS.items():
        request, response = api.request, api.response
        assert issubclass(request, Request)
        assert issubclass(response, Response)
        assert request.API_KEY is response.API_KEY is key
        assert request.VALID_VERSIONS == response.VALID_VERSIONS
        assert request.MAX_VERSION == response.MAX_VERSION
        # One header version for both directions: a version is flexible in both or in neither.
        assert request.FLEXIBLE_VERSIONS == response.FLEXIBLE_VERSIONS


def test_small_responses_have_a_small_bound() -> None:
    assert APIS[ApiKey.API_VERSIONS].largest_response == VERSIONS_RESPONSE
    small = {key for key, api in APIS.items() if api.largest_response == SMALL_RESPONSE}
    assert {ApiKey.SASL_AUTHENTICATE, ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN} < small
    growing = {ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.LEAVE_GROUP}
    assert not growing & small
    assert all(api.largest_response == MAX_RESPONSE_SIZE for key, api in APIS.items() if key in growing)


def test_making_a_producer_imports_no_messages_of_others() -> None:
    program = (
        "import sys; from aioproducer import KafkaProducer; KafkaProducer(bootstrap_servers='b:1'); "
        "print(*(name for name in sys.modules if name.startswith('aioproducer.protocol.messages.')))"
    )
    imported = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "aioproducer.protocol.messages.produce" in imported
    assert not any(name in imported for name in ("create_topics", "join_group", "describe_acls", ".fetch"))
