"""Clients that authenticate by tokens, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
import traceback
from typing import Any

import pytest

from aioproducer import OAuthBearerToken
from aioproducer.errors import SaslAuthenticationException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from aioproducer.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.net.test_client import Watched, ask
from tests.security.oauth.test_token import a_jwt
from tests.support.scripted_broker import Exchange, ScriptedBroker, ScriptedCluster
from tests.support.virtual_time import World, virtual

REFUSAL = b'{"status":"invalid_token"}'


class TokenListener:
    """A broker's side; it believes tokens whose number is in ``believed``, or all."""

    def __init__(self, broker: ScriptedBroker, *, session_ms: int = 0) -> None:
        self.believed: set[bytes] | None = None
        self.session_ms = session_ms
        self.seen: list[bytes] = []
        broker.always(ApiKey.SASL_HANDSHAKE, self.handshake)
        broker.always(ApiKey.SASL_AUTHENTICATE, self.authenticate)

    async def handshake(self, exchange: Exchange) -> None:
        exchange.reply(SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]))

    async def authenticate(self, exchange: Exchange) -> None:
        request = exchange.request
        assert isinstance(request, SaslAuthenticateRequest)
        said = bytes(request.auth_bytes)
        if said == b"\1":
            exchange.reply(SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSAL.decode()))
            return
        self.seen.append(said)
        believed = self.believed is None or any(b"Bearer " + token + b"\1" in said for token in self.believed)
        exchange.reply(
            SaslAuthenticateResponse(auth_bytes=b"" if believed else REFUSAL, session_lifetime_ms=self.session_ms)
        )


def client_of(cluster: ScriptedCluster, provider: Any, **config: Any) -> Watched:
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauth.token.provider": provider,
        "sasl.login.refresh.buffer.seconds": 0,
        "sasl.login.refresh.min.period.seconds": 0,
    }
    return Watched(cluster.bootstrap_servers, **given, **config)


def numbered(lifetime: float) -> Any:
    """A provider of token1, token2, …"""
    numbers = itertools.count(1)

    async def provider() -> OAuthBearerToken:
        return OAuthBearerToken(f"token{next(numbers)}", time.time() + lifetime, "alice")

    return provider


@virtual
async def test_a_refused_token_is_an_error_that_names_it(world: World, caplog: pytest.LogCaptureFixture) -> None:
    issued = a_jwt({"iss": "https://a/b", "aud": "kafka", "sub": "alice", "exp": time.time() + 1000})

    async def provider() -> str:
        return issued

    async with ScriptedCluster(1) as cluster:
        TokenListener(cluster.broker).believed = set()
        watched = client_of(cluster, provider)
        with pytest.raises(SaslAuthenticationException) as refused:
            await watched.refusal()
        error = refused.value
        assert "did not accept the token of 'alice' (issuer 'https://a/b', audience 'kafka', expires 20" in str(error)
        assert 'by OAUTHBEARER: {"status":"invalid_token"}; see sasl.mechanism' in str(error)
        await watched.stop()
    shown = "".join(traceback.format_exception(error)) + caplog.text
    assert "planted" not in shown
    assert issued not in shown


@virtual
async def test_a_provider_is_waited_for_before_a_broker_is_connected(world: World) -> None:
    async def provider() -> OAuthBearerToken:
        await asyncio.sleep(15)  # longer than socket.connection.setup.timeout.ms
        return OAuthBearerToken("token1", time.time() + 1000)

    async with ScriptedCluster(2) as cluster:
        for broker in cluster.brokers:
            TokenListener(broker)
        watched = client_of(cluster, provider)
        await asyncio.sleep(14)
        assert world.attempts == 0
        async with asyncio.timeout(2):
            await watched.metadata()
        await ask(watched.client)
        await watched.stop()


@virtual
async def test_a_provider_that_is_down_is_why_no_broker_is_reached(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[float] = []
    down = True

    async def provider() -> OAuthBearerToken:
        calls.append(asyncio.get_running_loop().time())
        if down:
            raise OSError("nobody home")
        return OAuthBearerToken("token1", time.time() + 1000)

    async with ScriptedCluster(1) as cluster:
        TokenListener(cluster.broker)
        watched = client_of(cluster, provider)
        await asyncio.sleep(300)
        assert "the token provider failed (OSError: nobody home)" in watched.client.unreachable()
        assert 20 < len(calls) < 80  # at most every ten seconds, in the end
        assert world.attempts == 0
        down = False
        async with asyncio.timeout(15):
            await watched.metadata()
        assert watched.client.unreachable() == ""
        await watched.stop()
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1


@virtual
async def test_each_session_begins_with_a_token_that_lasts(world: World) -> None:
    """Sessions are as long as the tokens, as brokers have it. No connection is lost, and none waits."""
    async with ScriptedCluster(1) as cluster:
        listener = TokenListener(cluster.broker, session_ms=60_000)
        watched = client_of(cluster, numbered(60))
        await watched.metadata()
        await ask(watched.client, 0)
        connected = world.attempts
        for _ in range(600):
            await ask(watched.client, 0)
            await asyncio.sleep(1)
        assert world.attempts == connected
        tokens = [said.partition(b"Bearer ")[2].strip(b"\1") for said in listener.seen]
        assert len(set(tokens)) >= 10
        assert len(tokens) - len(set(tokens)) <= 1  # the bootstrap connection and the broker's share the first
        await watched.stop()


@virtual
async def test_a_refused_token_is_replaced(world: World) -> None:
    async with ScriptedCluster(1) as cluster:
        listener = TokenListener(cluster.broker)
        listener.believed = {b"token3"}
        watched = client_of(cluster, numbered(1000))
        async with asyncio.timeout(10):
            await watched.metadata()
        tokens = [said.partition(b"Bearer ")[2].strip(b"\1") for said in listener.seen]
        assert tokens[:3] == [b"token1", b"token2", b"token3"]
        await watched.stop()


@virtual
async def test_requests_go_out_while_a_provider_is_waited_for(world: World) -> None:
    """Nobody knows how long these tokens are valid, so each session needs another one."""
    numbers = itertools.count(1)

    async def provider() -> OAuthBearerToken:
        await asyncio.sleep(3)
        return OAuthBearerToken(f"token{next(numbers)}")

    async with ScriptedCluster(1) as cluster:
        listener = TokenListener(cluster.broker, session_ms=60_000)
        watched = client_of(cluster, provider)
        await watched.metadata()
        await ask(watched.client, 0)
        loop, slowest = asyncio.get_running_loop(), 0.0
        for _ in range(3000):
            began = loop.time()
            await ask(watched.client, 0)
            slowest = max(slowest, loop.time() - began)
            await asyncio.sleep(0.1)
        assert slowest < 1
        assert len(set(listener.seen)) == len(listener.seen) >= 6
        await watched.stop()


@virtual
async def test_a_provider_that_fails_when_a_session_is_renewed(world: World) -> None:
    """The connection ends with the reason, and the next one is made when there is a token again."""
    calls = 0

    async def provider() -> OAuthBearerToken:
        nonlocal calls
        calls += 1
        if 3 <= calls <= 5:
            raise OSError("nobody home")
        return OAuthBearerToken(f"token{calls}")

    async with ScriptedCluster(1) as cluster:
        TokenListener(cluster.broker, session_ms=60_000)
        watched = client_of(cluster, provider)
        await watched.metadata()
        await ask(watched.client, 0)
        await asyncio.sleep(120)
        await ask(watched.client, 0)
        assert calls > 5
        await watched.stop()
