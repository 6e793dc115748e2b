"""Logs a line for each request: the request, its response, and how long each stage took.

The logger is ``aioproducer.broker.request``, the level DEBUG, the line a JSON object with the names of Kafka's request
log. While it is disabled, it costs one check per request.
"""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

from aioproducer.broker.configs.config_resource_type import ConfigResourceType, may_be_secret
from aioproducer.broker.requests.request import Request
from aioproducer.broker.requests.request_metrics import RequestTimes
from aioproducer.broker.requests.response import CloseConnectionResponse, RequestEnd, SendResponse
from aioproducer.errors import SchemaException
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.codec import decode_prefix
from aioproducer.protocol.framing import decode_response
from aioproducer.protocol.schema import BYTES, RECORDS, UUID, Array, Struct, Type
from aioproducer.security.password import Password

log = logging.getLogger("aioproducer.broker.request")


def enabled() -> bool:
    return log.isEnabledFor(logging.DEBUG)


def log_request(request: Request, end: RequestEnd, times: RequestTimes) -> None:
    """Logs a request that ended with ``end``, and whose bytes are not released yet."""
    header, connection = request.header, request.connection
    software = connection.software
    line = {
        "requestHeader": {
            "requestApiKey": header.api_key,
            "requestApiVersion": header.api_version,
            "correlationId": header.correlation_id,
            "clientId": header.client_id,
            "requestApiKeyName": ApiKey(header.api_key).name,
        },
        "request": _request(request),
        "response": _response(request, end),
        "connection": connection.id,
        "totalTimeMs": times.total / 1000,
        "requestQueueTimeMs": times.request_queue / 1000,
        "localTimeMs": times.local / 1000,
        "remoteTimeMs": times.remote / 1000,
        "throttleTimeMs": request.throttle_time_ms,
        "responseQueueTimeMs": times.response_queue / 1000,
        "sendTimeMs": times.response_send / 1000,
        "securityProtocol": connection.security_protocol,
        "principal": f"User:{connection.user}",
        "listener": connection.listener,
        "clientInformation": None
        if software is None
        else {"softwareName": software.name, "softwareVersion": software.version},
        "requestSizeInBytes": request.size,
    }
    log.debug("Completed request:%s", json.dumps(line))


def _request(request: Request) -> Any:
    header = request.header
    if header.api_key == ApiKey.API_VERSIONS and header.api_version > APIS[ApiKey.API_VERSIONS].request.MAX_VERSION:
        return None  # its fields are unknown
    message, _ = decode_prefix(APIS[ApiKey(header.api_key)].request, header.api_version, request.frame, request.body_at)
    found = as_json(message, header.api_version)
    _hide_configs(header.api_key, found)
    return found


def _hide_configs(api_key: int, message: dict[str, Any]) -> None:
    """Hides the values of configs that may be secret, as Kafka's ``RequestChannel.loggableRequest`` does; those that a
    topic is created with, too."""
    if api_key == ApiKey.CREATE_TOPICS:
        owners = [(ConfigResourceType.TOPIC, topic) for topic in message["topics"]]
    elif api_key in (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS):
        owners = [(resource["resourceType"], resource) for resource in message["resources"]]
    else:
        return
    for kind, owner in owners:
        for config in owner["configs"]:
            if config["value"] is not None and may_be_secret(kind, config["name"]):
                config["value"] = Password.HIDDEN


def _response(request: Request, end: RequestEnd) -> Any:
    if not isinstance(end, SendResponse | CloseConnectionResponse) or not end.parts:
        return None
    cls = APIS[ApiKey(request.header.api_key)].response
    version = request.header.api_version if request.header.api_version in cls.VALID_VERSIONS else 0
    try:
        _, response = decode_response(cls, version, b"".join(end.parts)[4:])
    except SchemaException as error:
        return f"not of this version: {error}"  # a fault of a test
    return as_json(response, version)


def as_json(struct: Struct, version: int) -> dict[str, Any]:
    """The fields of a version, in Kafka's spelling. Secrets are hidden. Records and pushed metrics appear as their
    size."""
    found: dict[str, Any] = {}
    for wire in struct.FIELDS:
        value = getattr(struct, wire.name)
        if version not in wire.versions or (version in wire.tagged and value == wire.default):
            continue
        first, *words = wire.name.split("_")
        name = first + "".join(word.title() for word in words)
        if wire.type is RECORDS or (wire.name == "metrics" and wire.type is BYTES):
            found[f"{name}SizeInBytes"] = None if value is None else len(value)
        elif wire.secret:
            found[name] = Password.HIDDEN
        else:
            found[name] = _json_value(value, wire.type, version)
    return found


def _json_value(value: Any, type_: Type, version: int) -> Any:
    if value is None:
        return None
    if isinstance(type_, Array):
        return [_json_value(element, type_.element, version) for element in value]
    if isinstance(type_, type):
        return as_json(value, version)
    if type_ is UUID:
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return base64.b64encode(value).decode() if type_ is BYTES else value
