from __future__ import annotations

import pytest

from aioproducer.errors import UnsupportedVersionException
from aioproducer.net.connection.node_api_versions import NodeApiVersions
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import ProduceRequest


def versions_of(*apis: tuple[ApiKey, int, int]) -> NodeApiVersions:
    return NodeApiVersions("b:9092", ApiVersionsResponse(api_keys=[ApiVersion(*api) for api in apis]))


def test_the_version_both_sides_speak() -> None:
    versions = versions_of((ApiKey.PRODUCE, 5, 9), (ApiKey.METADATA, 90, 99))
    assert versions.latest_usable_version(ProduceRequest) == 9
    assert versions.latest_usable_version(ProduceRequest, at_most=7) == 7
    with pytest.raises(UnsupportedVersionException, match="b:9092 speaks PRODUCE 5 to 9, and 3 to 4 would be needed"):
        versions.latest_usable_version(ProduceRequest, at_most=4)
    with pytest.raises(UnsupportedVersionException, match="METADATA 90 to 99"):
        versions.latest_usable_version(MetadataRequest)


def test_an_api_that_is_not_spoken() -> None:
    versions = versions_of((ApiKey.METADATA, 0, 9))
    assert (versions.newest(ApiKey.METADATA), versions.newest(ApiKey.PRODUCE)) == (9, -1)
    with pytest.raises(UnsupportedVersionException, match="b:9092 does not speak PRODUCE"):
        versions.latest_usable_version(ProduceRequest)


def test_finalized_features_of_the_cluster_are_known() -> None:
    features = [FinalizedFeatureKey("transaction.version", 2, 0)]
    versions = NodeApiVersions("b:9092", ApiVersionsResponse(finalized_features=features))
    assert (versions.finalized("transaction.version"), versions.finalized("group.version")) == (2, 0)


def test_no_version_is_known_before_the_first_answer() -> None:
    assert not NodeApiVersions("b:9092").known()
    assert versions_of((ApiKey.METADATA, 0, 9)).known()
