"""ApiVersions: which APIs the node speaks, in which versions.

Versions 0 to 4. A newer version is answered with ``UNSUPPORTED_VERSION`` in the format of version 0, which
lists the versions of this API alone, and the client retries with one of them (KIP-511).

Simplification: ``transaction.version`` is the only feature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aioproducer.broker.requests.request import ClientSoftware, Request
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.codec import decode
from aioproducer.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 4)
PRODUCE_MIN_VERSION = 0
"""librdkafka stops compressing for a broker that does not say it has Produce 0 (KAFKA-18659): it is offered, and
refused when used, as in Kafka."""

TRANSACTION_VERSION = "transaction.version"
NEWEST_TRANSACTION_VERSION = 2
"""2 is KIP-890's protocol; clients use the first one for anything less."""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

_KEPT = 255
"""Characters of a software's name and version that are kept with the connection."""


class ApiVersionsHandler:
    """Answers with the versions of the other APIs, given as ``{api key: versions}``."""

    def __init__(self, others: Mapping[int, Versions], transaction_version: int) -> None:
        self._transaction_version = transaction_version
        offered = {**others, ApiKey.API_VERSIONS: VERSIONS}
        offered[ApiKey.PRODUCE] = Versions(PRODUCE_MIN_VERSION, offered[ApiKey.PRODUCE].high)
        self._api_keys = [ApiVersion(int(key), *versions) for key, versions in sorted(offered.items())]

    def handle(self, request: Request, frame: bytes | memoryview, body_at: int) -> None:
        version = request.header.api_version
        authenticator = request.connection.authenticator
        if version not in VERSIONS:
            if authenticator is not None:
                authenticator.versions(is_supported=False)
            own = [api for api in self._api_keys if api.api_key == ApiKey.API_VERSIONS]
            request.respond(ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, own), version=0)
            return
        message = decode(ApiVersionsRequest, version, frame, body_at)
        if version >= 3 and not (
            _SOFTWARE.fullmatch(message.client_software_name) and _SOFTWARE.fullmatch(message.client_software_version)
        ):
            if authenticator is not None:
                authenticator.versions(is_supported=False)
            request.respond(ApiVersionsResponse(ErrorCode.INVALID_REQUEST))
            return
        if version >= 3:
            name, software_version = message.client_software_name, message.client_software_version
            request.connection.software = ClientSoftware(name[:_KEPT], software_version[:_KEPT])
        if authenticator is not None:
            authenticator.versions(is_supported=True)
        level = self._transaction_version
        request.respond(
            ApiVersionsResponse(
                ErrorCode.NONE,
                self._api_keys,
                supported_features=[SupportedFeatureKey(TRANSACTION_VERSION, 0, NEWEST_TRANSACTION_VERSION)],
                finalized_features_epoch=0,
                finalized_features=[FinalizedFeatureKey(TRANSACTION_VERSION, level, level)] if level else [],
            )
        )
