from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aioproducer import OAuthBearerToken
from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import AuthenticationException, SaslAuthenticationException, TokenUnavailableException
from aioproducer.security.oauth import http
from aioproducer.security.oauth.java_classes import JWT_BEARER
from aioproducer.security.oauth.retrieval import retrieval
from aioproducer.security.oauth.settings import OAuthSettings
from tests.support.security.identity_provider import CLIENT_ID, KEY, IdentityProvider, claims, identity_provider

jwt = pytest.importorskip("jwt", reason="PyJWT is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as provider:
        yield provider


async def retrieve(configs: dict[str, Any]) -> OAuthBearerToken:
    configs = {
        "bootstrap_servers": "b:1",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
    } | configs
    settings = producer_config(configs).credentials
    assert isinstance(settings, OAuthSettings)
    async with asyncio.timeout(30):
        return await retrieval(settings)()


class TestEndpoint:
    async def test_client_credentials(self, provider: IdentityProvider) -> None:
        provider.lifetime = 100
        token = await retrieve(provider.configs(sasl_oauthbearer_scope="produce consume"))
        assert token.principal == CLIENT_ID
        assert token.expires_at == pytest.approx(time.time() + 100, abs=50)
        assert provider.requests == [{"grant_type": "client_credentials", "scope": "produce consume"}]
        assert provider.headers[0]["content-type"] == "application/x-www-form-urlencoded"

    async def test_the_principal_is_the_claim_that_is_configured(self, provider: IdentityProvider) -> None:
        provider.more = {"azp": "other"}
        assert (await retrieve(provider.configs(sasl_oauthbearer_sub_claim_name="azp"))).principal == "other"

    async def test_a_refused_client_is_an_error_without_its_secret(self, provider: IdentityProvider) -> None:
        configs = provider.configs(sasl_oauthbearer_client_credentials_client_secret="planted")
        with pytest.raises(
            SaslAuthenticationException, match=r"gave no token for client 'alice': HTTP status 401, unauthorized_client"
        ) as refused:
            await retrieve(configs)
        assert "planted" not in "".join(traceback.format_exception(refused.value))
        assert "alice:[hidden] is nobody" in str(refused.value)

    async def test_a_provider_that_repeats_what_it_got_reveals_nothing(
        self, provider: IdentityProvider, tmp_path: Path
    ) -> None:
        basic = base64.b64encode(f"{CLIENT_ID}:planted".encode()).decode()
        provider.failing = lambda: (400, json.dumps({"error": f"no {basic} of planted"}).encode())
        with pytest.raises(SaslAuthenticationException, match=r"no \[hidden\] of \[hidden\]$"):
            await retrieve(provider.configs(sasl_oauthbearer_client_credentials_client_secret="planted"))
        file = tmp_path / "assertion"
        file.write_text("a.planted.assertion")
        provider.failing = lambda: (400, b'{"error": "not a.planted.assertion"}')
        configs = provider.configs(
            sasl_oauthbearer_client_credentials_client_secret=None, sasl_oauthbearer_assertion_file=str(file)
        )
        with pytest.raises(SaslAuthenticationException, match=r"not \[hidden\]$"):
            await retrieve({name: value for name, value in configs.items() if value is not None})

    async def test_what_the_token_says_ends_it_if_it_is_earlier(self, provider: IdentityProvider) -> None:
        for expires_in, lifetime in ((3600, 5), (5, 3600), (5, -3600)):  # the last: a clock may be wrong
            value = KEY.sign(claims(lifetime))
            body = json.dumps({"access_token": value, "expires_in": expires_in}).encode()
            provider.failing = partial(lambda body: (200, body), body)
            assert (await retrieve(provider.configs())).expires_at == pytest.approx(time.time() + 5, abs=4)

    @pytest.mark.parametrize("urlencode", [False, True])
    async def test_credentials_may_be_encoded(self, provider: IdentityProvider, urlencode: bool) -> None:
        configs = provider.configs(sasl_oauthbearer_header_urlencode=urlencode)
        if urlencode:  # this provider wants them as they are
            with pytest.raises(SaslAuthenticationException):
                await retrieve(configs)
        else:
            await retrieve(configs)

    @pytest.mark.parametrize(
        ("status", "body", "error"),
        [
            (400, b'{"error": "invalid_scope"}', SaslAuthenticationException),
            (403, b"no json", SaslAuthenticationException),
            (302, b"", TokenUnavailableException),
            (429, b"", TokenUnavailableException),
            (503, b"<html>", TokenUnavailableException),
            (200, b"", TokenUnavailableException),
            (200, b"[]", TokenUnavailableException),
            (200, b"[" * 100_000, TokenUnavailableException),
            (200, b'{"access_token": ""}', TokenUnavailableException),
            (200, b'{"access_token": 7}', TokenUnavailableException),
            (200, json.dumps({"access_token": "a\x01auth=b"}).encode(), TokenUnavailableException),
        ],
    )
    async def test_answers_without_a_token(
        self, provider: IdentityProvider, status: int, body: bytes, error: type[Exception]
    ) -> None:
        provider.failing = lambda: (status, body)
        with pytest.raises(error, match=r"the identity provider http://127\.0\.0\.1:") as failed:
            await retrieve(provider.configs())
        assert len(str(failed.value)) < 400

    async def test_an_answer_that_is_too_large_is_not_read(
        self, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(http, "LARGEST_ANSWER", 10_000)
        provider.failing = lambda: (200, b" " * 20_000)
        with pytest.raises(TokenUnavailableException, match="more than 10000 bytes"):
            await retrieve(provider.configs())

    async def test_a_provider_that_is_down(self, provider: IdentityProvider) -> None:
        with identity_provider() as gone:
            url = gone.token_url + "?key=planted"
        with pytest.raises(
            TokenUnavailableException, match=r"http://127\.0\.0\.1:\d+/token cannot be asked: "
        ) as failed:
            await retrieve(provider.configs(sasl_oauthbearer_token_endpoint_url=url))
        assert "planted" not in "".join(traceback.format_exception(failed.value))

    async def test_a_provider_that_never_answers(self, provider: IdentityProvider) -> None:
        released = threading.Event()

        def hang() -> tuple[int, bytes]:
            released.wait(30)
            return 503, b""

        provider.failing = hang
        try:
            with pytest.raises(TokenUnavailableException, match=r"cannot be asked: .*Timeout"):
                await retrieve(provider.configs(sasl_login_read_timeout_ms=50))
        finally:
            released.set()

    async def test_a_token_that_is_no_jwt(self, provider: IdentityProvider) -> None:
        provider.failing = lambda: (200, b'{"access_token": "opaque", "expires_in": 60}')
        token = await retrieve(provider.configs())
        assert (token.value, token.principal) == ("opaque", "")
        assert token.expires_at is not None
        provider.failing = lambda: (200, b'{"access_token": "opaque"}')
        assert (await retrieve(provider.configs())).expires_at is None


class TestAssertions:
    @pytest.fixture
    def key_file(self, tmp_path: Path) -> Path:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        file = tmp_path / "key.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(b"planted"),
            )
        )
        self.public = key.public_key()
        return file

    def configs(self, provider: IdentityProvider, key_file: Path, **more: Any) -> dict[str, Any]:
        prefix = "sasl_oauthbearer_assertion_"
        return {
            "sasl_oauthbearer_token_endpoint_url": provider.token_url,
            f"{prefix}private_key_file": str(key_file),
            f"{prefix}private_key_passphrase": "planted",
            f"{prefix}algorithm": "ES256",
            f"{prefix}claim_iss": "me",
            f"{prefix}claim_sub": "alice",
            f"{prefix}claim_aud": "the provider",
            f"{prefix}claim_exp_seconds": 120,
            f"{prefix}claim_nbf_seconds": 30,
            **more,
        }

    def verified(self, assertion: str) -> Any:
        return jwt.decode(assertion, self.public, ["ES256"], audience="the provider", issuer="me")

    async def test_exchanged_for_a_token(self, provider: IdentityProvider, key_file: Path, tmp_path: Path) -> None:
        template = tmp_path / "template.json"
        template.write_text(json.dumps({"header": {"kid": "7"}, "payload": {"sub": "other", "role": "producer"}}))
        configs = self.configs(
            provider,
            key_file,
            sasl_oauthbearer_jwt_retriever_class=JWT_BEARER,
            sasl_oauthbearer_assertion_template_file=str(template),
            sasl_oauthbearer_assertion_claim_jti_include=True,
            sasl_oauthbearer_scope="produce",
        )
        await retrieve(configs)
        await retrieve(configs)
        first, second = provider.requests
        assert first["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        assert first["scope"] == "produce"
        assert "authorization" not in provider.headers[0]
        claims = self.verified(first["assertion"])
        assert jwt.get_unverified_header(first["assertion"]) == {"alg": "ES256", "typ": "JWT", "kid": "7"}
        assert (claims["sub"], claims["role"]) == ("alice", "producer")
        assert claims["exp"] - claims["iat"] == 120
        assert claims["iat"] - claims["nbf"] == 30
        assert claims["jti"] != self.verified(second["assertion"])["jti"]

    async def test_in_place_of_a_secret(self, provider: IdentityProvider, key_file: Path) -> None:
        await retrieve(self.configs(provider, key_file, sasl_oauthbearer_client_credentials_client_id="alice"))
        (form,) = provider.requests
        assert form["grant_type"] == "client_credentials"
        assert form["client_id"] == "alice"
        assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        assert self.verified(form["client_assertion"])["iss"] == "me"

    async def test_a_file_that_somebody_else_renews(self, provider: IdentityProvider, tmp_path: Path) -> None:
        file = tmp_path / "assertion"
        file.write_text("first\n")
        configs = {
            "sasl_oauthbearer_token_endpoint_url": provider.token_url,
            "sasl_oauthbearer_jwt_retriever_class": JWT_BEARER,
            "sasl_oauthbearer_assertion_file": str(file),
        }
        await retrieve(configs)
        file.write_text("second\n")
        await retrieve(configs)
        assert [form["assertion"] for form in provider.requests] == ["first", "second"]

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"private_key_passphrase": "planted wrong"}, "has no private key in PEM that opens with"),
            ({"algorithm": "RS256"}, "does not sign with RS256"),
        ],
    )
    async def test_a_key_that_does_not_fit(
        self, provider: IdentityProvider, key_file: Path, more: dict[str, str], message: str
    ) -> None:
        given = {f"sasl_oauthbearer_assertion_{name}": value for name, value in more.items()}
        configs = self.configs(provider, key_file, sasl_oauthbearer_jwt_retriever_class=JWT_BEARER, **given)
        with pytest.raises(TokenUnavailableException, match=message) as failed:
            await retrieve(configs)
        assert "planted" not in "".join(traceback.format_exception(failed.value))

    @pytest.mark.parametrize("text", ["no json", "[]", '{"payload": 7}', '{"claims": {}}'])
    async def test_a_template_that_is_none(
        self, provider: IdentityProvider, key_file: Path, tmp_path: Path, text: str
    ) -> None:
        template = tmp_path / "template.json"
        template.write_text(text)
        more = {"sasl_oauthbearer_assertion_template_file": str(template)}
        configs = self.configs(provider, key_file, sasl_oauthbearer_jwt_retriever_class=JWT_BEARER, **more)
        with pytest.raises(TokenUnavailableException, match=r"template\.json is (no JSON|not of the form)"):
            await retrieve(configs)


class TestFile:
    async def test_a_token_file_is_read_each_time(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        file.write_text("first\n")
        configs = {"sasl_oauthbearer_token_endpoint_url": file.as_uri()}
        assert (await retrieve(configs)).value == "first"
        file.write_text("second")
        assert (await retrieve(configs)).value == "second"

    @pytest.mark.parametrize("content", [None, b"", b"two words", b"\xff"])
    async def test_without_a_token_in_it(self, tmp_path: Path, content: bytes | None) -> None:
        file = tmp_path / "token"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(
            TokenUnavailableException, match=r"cannot be read: No such file|has no token that can be used"
        ):
            await retrieve({"sasl_oauthbearer_token_endpoint_url": file.as_uri()})


async def test_unsecured_tokens_are_what_the_options_say() -> None:
    options = (
        'unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_level="3" unsecuredLoginListClaim_scope="|a|b"'
        ' unsecuredLoginLifetimeSeconds="60" unsecuredLoginExtension_traceId="7"'
    )
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    token = await retrieve({"sasl_jaas_config": f"{module} required {options};"})
    claims = jwt.decode(token.value, options={"verify_signature": False})
    assert (claims["sub"], claims["level"], claims["scope"]) == ("alice", 3, ["a", "b"])
    assert claims["exp"] - claims["iat"] == pytest.approx(60)
    assert (token.principal, token.extensions) == ("alice", {"traceId": "7"})
    assert token.value.endswith(".")


class TestProvider:
    """The user's own code."""

    async def test_a_function_runs_in_a_thread(self) -> None:
        def provider() -> OAuthBearerToken:
            return OAuthBearerToken("token", 5, threading.current_thread().name)

        token = await retrieve({"sasl_oauth_token_provider": provider})
        assert (token.value, token.expires_at) == ("token", 5)
        assert token.principal == "aioproducer-token-provider"

    async def test_a_coroutine_function_runs_in_the_loop(self) -> None:
        async def provider() -> OAuthBearerToken:
            await asyncio.sleep(0)
            return OAuthBearerToken("token", 5, threading.current_thread().name)

        for given in (provider, lambda: provider()):
            token = await retrieve({"sasl_oauth_token_provider": given})
            assert token.principal in ("MainThread", threading.current_thread().name)

    async def test_an_object_as_aiokafka_and_kafka_python_have_it(self) -> None:
        class Provider:
            def token(self) -> str:
                return "token"

            def extensions(self) -> dict[str, str]:
                return {"logicalCluster": "lkc-1"}

        token = await retrieve({"sasl_oauth_token_provider": Provider()})
        assert (token.value, token.expires_at, token.extensions) == ("token", None, {"logicalCluster": "lkc-1"})

    @pytest.mark.parametrize("error", [ValueError("no\nidea"), StopIteration(), KeyboardInterrupt(), OSError("down")])
    async def test_an_exception_of_the_provider_becomes_token_unavailable(self, error: BaseException) -> None:
        def provider() -> str:
            raise error

        with pytest.raises(TokenUnavailableException, match=r"the token provider failed \(") as failed:
            await retrieve({"sasl_oauth_token_provider": provider})
        assert "\n" not in str(failed.value)

    async def test_an_error_of_its_own_choice_is_passed_on(self) -> None:
        async def provider() -> str:
            raise AuthenticationException("never")

        with pytest.raises(AuthenticationException, match="never"):
            await retrieve({"sasl_oauth_token_provider": provider})

    @pytest.mark.parametrize("found", [None, 7, b"token", "not a token", ("token", 5)])
    async def test_a_value_that_is_no_token_is_refused(self, found: Any) -> None:
        with pytest.raises(TokenUnavailableException, match=r"it returned|a token consists of") as failed:
            await retrieve({"sasl_oauth_token_provider": lambda: found})
        assert "not a token" not in str(failed.value)

    async def test_a_provider_that_hangs_holds_one_thread(self) -> None:
        released, calls = threading.Event(), []

        def provider() -> str:
            calls.append(1)
            released.wait(30)
            return "token"

        settings = producer_config(
            {
                "bootstrap.servers": "b:1",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauth.token.provider": provider,
            }
        ).credentials
        assert isinstance(settings, OAuthSettings)
        get = retrieval(settings)
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await get()
        assert calls == [1]
        released.set()
        async with asyncio.timeout(30):
            assert (await get()).value == "token"
