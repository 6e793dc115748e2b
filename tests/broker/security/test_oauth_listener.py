"""A listener whose clients authenticate with tokens."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.errors import ConfigException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.security.jaas import OAUTHBEARER_LOGIN_MODULE
from tests.broker.raw_clients.raw_client import Connect, RawClient
from tests.broker.raw_clients.sasl import figures, handshake, token
from tests.support.security.identity_provider import AUDIENCE, ISSUER, KEY, claims

pytest.importorskip("jwt", reason="PyJWT is not installed")

URL = "sasl.oauthbearer.jwks.endpoint.url"
JAAS = "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"
LISTENER = {
    "listeners": "SASL_PLAINTEXT://:0",
    "inter.broker.listener.name": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "connection.failed.authentication.delay.ms": 1,
}


@pytest.fixture
def jwks_file(tmp_path: Path) -> str:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [KEY.jwk]}))
    return file.as_uri()


@pytest.fixture
async def cluster(request: pytest.FixtureRequest, jwks_file: str) -> AsyncIterator[EmbeddedCluster]:
    expected = {"sasl.oauthbearer.expected.issuer": ISSUER, "sasl.oauthbearer.expected.audience": AUDIENCE}
    configs = {**LISTENER, URL: jwks_file, **expected, **getattr(request, "param", {})}
    async with EmbeddedCluster(configs=configs) as cluster:
        yield cluster


def configured(**configs: object) -> pytest.MarkDecorator:
    given = {name.replace("__", "."): value for name, value in configs.items()}
    return pytest.mark.parametrize("cluster", [given], indirect=True)


async def log_in(client: RawClient, signed: str) -> Any:
    await handshake(client, "OAUTHBEARER")
    return await token(client, f"n,,\1auth=Bearer {signed}\1\1".encode())


async def serves(client: RawClient) -> bool:
    return bool((await client.request(MetadataRequest([]), 13)).brokers)


async def test_a_session_lasts_as_long_as_its_token(cluster: EmbeddedCluster, client: RawClient) -> None:
    answer = await log_in(client, KEY.sign(claims(100)))
    assert answer.error_code == ErrorCode.NONE
    assert answer.auth_bytes == b""
    assert 40_000 < answer.session_lifetime_ms <= 100_000
    assert await serves(client)


@configured(connections__max__reauth__ms=30_000)
async def test_or_as_long_as_sessions_may_be(cluster: EmbeddedCluster, client: RawClient) -> None:
    assert (await log_in(client, KEY.sign(claims(100)))).session_lifetime_ms == 30_000


async def test_a_refused_token(cluster: EmbeddedCluster, client: RawClient, caplog: pytest.LogCaptureFixture) -> None:
    answer = await log_in(client, KEY.sign(claims(iss="x\n")))
    assert (answer.error_code, answer.auth_bytes) == (ErrorCode.NONE, b'{"status":"invalid_token"}')
    answer = await token(client, b"\1")
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        '{"status":"invalid_token"}',
    )
    assert await client.is_closed()
    assert figures(cluster) == {"failed-authentication-total": 1}
    (line,) = [line for line in caplog.messages if line.startswith("a login as 'alice' from 127.0.0.1")]
    assert line.endswith("failed: its issuer is not the expected one (sasl.oauthbearer.expected.issuer)")


@configured(connections__max__reauth__ms=30_000)
async def test_another_principal_cannot_take_a_connection_over(cluster: EmbeddedCluster, client: RawClient) -> None:
    await log_in(client, KEY.sign(claims(100)))
    answer = await log_in(client, KEY.sign(claims(100, sub="mallory")))
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "the same user" in answer.error_message


async def test_reauthentication_begins_a_new_session(cluster: EmbeddedCluster, client: RawClient) -> None:
    await log_in(client, KEY.sign(claims(100)))
    assert (await log_in(client, KEY.sign(claims(1000)))).session_lifetime_ms > 100_000
    assert await serves(client)
    assert figures(cluster) == {"successful-authentication-total": 1, "successful-reauthentication-total": 1}


@configured(**{"listener.name.sasl_plaintext.sasl.oauthbearer.sub.claim.name": "azp"})
async def test_a_listener_has_configs_of_its_own(cluster: EmbeddedCluster, connect: Connect) -> None:
    answer = await log_in(await connect(), KEY.sign(claims(100, azp="app")))
    assert (answer.error_code, answer.auth_bytes) == (ErrorCode.NONE, b"")
    assert (await log_in(await connect(), KEY.sign(claims(100)))).auth_bytes == b'{"status":"invalid_token"}'


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "is missing: listener SASL_PLAINTEXT needs it for OAUTHBEARER"),
        ({URL: "ftp://x"}, "not of the form"),
        ({URL: "file:///none.json"}, "none.json cannot be read"),
        (
            {JAAS: f'{OAUTHBEARER_LOGIN_MODULE} required unsecuredValidatorX="planted";'},
            "unknown option unsecuredValidatorX",
        ),
    ],
)
async def test_a_listener_that_cannot_be(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigException, match=message) as refused:
        async with EmbeddedCluster(configs={**LISTENER, **given}):
            pass
    assert "planted" not in str(refused.value)


def test_no_secret_of_its_jaas_config_is_kept() -> None:
    jaas = f'{OAUTHBEARER_LOGIN_MODULE} required clientSecret="planted";'
    config = BrokerConfig.of({**LISTENER, JAAS: jaas})
    assert config.token_options("SASL_PLAINTEXT") == {}
    assert "planted" not in repr(config)


def test_passwords_alone_are_the_default() -> None:
    """A token means something only if the broker knows whom to believe."""
    assert "OAUTHBEARER" not in BrokerConfig.of({}).sasl_enabled_mechanisms


async def test_unsecured_tokens_are_logged_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    async with EmbeddedCluster(configs={**LISTENER, JAAS: f"{OAUTHBEARER_LOGIN_MODULE} required;"}):
        assert "listener SASL_PLAINTEXT accepts unsigned tokens" in caplog.text
