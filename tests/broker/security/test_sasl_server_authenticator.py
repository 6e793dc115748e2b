from __future__ import annotations

import asyncio
import json
import logging
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.security.authentication_metrics import AuthenticationMetrics
from aioproducer.broker.security.failed_logins import FailedLogins
from aioproducer.broker.security.sasl_server_authenticator import Admission, SaslServerAuthenticator
from aioproducer.errors import ConfigException, InvalidRequestException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aioproducer.security.password import Password
from aioproducer.testing.simulation.listening import listen_on_network
from tests.broker.raw_clients.raw_client import Connect, RawClient
from tests.broker.raw_clients.sasl import CONFIGS, MECHANISMS, PASSWORD, figures, handshake, log_in, sasl_cluster, token
from tests.support.manual_clock import ManualClock
from tests.support.virtual_time import World, virtual

pytest.importorskip("scramp", reason="scramp is not installed")
scramp: Any = __import__("scramp")

VERSIONS = ApiVersionsRequest("test", "1")


@pytest.fixture
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[EmbeddedCluster]:
    """Clients that authenticate; ``@pytest.mark.parametrize("cluster", [{...}], indirect=True)`` has more configs."""
    async with sasl_cluster(**getattr(request, "param", {})) as cluster:
        yield cluster


def configured(**configs: object) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("cluster", [configs], indirect=True)


async def serves(client: RawClient) -> bool:
    return bool((await client.request(MetadataRequest([]), 13)).brokers)


class TestInOrder:
    @pytest.mark.parametrize("asks_first", [True, False])
    async def test_plain(self, cluster: EmbeddedCluster, client: RawClient, asks_first: bool) -> None:
        if asks_first:
            assert (await client.request(VERSIONS, 4)).error_code == 0
        chosen = await handshake(client)
        assert (chosen.error_code, tuple(chosen.mechanisms)) == (ErrorCode.NONE, MECHANISMS)
        answer = await token(client, f"\0alice\0{PASSWORD}".encode())
        assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (ErrorCode.NONE, b"", 0)
        assert await serves(client)
        assert figures(cluster) == {"successful-authentication-total": 1}

    @pytest.mark.parametrize("mechanism", MECHANISMS[1:])
    async def test_scram(self, client: RawClient, mechanism: str) -> None:
        await handshake(client, mechanism)
        peer = scramp.ScramClient([mechanism], "alice", PASSWORD)
        first = await token(client, peer.get_client_first().encode())
        assert first.session_lifetime_ms == 0
        peer.set_server_first(first.auth_bytes.decode())
        final = await token(client, peer.get_client_final().encode())
        peer.set_server_final(final.auth_bytes.decode())
        assert await serves(client)

    async def test_api_versions_may_be_sent_again_in_a_supported_version(self, client: RawClient) -> None:
        _, frame = client.frame(VERSIONS, 4)
        await client.send_bytes(frame[:6] + struct.pack(">h", 99) + frame[8:])
        assert (await client.receive(ApiKey.API_VERSIONS, 0))[1].error_code == ErrorCode.UNSUPPORTED_VERSION
        refused = await client.request(ApiVersionsRequest("no spaces", "1"), 4)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        spoken = {api.api_key: api for api in (await client.request(VERSIONS, 4)).api_keys}
        assert spoken[ApiKey.SASL_HANDSHAKE].max_version == 1
        assert spoken[ApiKey.SASL_AUTHENTICATE].max_version == 2
        assert (await log_in(client)).error_code == ErrorCode.NONE


class TestRefused:
    @pytest.mark.parametrize(
        ("user", "password"),
        [("alice", "wrong"), ("mallory", "secret"), ("alice", PASSWORD + "x"), ("alice", ""), ("", PASSWORD)],
    )
    async def test_a_refused_client_gets_the_error_and_is_closed(
        self, cluster: EmbeddedCluster, client: RawClient, user: str, password: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        answer = await log_in(client, user, password)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert password not in answer.error_message or not password
        assert await client.is_closed()
        assert figures(cluster) == {"failed-authentication-total": 1}
        assert "its authentication by PLAIN failed" in caplog.text
        assert "planted" not in caplog.text

    @pytest.mark.parametrize("delay_ms", [0, 1])
    def test_the_same_on_uvloop(self, delay_ms: int) -> None:
        """It writes later in its turn than asyncio, and the connection is dropped in the same one."""
        uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")

        async def run() -> None:
            async with sasl_cluster(connection__failed__authentication__delay__ms=delay_ms) as cluster:
                for _ in range(20):
                    client = await RawClient.connect(cluster.bootstrap_servers)
                    assert (await log_in(client, password="wrong")).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
                    assert await client.is_closed()
                    await client.close()

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run())

    @pytest.mark.parametrize("user", ["alice", "mallory"])
    async def test_a_scram_error_does_not_reveal_whether_the_user_or_the_password_was_wrong(
        self, client: RawClient, user: str
    ) -> None:
        await handshake(client, "SCRAM-SHA-256")
        peer = scramp.ScramClient(["SCRAM-SHA-256"], user, "wrong")
        first = await token(client, peer.get_client_first().encode())
        peer.set_server_first(first.auth_bytes.decode())
        answer = await token(client, peer.get_client_final().encode())
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == "Authentication failed: Invalid user credentials"
        assert await client.is_closed()

    @pytest.mark.parametrize("mechanism", MECHANISMS)
    @pytest.mark.parametrize(
        "data", [b"", b"\0", b"\xff\xfe\0\xff\0\xff", b"n,,", b"n,,n=,r=", b"," * 1000, b"a\0b\0c\0d"]
    )
    async def test_tokens_that_are_none(self, client: RawClient, mechanism: str, data: bytes) -> None:
        await handshake(client, mechanism)
        answer = await token(client, data)
        if answer.error_code == ErrorCode.NONE:  # a name may be empty as long as nothing is proved
            answer = await token(client, data)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await client.is_closed()

    @pytest.mark.parametrize("mechanism", ["GSSAPI", "plain", "", "SCRAM-SHA-1"])
    async def test_a_mechanism_that_is_not_enabled(
        self, cluster: EmbeddedCluster, client: RawClient, mechanism: str
    ) -> None:
        answer = await handshake(client, mechanism)
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert tuple(answer.mechanisms) == MECHANISMS
        assert await client.is_closed()
        assert figures(cluster) == {"failed-authentication-total": 1}

    @configured(sasl__enabled__mechanisms="SCRAM-SHA-512")
    async def test_mechanisms_may_be_fewer(self, client: RawClient) -> None:
        answer = await handshake(client)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["SCRAM-SHA-512"])

    @pytest.mark.parametrize(
        ("before", "request_"),
        [
            (0, MetadataRequest([])),
            (0, SaslAuthenticateRequest(b"\0alice\0secret")),
            (1, VERSIONS),
            (1, MetadataRequest([])),
            (2, SaslHandshakeRequest("PLAIN")),
            (2, VERSIONS),
            (2, MetadataRequest([])),
        ],
    )
    async def test_a_request_out_of_turn_fails_authentication_and_closes_the_connection(
        self,
        cluster: EmbeddedCluster,
        client: RawClient,
        before: int,
        request_: Any,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """After as many of ApiVersions and SaslHandshake."""
        if before > 0:
            await client.request(VERSIONS, 4)
        if before > 1:
            await handshake(client)
        await client.send(request_, min(request_.MAX_VERSION, 1) if request_ is not VERSIONS else 4)
        assert await client.is_closed()
        assert figures(cluster) == {"failed-authentication-total": 1}
        assert "its client has not authenticated" in caplog.text

    async def test_a_large_request_needs_an_authenticated_client(self, connect: Connect) -> None:
        large = MetadataRequest([MetadataRequestTopic(name="x" * 200) for _ in range(4000)])
        stranger = await connect()
        try:
            await stranger.send(large, 8)
        except ConnectionError:
            pass  # closed while it was still writing
        assert await stranger.is_closed()
        client = await connect()
        await log_in(client)
        assert len((await client.request(large, 8)).topics) == 1


async def test_a_listener_without_sasl_refuses_authentication() -> None:
    async with EmbeddedCluster() as cluster:
        client = await RawClient.connect(cluster.bootstrap_servers)
        assert (await handshake(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert (await token(client, b"")).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert await serves(client)
        await client.close()


@virtual
async def test_a_failure_is_answered_after_the_delay_and_delays_no_other_client(world: World) -> None:
    configs = {**CONFIGS, "connection.failed.authentication.delay.ms": 5000, "num.network.threads": 1}
    loop = asyncio.get_running_loop()
    async with EmbeddedCluster(configs=configs, listen=listen_on_network) as cluster:
        began = loop.time()
        wrong, stranger, right = clients = [await RawClient.connect(cluster.bootstrap_servers) for _ in range(3)]
        refused = asyncio.create_task(log_in(wrong, password="wrong"))
        await stranger.send(MetadataRequest([]), 13)
        closed = asyncio.create_task(stranger.is_closed())
        assert (await log_in(right)).error_code == ErrorCode.NONE
        assert await serves(right)
        assert loop.time() - began < 1
        await asyncio.sleep(3)
        assert not refused.done()
        assert not closed.done()
        assert (await refused).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await wrong.is_closed()
        assert await closed
        assert 5 <= loop.time() - began < 6
        for client in clients:
            await client.close()


@configured(connection__failed__authentication__delay__ms=60_000)
async def test_a_client_that_disconnects_before_its_answer_leaves_nothing_behind(
    cluster: EmbeddedCluster, connect: Connect
) -> None:
    impatient = await connect()
    await handshake(impatient)
    await impatient.send(SaslAuthenticateRequest(b"\0alice\0wrong"), 2)
    while not figures(cluster):  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
    await impatient.close()
    await log_in(await connect())


async def test_failed_logins_are_logged_with_user_and_address(
    cluster: EmbeddedCluster, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    for user in ["alice", "mallory", "a\nb"] * 5:
        client = await connect()
        await handshake(client)
        await client.request(SaslAuthenticateRequest(f"\0{user}\0wrong".encode()), 2)
        await client.close()
    await cluster.close()
    lines = [record.getMessage() for record in caplog.records if "login" in record.getMessage()]
    failed = "on listener SASL_PLAINTEXT failed"
    assert lines[0] == f"a login as 'alice' from 127.0.0.1 {failed}: its authentication by PLAIN failed"
    assert any(line.startswith(r"a login as 'a\\nb' from 127.0.0.1 ") for line in lines)
    assert len(lines) == 11
    assert lines[10].startswith("5 more logins on listener SASL_PLAINTEXT failed in ")
    assert "as 'mallory' from 127.0.0.1 (2)" in lines[10]


async def test_a_silent_client_is_logged_by_address(
    cluster: EmbeddedCluster, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect()
    await client.send(MetadataRequest([]), 13)
    assert await client.is_closed()
    assert "a login from 127.0.0.1 on listener SASL_PLAINTEXT failed: it sent a request of API 3" in caplog.text


def test_a_failure_is_one_whatever_else_was_sent_before_the_client_left() -> None:
    metrics = AuthenticationMetrics()
    authenticator = SaslServerAuthenticator({}, 0, metrics, FailedLogins("SASL_PLAINTEXT"))
    for _ in range(3):
        assert authenticator.admits(ApiKey.METADATA, 1.0) is Admission.UNAUTHENTICATED
    assert dict(metrics.figures(1.0))["failed-authentication-total"] == 1


class TestReauthentication:
    """Of Alice, whose session lasts 10 s."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    async def cluster(self, clock: ManualClock) -> AsyncIterator[EmbeddedCluster]:
        async with EmbeddedCluster(configs={**CONFIGS, "connections.max.reauth.ms": 10_000}, clock=clock) as cluster:
            yield cluster

    @pytest.fixture
    async def client(self, connect: Connect) -> RawClient:
        client = await connect()
        assert (await log_in(client)).session_lifetime_ms == 10_000
        return client

    async def test_within_the_session(self, clock: ManualClock, cluster: EmbeddedCluster, client: RawClient) -> None:
        clock.advance(9)
        assert await serves(client)
        assert (await log_in(client)).session_lifetime_ms == 10_000
        clock.advance(9)
        assert await serves(client)
        counted = figures(cluster)
        assert counted == {"successful-authentication-total": 1, "successful-reauthentication-total": 1}

    async def test_a_session_that_has_ended_is_closed_with_the_next_request(
        self, clock: ManualClock, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        clock.advance(10)
        await client.send(MetadataRequest([]), 13)
        assert await client.is_closed()
        assert figures(cluster)["expired-connections-killed-count"] == 1

    async def test_an_expired_client_may_still_re_authenticate(self, clock: ManualClock, client: RawClient) -> None:
        clock.advance(60)
        assert (await log_in(client)).error_code == ErrorCode.NONE
        assert await serves(client)

    @pytest.mark.parametrize(
        ("user", "password", "message"),
        [("bob", "bob's", "the same user"), ("alice", "wrong", "Invalid username or password")],
    )
    async def test_another_user_cannot_re_authenticate(
        self, clock: ManualClock, cluster: EmbeddedCluster, client: RawClient, user: str, password: str, message: str
    ) -> None:
        clock.advance(2)
        answer = await log_in(client, user, password)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert message in answer.error_message
        assert await client.is_closed()
        assert figures(cluster)["failed-reauthentication-total"] == 1

    async def test_by_another_mechanism(self, clock: ManualClock, client: RawClient) -> None:
        clock.advance(2)
        assert (await handshake(client, "SCRAM-SHA-256")).error_code == ErrorCode.NONE
        answer = await token(client, b"n,,n=alice,r=x")
        assert "the same mechanism as before, PLAIN" in answer.error_message
        assert await client.is_closed()

    async def test_a_request_out_of_turn_fails_reauthentication(
        self, clock: ManualClock, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        clock.advance(2)
        await handshake(client)
        await client.send(MetadataRequest([]), 13)
        assert await client.is_closed()
        counted = figures(cluster)
        assert counted == {"successful-authentication-total": 1, "failed-reauthentication-total": 1}

    async def test_not_more_than_once_a_second(self, clock: ManualClock, client: RawClient) -> None:
        clock.advance(2)
        await log_in(client)
        clock.advance(0.9)
        assert (await handshake(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert (await token(client, b"")).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert await serves(client)


async def test_not_where_sessions_have_no_end(client: RawClient) -> None:
    await log_in(client)
    assert (await handshake(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert await serves(client)


async def test_the_request_log_has_the_user_and_no_secret(client: RawClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "aioproducer.broker.request")
    await log_in(client)
    await serves(client)
    lines = [
        json.loads(record.getMessage().partition(":")[2]) for record in caplog.records if "Completed" in record.msg
    ]
    assert [line["principal"] for line in lines] == ["User:ANONYMOUS", "User:alice", "User:alice"]
    assert {line["securityProtocol"] for line in lines} == {"SASL_PLAINTEXT"}
    assert lines[1]["request"] == {"authBytes": "[hidden]"}
    assert lines[1]["response"]["authBytes"] == "[hidden]"
    assert "planted" not in caplog.text


async def test_quotas_are_the_users(cluster: EmbeddedCluster, connect: Connect) -> None:
    cluster.alter_client_quotas({"user": "bob"}, {"request_percentage": 0.0001})
    throttled = []
    for user, password in (("alice", PASSWORD), ("bob", "bob's")):
        client = await connect()
        await log_in(client, user, password)
        throttled.append(False)
        for _ in range(10):
            answer = await client.request(MetadataRequest([]), 13)
            if answer.throttle_time_ms > 0:  # the next one would wait for this time
                throttled[-1] = True
                break
    assert throttled == [False, True]


class TestConfigs:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"connection.failed.authentication.delay.ms": 600_000},
                "must be less than connections.max.idle.ms, 600000",
            ),
            ({"sasl.enabled.mechanisms": "GSSAPI"}, "a list of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
            ({"listener.name.other.plain.sasl.jaas.config": "X required;"}, "there is no listener OTHER"),
            ({"listener.name.sasl_plaintext.plain.sasl.jaas.config": "X planted"}, "not of the form"),
            ({"listener.name.sasl_plaintext.plain.sasl.jaas.config": 7}, "must be of type password"),
            (
                {"listener.name.sasl_plaintext.plain.sasl.jaas.config": 'X required user_a="planted";'},
                "its login module is X, but PLAIN needs org.apache.kafka",
            ),
            (
                {"listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": 'X required a="planted";'},
                "its login module is X, but SCRAM-SHA-256 needs",
            ),
        ],
    )
    def test_errors_show_no_secret(self, given: dict[str, object], message: str) -> None:
        with pytest.raises(ConfigException, match=message) as refused:
            BrokerConfig.of({**CONFIGS, **given})
        assert "planted" not in str(refused.value)

    def test_no_secret_in_its_repr(self) -> None:
        config = BrokerConfig.of(CONFIGS)
        assert config.plain_users("SASL_PLAINTEXT")["alice"].value == PASSWORD
        assert "planted" not in repr(config)

    async def test_described_configs_have_no_secret(self, client: RawClient) -> None:
        await log_in(client)
        response = await client.request(DescribeConfigsRequest([DescribeConfigsResource(4, "0", None)]), 4)
        assert len(response.results[0].configs) > 40
        assert "planted" not in repr(response)

    @configured(ssl__key__password="planted")
    async def test_a_secret_config_is_marked_sensitive(self, client: RawClient) -> None:
        await log_in(client)
        resource = DescribeConfigsResource(4, "0", ["ssl.key.password"])
        response = await client.request(DescribeConfigsRequest([resource], include_synonyms=True), 4)
        (config,) = response.results[0].configs
        assert (config.value, config.is_sensitive) == (None, True)
        assert [synonym.value for synonym in config.synonyms] == [None]

    async def test_a_listener_that_comes_has_its_own_users_and_mechanisms(self) -> None:
        static = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,MINE:SASL_PLAINTEXT"}
        users = CONFIGS["listener.name.sasl_plaintext.plain.sasl.jaas.config"]
        async with EmbeddedCluster(configs=static) as cluster:
            configs = {
                "listeners": ["PLAINTEXT://:0", "MINE://:0"],
                "listener.name.mine.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.mine.plain.sasl.jaas.config": Password(str(users)),
            }
            cluster.alter_broker_configs(configs, node_id=0)
            await cluster.listeners_changed()
            host, port = cluster.listener(0, "MINE")
            client = await RawClient.connect(f"{host}:{port}")
            assert (await handshake(client)).mechanisms == ["PLAIN"]
            assert (await token(client, f"\0alice\0{PASSWORD}".encode())).error_code == ErrorCode.NONE
            with pytest.raises(InvalidRequestException, match=r"its sasl\.jaas\.config cannot change") as refused:
                cluster.alter_broker_configs({"listener.name.mine.plain.sasl.jaas.config": None}, node_id=0)
            assert "planted" not in str(refused.value)
            await client.close()
