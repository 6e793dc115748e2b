from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioproducer.broker.security import jwks as module
from aioproducer.broker.security.jwks import Jwks, jwks, parse_jwks
from aioproducer.errors import ConfigException
from tests.support.polling import eventually
from tests.support.security.identity_provider import KEY, IdentityProvider, SigningKey, identity_provider

pytest.importorskip("httpx", reason="httpx is not installed")

OTHER = SigningKey("key-2")


def text(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


@asynccontextmanager
async def started(url: str, refresh_ms: int = 3_600_000) -> AsyncIterator[Jwks]:
    keys = jwks(url, refresh_ms, 10, 20)
    await keys.start()
    try:
        yield keys
    finally:
        await keys.close()


def test_keys_that_are_not_for_signatures_are_left_out() -> None:
    encrypting, secret = {**OTHER.jwk, "use": "enc"}, {"kty": "oct", "k": "c2VjcmV0", "kid": "s"}
    broken, strange = {"kty": "RSA", "kid": "b"}, {"kty": ["RSA"], "alg": 7}
    (key,) = parse_jwks(text(encrypting, secret, broken, strange, KEY.jwk))
    assert (key.kid, key.algorithms) == ("key-1", ("RS256",))
    (any_algorithm,) = parse_jwks(text({name: value for name, value in KEY.jwk.items() if name != "alg"}))
    assert "RS512" in any_algorithm.algorithms
    assert "HS256" not in any_algorithm.algorithms


@pytest.mark.parametrize(
    "content", [b"", b"no json", b"[]", b'{"keys": 7}', b'{"keys": [7]}', b'{"keys": []}', b"[" * 100_000, b"\xff"]
)
def test_a_file_that_is_no_jwks_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(content)
    with pytest.raises(ConfigException, match=r"jwks\.json is no JWKS"):
        jwks(file.as_uri(), 1, 1, 1)


@pytest.mark.parametrize("url", ["", "x", "ftp://x", "https://", "http://[x", "https://x:y", "file:///none.json"])
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ConfigException, match=r"not of the form|cannot be read"):
        jwks(url, 1, 1, 1)


async def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(text(KEY.jwk))
    async with started(file.as_uri()) as keys:
        assert [key.kid for key in keys.candidates("key-1", "RS256")] == ["key-1"]
        assert keys.candidates("key-1", "ES256") == keys.candidates("key-2", "RS256") == []


async def test_a_key_that_is_new_is_requested(provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXPEDITED", 0.01)
    async with started(provider.jwks_url) as keys:
        assert keys.candidates("key-1", "RS256")
        provider.keys = [OTHER, KEY]
        assert provider.jwks_requests == 1
        await eventually(lambda: keys.candidates("key-2", "RS256"), timeout=30, every=0.01)


async def test_unknown_keys_cause_few_requests(provider: IdentityProvider) -> None:
    async with started(provider.jwks_url) as keys:
        for number in range(1000):
            assert keys.candidates(f"none-{number}", "RS256") == []
            await asyncio.sleep(0)
        assert provider.jwks_requests == 1


async def test_keys_are_refreshed(provider: IdentityProvider) -> None:
    async with started(provider.jwks_url, 10) as keys:
        provider.keys = [OTHER]
        await eventually(lambda: not keys.candidates("key-1", "RS256"), timeout=30, every=0.01)
        assert keys.candidates("key-2", "RS256")


async def test_a_provider_that_is_down(provider: IdentityProvider, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "aioproducer")
    answer = provider.jwks
    provider.jwks = lambda: (503, b"")  # type: ignore[method-assign]
    async with started(provider.jwks_url, 10) as keys:
        assert keys.candidates("key-1", "RS256") == []
        provider.jwks = answer  # type: ignore[method-assign]
        await eventually(lambda: keys.candidates("key-1", "RS256"), timeout=30, every=0.01)
        provider.jwks = lambda: (200, b"garbage")  # type: ignore[method-assign]
        await eventually(lambda: "is no JWKS" in caplog.text, timeout=30, every=0.01)
        assert keys.candidates("key-1", "RS256"), "the keys that are there stay"
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("aioproducer")]
    assert lines[0].endswith("answered with HTTP status 503; 0 are known; trying again")
    assert lines[1].startswith("the keys of tokens were received from http://127.0.0.1:")
