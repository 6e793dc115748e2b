from __future__ import annotations

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.context import BrokerContext
from aioproducer.broker.kafka_apis import APIS, KafkaApis
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS as MESSAGES


def make_context() -> BrokerContext:
    return EmbeddedCluster()._context(0)


@pytest.fixture
def apis() -> KafkaApis:
    return KafkaApis(make_context())


def test_every_version_of_the_table_is_supported_and_no_other(apis: KafkaApis) -> None:
    for key, api in APIS.items():
        for version in range(-1, 100):
            assert apis.is_supported(key, version) == (version in api.versions)


def test_every_version_of_the_table_can_be_decoded() -> None:
    for key, api in APIS.items():
        for version in range(api.versions.low, api.versions.high + 1):
            assert version in MESSAGES[ApiKey(key)].request.VALID_VERSIONS
            assert version in MESSAGES[ApiKey(key)].response.VALID_VERSIONS


def test_an_older_broker_has_older_versions() -> None:
    context = make_context()
    apis = KafkaApis(context, {ApiKey.PRODUCE: 7, ApiKey.METADATA: 99})
    assert [apis.is_supported(ApiKey.PRODUCE, version) for version in (2, 3, 7, 8)] == [False, True, True, False]
    newest = APIS[ApiKey.METADATA].versions.high
    assert [apis.is_supported(ApiKey.METADATA, version) for version in (newest, newest + 1)] == [True, False]


def test_api_versions_is_answered_whatever_its_version(apis: KafkaApis) -> None:
    assert apis.is_supported(ApiKey.API_VERSIONS, 99)


@pytest.mark.parametrize("api_key", [ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.LEADER_AND_ISR, 1000, -1])
def test_other_apis_are_not_supported(apis: KafkaApis, api_key: int) -> None:
    assert not apis.is_supported(api_key, 0)
