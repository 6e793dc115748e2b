from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.requests.request import Request
from aioproducer.broker.requests.request_log import as_json
from aioproducer.broker.requests.request_metrics import HISTOGRAMS, RequestMetrics, RequestTimes, api_name
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.messages import alter_configs, incremental_alter_configs
from aioproducer.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from aioproducer.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.incremental_alter_configs import AlterableConfig, IncrementalAlterConfigsRequest
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.protocol.messages.push_telemetry import PushTelemetryRequest
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import Connect, RawClient

NOWHERE: Any = None

Lines = Callable[[], list[dict[str, Any]]]


def request_at(*stamps: float, api_key: int = 0, size: int = 0) -> Request:
    request = Request(RequestHeader(api_key, 9), NOWHERE, NOWHERE, bytes(size), start_time=stamps[0])
    names = ("request_dequeue_time", "api_local_complete_time", "response_complete_time", "response_dequeue_time")
    for name, stamp in zip(names, stamps[1:], strict=False):
        setattr(request, name, stamp)
    return request


def parts_of(times: RequestTimes) -> list[int]:
    return [times.request_queue, times.local, times.remote, times.response_queue, times.response_send]


class TestTimeLine:
    def test_the_parts_are_the_times_between_the_stamps(self) -> None:
        request = request_at(1.0, 1.001, 1.003, 1.103, 1.107)
        request.throttle_time_ms = 50
        times = RequestTimes(request, 1.115)
        assert parts_of(times) == pytest.approx([1000, 2000, 100_000, 4000, 8000], abs=2)
        assert times.total == pytest.approx(115_000, abs=2)
        assert times.throttle == 50_000

    def test_a_handler_that_is_not_done_when_its_answer_is_there(self) -> None:
        times = RequestTimes(request_at(1.0, 1.001, 1.004, 1.003, 1.005), 1.005)
        assert parts_of(times) == pytest.approx([1000, 2000, 0, 2000, 0], abs=2)

    @pytest.mark.parametrize("reached", range(1, 6))
    def test_a_request_whose_client_disconnected_has_the_parts_that_it_reached(self, reached: int) -> None:
        times = RequestTimes(request_at(*[1.0, 1.001, 1.003, 1.006, 1.010][:reached]), 1.020)
        assert sum(parts_of(times)) == pytest.approx(times.total, abs=5)
        assert times.total == pytest.approx(20_000, abs=2)
        assert min(parts_of(times)) >= 0


def test_each_api_has_its_own() -> None:
    metrics = RequestMetrics()
    for key, size in ((ApiKey.PRODUCE, 100), (ApiKey.PRODUCE, 300), (ApiKey.FETCH, 7)):
        request = request_at(1.0, 1.0, 1.0, 1.0, 1.0, api_key=key, size=size)
        errors: dict[int, int] = (
            {ErrorCode.NONE: 2, ErrorCode.NOT_LEADER_OR_FOLLOWER: 1} if key == ApiKey.PRODUCE else {}
        )
        metrics.record(request, RequestTimes(request, 1.01), errors, 1.01)
    found = dict(metrics)
    assert set(found) == {"Produce", "Fetch"}
    sizes = found["Produce"].histograms[list(HISTOGRAMS).index("RequestBytes")]
    assert sizes.count == 2
    assert sizes.maximum(1.01) == pytest.approx(300, rel=0.02)
    assert {version: rate.count for version, rate in found["Produce"].rates.items()} == {9: 2}
    assert {code: rate.total for code, rate in found["Produce"].errors.items()} == {0: 4, 6: 2}
    assert found["Fetch"].errors == {}


def test_names_are_kafkas() -> None:
    names = [api_name(key) for key in (ApiKey.PRODUCE, ApiKey.API_VERSIONS, ApiKey.END_TXN, ApiKey.INIT_PRODUCER_ID)]
    assert names == ["Produce", "ApiVersions", "EndTxn", "InitProducerId"]


async def test_the_wait_of_a_fetch_counts_as_remote_time(
    cluster: EmbeddedCluster, client: RawClient, connect: Connect
) -> None:
    cluster.create_topic("t")
    fetch = FetchRequest(max_wait_ms=50, min_bytes=1, topics=[FetchTopic("t", partitions=[FetchPartition(0)])])
    await client.request(fetch, 12)
    found = cluster.metrics().select("RequestMetrics", request="Fetch")
    assert found["RemoteTimeMs-max"] > 0
    assert found["TotalTimeMs-max"] >= found["RemoteTimeMs-max"]
    assert found["TotalTimeMs-count"] == 1
    assert found.select(version="12")["RequestsPerSec"] > 0


class TestLog:
    @pytest.fixture
    def lines(self, caplog: pytest.LogCaptureFixture) -> Lines:
        caplog.set_level(logging.DEBUG, "aioproducer.broker.request")

        def found() -> list[dict[str, Any]]:
            return [
                json.loads(record.getMessage().removeprefix("Completed request:"))
                for record in caplog.records
                if record.name == "aioproducer.broker.request"
            ]

        return found

    async def test_a_line_for_each_request(self, cluster: EmbeddedCluster, client: RawClient, lines: Lines) -> None:
        cluster.create_topic("t")
        software = ApiVersionsRequest(client_software_name="test", client_software_version="1.2")
        await client.request(software, 3)
        batch = make_batch(b"value")
        data = [TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])]
        await client.request(ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), 9)
        await client.send(ProduceRequest(acks=0, timeout_ms=1000, topic_data=data), 9)
        await client.request(MetadataRequest(topics=[]), 9)
        while len(lines()) < 4:  # noqa: ASYNC110
            await asyncio.sleep(0)
        first, produced, silent, _ = lines()
        assert [line["requestHeader"]["requestApiKeyName"] for line in lines()] == [
            "API_VERSIONS",
            "PRODUCE",
            "PRODUCE",
            "METADATA",
        ]
        assert first["clientInformation"] == {"softwareName": "test", "softwareVersion": "1.2"}
        assert produced["request"]["topicData"][0]["partitionData"] == [{"index": 0, "recordsSizeInBytes": len(batch)}]
        assert produced["response"]["responses"][0]["partitionResponses"][0]["errorCode"] == ErrorCode.NONE
        assert (produced["listener"], produced["principal"]) == ("PLAINTEXT", "User:ANONYMOUS")
        assert produced["connection"].startswith("127.0.0.1:")
        parts = ["requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs", "sendTimeMs"]
        assert sum(produced[part] for part in parts) == pytest.approx(produced["totalTimeMs"], abs=0.01)
        assert silent["response"] is None

    async def test_configs_that_may_be_secret_are_hidden(
        self, client: RawClient, lines: Lines, caplog: pytest.LogCaptureFixture
    ) -> None:
        secret = "not-for-the-log"
        hidden = [
            (4, "ssl.keystore.password"),
            (4, "listener.name.plaintext.ssl.key.password"),
            (4, "listener.name.plaintext.plain.sasl.jaas.config"),
            (4, "ssl.keystore.pasword"),
            (2, "retention.mss"),
            (16, "intervall.ms"),
            (32, "consumer.hearbeat.interval.ms"),
            (99, "log.retention.bytes"),
        ]
        shown = [(4, "log.retention.bytes"), (2, "retention.ms"), (16, "interval.ms"), (8, "kafka.server")]
        for kind, name in hidden:
            change = AlterableConfig(name, 0, secret)
            resource = incremental_alter_configs.AlterConfigsResource(kind, "0", [change])
            await client.request(IncrementalAlterConfigsRequest([resource], validate_only=True), 1)
            replaced = AlterConfigsResource(kind, "0", [alter_configs.AlterableConfig(name, secret)])
            await client.request(AlterConfigsRequest([replaced], validate_only=True), 2)
        for kind, name in shown:
            resource = incremental_alter_configs.AlterConfigsResource(kind, "0", [AlterableConfig(name, 0, "7")])
            await client.request(IncrementalAlterConfigsRequest([resource], validate_only=True), 1)
        configs = [CreatableTopicConfig("ssl.key.password", secret), CreatableTopicConfig("retention.ms", "8")]
        await client.request(CreateTopicsRequest([CreatableTopic("t", 1, 1, configs=configs)]), 7)
        while len(lines()) < 2 * len(hidden) + len(shown) + 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert secret not in caplog.text
        requests = [line["request"] for line in lines()]
        values = [request["resources"][0]["configs"][0]["value"] for request in requests[:-1]]
        assert values == ["[hidden]"] * 2 * len(hidden) + ["7"] * len(shown)
        created = requests[-1]["topics"][0]["configs"]
        assert [config["value"] for config in created] == ["[hidden]", "8"]

    def test_secrets_are_hidden_and_metrics_appear_as_their_size(self) -> None:
        upsertion = ScramCredentialUpsertion("alice", 1, 4096, b"salt", b"password")
        found = as_json(AlterUserScramCredentialsRequest([], [upsertion]), 0)["upsertions"][0]
        assert (found["salt"], found["saltedPassword"], found["name"]) == ("[hidden]", "[hidden]", "alice")
        assert as_json(SaslAuthenticateRequest(b"password"), 2) == {"authBytes": "[hidden]"}
        pushed = as_json(PushTelemetryRequest(metrics=b"12345"), 0)
        assert pushed["metricsSizeInBytes"] == 5
        assert "metrics" not in pushed

    async def test_an_api_versions_request_of_the_future(self, client: RawClient, lines: Lines) -> None:
        header = RequestHeader(ApiKey.API_VERSIONS, 99, 1, "raw")
        assert header.api_version == 99
        frame = (18).to_bytes(2, "big") + (99).to_bytes(2, "big") + (1).to_bytes(4, "big") + b"\0\3raw\0"
        await client.send_bytes(len(frame).to_bytes(4, "big") + frame)
        await client.receive_frame()
        while not lines():  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert lines()[0]["request"] is None
        assert lines()[0]["response"]["errorCode"] == ErrorCode.UNSUPPORTED_VERSION


async def test_nothing_is_kept_for_a_log_that_is_off(
    cluster: EmbeddedCluster, client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    await client.request(MetadataRequest(), 9)
    assert not [record for record in caplog.records if record.name == "aioproducer.broker.request"]
