"""The blocks of docs/oauth.md run: recipes with the cloud's own library where it is installed, else with a stand-in.

No cloud is asked: what a recipe returns is sent to an embedded broker.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import importlib.util
import json
import re
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from aioproducer import KafkaProducer, OAuthBearerToken
from aioproducer.broker import EmbeddedCluster
from aioproducer.security.oauth.claims import unverified_claims
from tests.broker.raw_clients.oauth import oauth_cluster
from tests.broker.raw_clients.sasl import figures
from tests.support.security.identity_provider import IdentityProvider, identity_provider

pytest.importorskip("httpx", reason="httpx is not installed")

BLOCKS = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "oauth.md").read_text(), re.DOTALL)


def block(words: str) -> str:
    (found,) = (block for block in BLOCKS if words in block)
    return str(found)


def run(words: str, **names: Any) -> dict[str, Any]:
    given = {"KafkaProducer": KafkaProducer, "OAuthBearerToken": OAuthBearerToken, "UTC": UTC, "time": time, **names}
    exec(block(words), given)
    return given


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


def module(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    """A stand-in for a module and for the packages that it is in."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        whole = ".".join(parts[:length])
        if whole not in sys.modules:
            made: Any = ModuleType(whole)
            made.__path__ = []
            monkeypatch.setitem(sys.modules, whole, made)
        if length > 1:
            parent, own = sys.modules[".".join(parts[: length - 1])], sys.modules[whole]
            monkeypatch.setattr(parent, parts[length - 1], own, raising=False)
    for attribute, value in contents.items():
        monkeypatch.setattr(sys.modules[name], attribute, value, raising=False)


async def believed(cluster: EmbeddedCluster, provider: Any) -> None:
    async with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=provider,
    ) as producer:
        _ = await producer.send("t", b"value")
    assert figures(cluster)["successful-authentication-total"] >= 1


def test_an_identity_provider() -> None:
    found = run("token_endpoint_url", password="planted")["producer"].config
    assert found.credentials.source.client_id == "orders"


async def test_code_of_ones_own(provider: IdentityProvider) -> None:
    async def ask_my_vault() -> tuple[str, float]:
        return provider.token(), 60

    token = run("ask_my_vault", ask_my_vault=ask_my_vault)["token"]
    async with oauth_cluster(provider) as cluster:
        await believed(cluster, token)


def test_msk(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("aws_msk_iam_sasl_signer") is None:

        def generate_auth_token(region: str) -> tuple[str, int]:
            url = f"https://kafka.{region}.amazonaws.com/?Action=kafka-cluster%3AConnect"
            return base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode(), int((time.time() + 900) * 1000)

        signer = SimpleNamespace(generate_auth_token=generate_auth_token)
        module(monkeypatch, "aws_msk_iam_sasl_signer", MSKAuthTokenProvider=signer)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "planted")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted")
    token = run("aws_msk_iam_sasl_signer")["msk_token"]()
    url = base64.urlsafe_b64decode(token.value + "=" * (-len(token.value) % 4)).decode()
    assert url.startswith("https://kafka.eu-central-1.amazonaws.com/?Action=kafka-cluster%3AConnect")
    assert 0 < token.expires_at - time.time() <= 900


async def test_azure(monkeypatch: pytest.MonkeyPatch, provider: IdentityProvider) -> None:
    asked = []

    def get_token(scope: str) -> Any:
        asked.append(scope)
        return SimpleNamespace(token=provider.token(), expires_on=int(time.time()) + 3600)

    credential = SimpleNamespace(get_token=get_token)
    module(monkeypatch, "azure.identity", DefaultAzureCredential=lambda: credential)
    token = run("DefaultAzureCredential")["azure_token"]
    async with oauth_cluster(provider) as cluster:
        await believed(cluster, token)
    assert set(asked) == {"https://my-namespace.servicebus.windows.net/.default"}


def test_google(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker is Google's own: what it gets has the form that it documents."""

    class Credentials:
        token = ""
        expiry = datetime.min
        service_account_email = "producer@project.iam.gserviceaccount.com"

        def refresh(self, request: object) -> None:
            self.token = "ya29.planted"
            self.expiry = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=1)

    module(monkeypatch, "google.auth.transport.requests", Request=object)
    module(monkeypatch, "google.auth", default=lambda scopes: (Credentials(), "project"))
    token = run("google.auth")["google_token"]()
    header, claims, access = (base64.urlsafe_b64decode(part + "==") for part in token.value.split("."))
    assert json.loads(header)["alg"] == "GOOG_OAUTH2_TOKEN"
    assert json.loads(claims)["sub"] == token.principal == Credentials.service_account_email
    assert access == b"ya29.planted"
    assert unverified_claims(token.value)["exp"] == token.expires_at
    assert token.expires_at == pytest.approx(time.time() + 3600, abs=60)


async def test_unsecured_tokens() -> None:
    code = compile(block("unsecuredLoginStringClaim_sub"), "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names: dict[str, Any] = {"KafkaProducer": KafkaProducer, "EmbeddedCluster": EmbeddedCluster}
    async with asyncio.timeout(30):
        await eval(code, names)
    assert [record.value for record in names["cluster"].log("orders").records()] == [b"value"]
