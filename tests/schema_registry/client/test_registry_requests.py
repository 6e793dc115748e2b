"""Requests: URLs in turn, retries, bounds, authentication, TLS; and what is said when they fail."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioproducer.schema_registry import (
    SchemaNotFoundException,
    SchemaRegistryAuthenticationException,
    SchemaRegistryClient,
    SchemaRegistryException,
    SchemaRegistryUnavailableException,
)
from aioproducer.security.oauth.http import LARGEST_ANSWER
from tests.support.schema_registry.fake_registry import Answer, FakeRegistry, fake_registry
from tests.support.security.certificates import Certificates, make_certificates
from tests.support.security.identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider, identity_provider

NOBODY = "http://127.0.0.1:1"
SECRET = "planted"


def client(*urls: str, **more: Any) -> SchemaRegistryClient:
    return SchemaRegistryClient(urls, **{"max_retries": 2, "retries_wait_ms": 1, "retries_max_wait_ms": 1, **more})


def times(count: int, answer: Answer) -> Callable[[str, str], Answer | None]:
    """Fails so often, and then no more."""
    left = [count]

    def failing(method: str, path: str) -> Answer | None:
        left[0] -= 1
        return answer if left[0] >= 0 else None

    return failing


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_passing_failure_is_tried_again(fake: FakeRegistry, status: int) -> None:
    fake.failing = times(2, (status, {"error_code": 50001, "message": "not now"}))
    assert await client(fake.url).get_subjects() == []
    assert len(fake.requests) == 3


async def test_after_all_retries_it_is_unavailable(fake: FakeRegistry, caplog: pytest.LogCaptureFixture) -> None:
    fake.failing = lambda method, path: (503, {"error_code": 50003, "message": "no leader\x1b[2J"})
    with pytest.raises(SchemaRegistryUnavailableException) as failed:
        await client(fake.url).get_subjects()
    said = str(failed.value)
    assert "GET /subjects failed 3 times" in said
    assert f"{fake.url} answered HTTP status 503, no leader\\x1b[2J" in said
    assert failed.value.retriable
    assert len(fake.requests) == 3
    (record,) = (record for record in caplog.records if record.levelno == logging.WARNING)
    assert record.kafka == {"event": "schema_registry_unavailable"}  # type: ignore[attr-defined]


async def test_an_unreachable_registry_is_named() -> None:
    with pytest.raises(SchemaRegistryUnavailableException, match="1/subjects cannot be asked"):
        await client(NOBODY).get_subjects()


async def test_the_next_url_is_asked_at_once_and_first_from_then_on(fake: FakeRegistry) -> None:
    registry = client(NOBODY, fake.url, max_retries=0)
    assert await registry.get_subjects() == []
    fake.failing = times(1, (503, b""))
    with pytest.raises(SchemaRegistryUnavailableException) as failed:
        await registry.get_subjects()
    assert str(failed.value).index(fake.url) < str(failed.value).index(NOBODY)


async def test_a_refusal_is_not_asked_of_another(fake: FakeRegistry) -> None:
    with fake_registry() as other:
        with pytest.raises(SchemaNotFoundException):
            await client(fake.url, other.url).get_schema(5)
        assert other.requests == []


@asynccontextmanager
async def server(handle: Callable[[asyncio.StreamWriter], Awaitable[object]]) -> AsyncIterator[str]:
    """The URL of a server for one connection, which is closed at the end."""
    ended = asyncio.Event()

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reading = asyncio.create_task(reader.read())  # until the client has hung up
        serving = asyncio.ensure_future(handle(writer))
        await asyncio.wait([reading])
        serving.cancel()
        await asyncio.wait([serving])
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        ended.set()

    async with await asyncio.start_server(run, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        await ended.wait()


async def test_a_registry_that_is_silent_is_given_up() -> None:
    async with server(lambda writer: asyncio.sleep(3600)) as url:
        with pytest.raises(SchemaRegistryUnavailableException, match=url):
            await client(url, max_retries=0, http_read_timeout_ms=50).get_subjects()


async def test_a_registry_that_trickles_is_given_up() -> None:
    """Each byte comes in time, and the answer never."""

    async def trickle(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with server(trickle) as url:
        with pytest.raises(SchemaRegistryUnavailableException, match=r"did not answer within 0\.2 s"):
            await client(url, max_retries=0, http_read_timeout_ms=100, http_connect_timeout_ms=100).get_subjects()


async def test_an_answer_is_bounded(fake: FakeRegistry) -> None:
    fake.failing = lambda method, path: (200, b"[" + b" " * LARGEST_ANSWER + b"]")
    with pytest.raises(SchemaRegistryUnavailableException, match=f"more than {LARGEST_ANSWER} bytes"):
        await client(fake.url, max_retries=0).get_subjects()


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b"\xff"])
async def test_an_answer_that_is_no_json(fake: FakeRegistry, body: bytes) -> None:
    fake.failing = lambda method, path: (200, body)
    with pytest.raises(SchemaRegistryException, match="no JSON: is it the URL of a schema registry"):
        await client(fake.url).get_subjects()


@pytest.mark.parametrize("answer", [{}, {"id": "1"}, {"id": -1}, {"id": True}, {"id": 2**31}, [], "1", None])
async def test_an_answer_that_says_nothing(fake: FakeRegistry, answer: Any) -> None:
    from aioproducer.schema_registry import Schema

    fake.failing = lambda method, path: (200, answer)
    registry = client(fake.url)
    with pytest.raises(SchemaRegistryException, match="the schema registry answered"):
        await registry.register_schema("s", Schema('"int"'))
    with pytest.raises(SchemaRegistryException, match="the schema registry answered"):
        await registry.get_schema(1)
    with pytest.raises(SchemaRegistryException, match="the schema registry answered"):
        await registry.get_latest_version("s")


async def test_a_wrong_path_is_no_missing_schema(fake: FakeRegistry) -> None:
    with pytest.raises(SchemaRegistryException, match="404") as failed:
        await client(f"{fake.url}/apis").get_subjects()
    assert type(failed.value) is SchemaRegistryException


async def test_no_redirect_is_followed(fake: FakeRegistry) -> None:
    fake.failing = lambda method, path: (302, b"")
    with pytest.raises(SchemaRegistryException, match="302"):
        await client(fake.url).get_subjects()


async def test_cancelling_ends_the_wait_for_a_retry() -> None:
    task = asyncio.create_task(client(NOBODY, retries_wait_ms=3_600_000, retries_max_wait_ms=3_600_000).get_subjects())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def everything(error: BaseException, caplog: pytest.LogCaptureFixture) -> str:
    shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=False).format())
    return f"{shown} {error!r} {error.__dict__} {caplog.text}"


class TestCredentials:
    async def test_basic(self, fake: FakeRegistry) -> None:
        fake.authorization = "Basic dXNlcjpwbGFudGVk"
        assert await client(fake.url, basic_auth_user_info="user:planted").get_subjects() == []
        assert await client(fake.url.replace("//", "//user:planted@")).get_subjects() == []

    async def test_bearer_in_confluent_cloud(self, fake: FakeRegistry) -> None:
        fake.authorization = "Bearer planted"
        registry = client(
            fake.url,
            bearer_auth_token="planted",
            bearer_auth_logical_cluster="lsrc-1",
            bearer_auth_identity_pool_id="pool-1",
        )
        assert await registry.get_subjects() == []
        headers = fake.requests[0][2]
        assert (headers["target-sr-cluster"], headers["confluent-identity-pool-id"]) == ("lsrc-1", "pool-1")

    @pytest.mark.parametrize(
        "wrong", [{}, {"basic_auth_user_info": "user:planted"}, {"bearer_auth_token": "planted-token"}]
    )
    async def test_wrong_ones_are_said_once_and_no_secret(
        self, fake: FakeRegistry, wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        fake.authorization = "Basic nobody"
        caplog.set_level(logging.DEBUG)
        with pytest.raises(SchemaRegistryAuthenticationException, match="HTTP status 401") as failed:
            await client(fake.url, **wrong).get_subjects()
        assert failed.value.status == 401
        assert len(fake.requests) == 1
        assert "planted" not in everything(failed.value, caplog)
        assert "dXNlcjpwbGFudGVk" not in everything(failed.value, caplog)

    async def test_no_secret_when_nobody_is_there(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        with pytest.raises(SchemaRegistryUnavailableException) as failed:
            await client(f"http://user:{SECRET}@127.0.0.1:1").get_subjects()
        assert SECRET not in everything(failed.value, caplog)

    async def test_a_provider_of_ones_own_is_asked_again_when_its_token_is_refused(self, fake: FakeRegistry) -> None:
        tokens = iter(["old", "new"])
        fake.authorization = "Bearer new"
        assert await client(fake.url, bearer_auth_token_provider=lambda: next(tokens)).get_subjects() == []
        assert len(fake.requests) == 2

    async def test_a_token_that_stays_refused_is_refused(self, fake: FakeRegistry) -> None:
        fake.authorization = "Bearer other"
        with pytest.raises(SchemaRegistryAuthenticationException):
            await client(fake.url, bearer_auth_token_provider=lambda: "same").get_subjects()
        assert len(fake.requests) == 2

    async def test_a_provider_that_fails_is_tried_again_and_told(self, fake: FakeRegistry) -> None:
        def token() -> str:
            raise OSError("the vault is shut")

        with pytest.raises(SchemaRegistryUnavailableException, match="the vault is shut"):
            await client(fake.url, bearer_auth_token_provider=token).get_subjects()
        assert fake.requests == []


class TestOAuth:
    @pytest.fixture
    def provider(self) -> Iterator[IdentityProvider]:
        with identity_provider() as provider:
            yield provider

    def client(self, fake: FakeRegistry, provider: IdentityProvider, **more: Any) -> SchemaRegistryClient:
        issuer = {
            "bearer_auth_issuer_endpoint_url": provider.token_url,
            "bearer_auth_client_id": CLIENT_ID,
            "bearer_auth_client_secret": CLIENT_SECRET,
            "bearer_auth_scope": "read",
        }
        return client(fake.url, **{**issuer, **more})

    async def test_a_token_serves_many_requests_until_it_is_refused(
        self, fake: FakeRegistry, provider: IdentityProvider
    ) -> None:
        registry = self.client(fake, provider)
        await asyncio.gather(*(registry.get_subjects() for _ in range(5)))
        assert [form["scope"] for form in provider.requests] == ["read"]
        assert {headers["authorization"][:10] for _, _, headers, _ in fake.requests} == {"Bearer eyJ"}
        fake.failing = times(1, (401, {"error_code": 401, "message": "expired"}))
        assert await registry.get_subjects() == []
        assert len(provider.requests) == 2

    async def test_a_token_that_is_about_to_expire_is_renewed(
        self, fake: FakeRegistry, provider: IdentityProvider
    ) -> None:
        provider.lifetime = 0.5
        registry = self.client(fake, provider)
        for _ in range(3):
            assert await registry.get_subjects() == []
            await asyncio.sleep(0.5)
        assert len(provider.requests) == 3

    async def test_a_wrong_secret(
        self, fake: FakeRegistry, provider: IdentityProvider, caplog: pytest.LogCaptureFixture
    ) -> None:
        with pytest.raises(SchemaRegistryAuthenticationException, match="gave no token for client 'alice'") as failed:
            await self.client(fake, provider, bearer_auth_client_secret=SECRET).get_subjects()
        assert SECRET not in everything(failed.value, caplog)
        assert fake.requests == []

    async def test_a_provider_that_is_down(self, fake: FakeRegistry) -> None:
        down = {"bearer_auth_issuer_endpoint_url": "http://127.0.0.1:1/token", "bearer_auth_client_id": "a"}
        with pytest.raises(SchemaRegistryUnavailableException, match="the identity provider http://127"):
            await client(fake.url, **down, bearer_auth_client_secret="planted").get_subjects()
        assert fake.requests == []


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


class TestTls:
    @pytest.fixture
    def secure(self, certificates: Certificates) -> Iterator[FakeRegistry]:
        """Only clients with a certificate may ask."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.broker)
        context.load_verify_locations(certificates.authority)
        context.verify_mode = ssl.CERT_REQUIRED
        with fake_registry(context) as secure:
            yield secure

    async def test_mutual(self, secure: FakeRegistry, certificates: Certificates) -> None:
        stores = {
            "ssl_truststore_location": str(certificates.authority),
            "ssl_keystore_location": str(certificates.client),
        }
        assert await client(secure.url, **stores).get_subjects() == []

    @pytest.mark.parametrize("own", ["stranger", None])
    async def test_a_client_that_is_not_trusted(
        self, secure: FakeRegistry, certificates: Certificates, own: str | None
    ) -> None:
        stores = {"ssl_truststore_location": str(certificates.authority)}
        if own is not None:
            stores["ssl_keystore_location"] = str(getattr(certificates, own))
        with pytest.raises(SchemaRegistryUnavailableException, match=secure.url):
            await client(secure.url, max_retries=0, **stores).get_subjects()
        assert secure.requests == []

    async def test_a_registry_that_is_not_trusted(self, secure: FakeRegistry, certificates: Certificates) -> None:
        stores = {
            "ssl_truststore_location": str(certificates.other_authority),
            "ssl_keystore_location": str(certificates.client),
        }
        with pytest.raises(SchemaRegistryUnavailableException, match="certificate verify failed"):
            await client(secure.url, max_retries=0, **stores).get_subjects()


def test_any_loop_and_any_thread(fake: FakeRegistry) -> None:
    registry = client(fake.url)

    def ask() -> None:
        assert asyncio.run(registry.get_subjects()) == []

    ask()
    ask()
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert len(fake.requests) == 3


def test_a_registration_has_its_method_path_and_body(fake: FakeRegistry, tmp_path: Path) -> None:
    from aioproducer.schema_registry import Schema, SchemaReference

    schema = Schema("{}", "JSON", (SchemaReference("a.json", "a", 1),))
    asyncio.run(client(fake.url).register_schema("a/b c", schema, normalize=True))
    ((method, path, headers, body),) = fake.requests
    assert (method, path) == ("POST", "/subjects/a%2Fb%20c/versions?normalize=true")
    assert headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    assert body == {
        "schema": "{}",
        "schemaType": "JSON",
        "references": [{"name": "a.json", "subject": "a", "version": 1}],
    }
    assert json.dumps(body)
