from __future__ import annotations

import builtins
import traceback
from pathlib import Path
from typing import Any

import pytest

from aioproducer.configs.producer_config import ProducerConfig, producer_config
from aioproducer.errors import ConfigException
from aioproducer.security.jaas import OAUTHBEARER_LOGIN_MODULE, SCRAM_LOGIN_MODULE
from aioproducer.security.oauth.java_classes import FILE, JWT_BEARER
from aioproducer.security.oauth.settings import (
    OAuthSettings,
    TokenEndpoint,
    TokenFile,
    TokenProvider,
    UnsecuredTokens,
)
from aioproducer.security.password import Password

pytest.importorskip("httpx", reason="httpx is not installed")

SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
URL = {"sasl.oauthbearer.token.endpoint.url": "https://identity.example/token"}
ID = "sasl.oauthbearer.client.credentials.client.id"
SECRET = "sasl.oauthbearer.client.credentials.client.secret"
CREDENTIALS = {ID: "alice", SECRET: "planted"}
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
KEY_FILE = "sasl.oauthbearer.assertion.private.key.file"


def jaas(options: str) -> dict[str, str]:
    return {"sasl.jaas.config": f"{OAUTHBEARER_LOGIN_MODULE} required {options};"}


def config(given: dict[str, Any]) -> ProducerConfig:
    return producer_config({"bootstrap.servers": "b:1", **given})


def settings(given: dict[str, Any]) -> OAuthSettings:
    found = config({**SASL, **given}).credentials
    assert isinstance(found, OAuthSettings)
    return found


def provider() -> str:
    return "token"


@pytest.mark.parametrize(
    "given",
    [
        {**CREDENTIALS, "sasl.oauthbearer.scope": "produce"},
        jaas('clientId="alice" clientSecret="planted" scope="produce"'),
        {**CREDENTIALS, **jaas('clientId="other" clientSecret="other" scope="produce"')},
    ],
)
def test_client_credentials_by_config_or_jaas(given: dict[str, Any]) -> None:
    source = settings({**URL, **given}).source
    assert isinstance(source, TokenEndpoint)
    assert (source.client_id, source.client_secret, source.scope) == ("alice", Password("planted"), "produce")
    assert source.assertion is None
    assert "planted" not in repr(source) + repr(config({**SASL, **URL, **given}))


def test_the_other_sources(tmp_path: Path) -> None:
    assert settings({"sasl_oauth_token_provider": provider}).source == TokenProvider(provider)
    file = {"sasl.oauthbearer.token.endpoint.url": f"file://{tmp_path}/the%20token"}
    assert settings(file).source == settings({**file, RETRIEVER: FILE}).source == TokenFile(tmp_path / "the token")
    unsecured = settings(jaas('unsecuredLoginStringClaim_sub="alice"')).source
    assert unsecured == UnsecuredTokens({"unsecuredLoginStringClaim_sub": "alice"})


class Provider:
    made = 0

    def __init__(self) -> None:
        Provider.made += 1

    def token(self) -> str:
        return "token"


def test_a_provider_may_be_a_class_or_the_name_of_one() -> None:
    Provider.made = 0
    assert isinstance(config({**SASL, "sasl_oauth_token_provider": Provider}).sasl_oauth_token_provider, Provider)
    assert Provider.made == 1
    by_name = config({**SASL, "sasl.oauth.token.provider": f"{__name__}:Provider"}).sasl_oauth_token_provider
    assert callable(by_name.token)
    with pytest.raises(ConfigException, match="its objects must be a callable"):
        config({**SASL, "sasl_oauth_token_provider": int})
    with pytest.raises(ConfigException, match="cannot be made without arguments"):
        config({**SASL, "sasl_oauth_token_provider": OAuthSettings})


def test_assertions(tmp_path: Path) -> None:
    pytest.importorskip("jwt", reason="PyJWT is not installed")
    key = tmp_path / "key.pem"
    key.write_text("")
    prefix = "sasl.oauthbearer.assertion."
    given = {
        **URL,
        KEY_FILE: str(key),
        f"{prefix}algorithm": "es256",
        f"{prefix}claim.iss": "me",
        f"{prefix}private.key.passphrase": "planted",
    }
    exchanged = settings({**given, RETRIEVER: JWT_BEARER}).source
    assert isinstance(exchanged, TokenEndpoint)
    assert exchanged.assertion is not None
    assert exchanged.grants_assertion
    assert (exchanged.assertion.algorithm, exchanged.assertion.claims) == ("ES256", {"iss": "me"})
    assert "planted" not in repr(exchanged)
    proving = settings({**given, ID: "alice"}).source
    assert isinstance(proving, TokenEndpoint)
    assert not proving.grants_assertion
    # A secret is enough.
    with_secret = settings({**given, **CREDENTIALS}).source
    assert isinstance(with_secret, TokenEndpoint)
    assert with_secret.assertion is None


def test_extensions_and_trust_for_the_provider_come_from_jaas(tmp_path: Path) -> None:
    source = settings({**URL, **CREDENTIALS, **jaas('extension_logicalCluster="lkc-1"')}).source
    assert isinstance(source, TokenEndpoint)
    assert source.extensions == {"logicalCluster": "lkc-1"}
    with pytest.raises(ConfigException, match="No such file"):
        settings({**URL, **CREDENTIALS, **jaas(f'ssl.truststore.location="{tmp_path}/none.pem"')})


@pytest.mark.parametrize(
    ("given", "name", "message"),
    [
        (SASL, URL, "it is missing: OAUTHBEARER needs an identity provider, a file, or a sasl.oauth.token.provider"),
        ({**SASL, **URL, SECRET: "planted"}, ID, "it is missing"),
        ({**SASL, **URL, ID: "alice"}, SECRET, "it is missing"),
        ({**SASL, **URL, ID: "alice", SECRET: ""}, SECRET, "it is missing"),
        ({**SASL, **URL, RETRIEVER: JWT_BEARER}, KEY_FILE, "it is missing"),
        ({**SASL, **URL, RETRIEVER: JWT_BEARER, KEY_FILE: "/none.pem"}, KEY_FILE, "there is no file /none.pem"),
        ({**SASL, **URL, RETRIEVER: FILE}, URL, "it is no file"),
        ({**SASL, "sasl.oauthbearer.token.endpoint.url": "file:///x", RETRIEVER: JWT_BEARER}, URL, "it is a file"),
        ({**SASL, "sasl.oauthbearer.token.endpoint.url": "ftp://x/"}, URL, "not of the form"),
        ({**SASL, "sasl.oauthbearer.token.endpoint.url": "https://"}, URL, "not of the form"),
        ({**SASL, "sasl.oauthbearer.token.endpoint.url": "https://[x"}, URL, "not of the form"),
        ({**SASL, "sasl.oauthbearer.token.endpoint.url": "https://x:y/"}, URL, "not of the form"),
        ({**SASL, RETRIEVER: "mine"}, RETRIEVER, "it must be one of"),
        ({**SASL, "sasl.oauth.token.provider": 7}, "sasl.oauth.token.provider", "a callable, or an object with"),
        ({**SASL, "sasl.oauth.token.provider": provider, **URL}, URL, "sasl.oauth.token.provider is there, too"),
        ({**SASL, "sasl.oauth.token.provider": provider, SECRET: "planted"}, SECRET, "is there, too"),
        (
            {**SASL, "sasl.oauth.token.provider": provider, **jaas('clientSecret="planted"')},
            "sasl.jaas.config",
            "is there, too",
        ),
        ({**SASL, **URL, **jaas('secret="planted"')}, "sasl.jaas.config", "an unknown option secret"),
        ({**SASL, **URL, **jaas('extension_auth="planted"')}, "sasl.jaas.config", "is not auth"),
        ({**SASL, **jaas('unsecuredLoginNumberClaim_x="planted"')}, "sasl.jaas.config", "is no number"),
        ({**SASL, **jaas('unsecuredLoginX="planted"')}, "sasl.jaas.config", "unknown option unsecuredLoginX"),
        ({**SASL, **jaas('unsecuredLoginLifetimeSeconds="60"')}, "sasl.jaas.config", "who the client is"),
        (
            {**SASL, **URL, "sasl.jaas.config": f'{SCRAM_LOGIN_MODULE} required clientSecret="planted";'},
            "sasl.jaas.config",
            "ScramLoginModule, and sasl.mechanism=OAUTHBEARER has",
        ),
        (
            {**SASL, "sasl.oauthbearer.token.endpoint.url": "https://alice:planted@idp/token"},
            "sasl.oauthbearer.token.endpoint.url",
            "it has user information, which is not used",
        ),
        ({**SASL, **URL, "sasl.plain.password": "planted"}, "sasl.plain.password", "has no password"),
        ({**SASL, **URL, "sasl.plain.username": "alice"}, "sasl.plain.username", "has no password"),
        (URL, URL, "is for tokens, and sasl.mechanism is None with security.protocol=PLAINTEXT"),
        ({"sasl.mechanism": "OAUTHBEARER", **CREDENTIALS}, ID, "with security.protocol=PLAINTEXT"),
        (
            {**SASL, "sasl.mechanism": "PLAIN", "sasl.login.read.timeout.ms": 1},
            "sasl.login.read.timeout.ms",
            "is PLAIN",
        ),
    ],
)
def test_a_wrong_setting_is_refused_without_showing_a_secret(given: dict[str, Any], name: Any, message: str) -> None:
    with pytest.raises(ConfigException, match=message) as refused:
        config(given)
    assert refused.value.name == (name if isinstance(name, str) else next(iter(name)))
    assert "planted" not in "".join(traceback.format_exception(refused.value)) + repr(vars(refused.value))


@pytest.mark.parametrize(("library", "more"), [("httpx", CREDENTIALS), ("jwt", {ID: "alice", KEY_FILE: __file__})])
def test_a_missing_library_is_named_with_its_extra(
    library: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == library:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigException, match=r"pip install 'aioproducer\[oauth\]'"):
        config({**SASL, **URL, **more})


def test_any_store_may_have_the_trust_for_the_provider(tmp_path: Path) -> None:
    """The options of TLS mean what the configs of these names mean."""
    (tmp_path / "trust.jks").write_bytes(b"\xfe\xed\xfe\xed")
    given = f'ssl.truststore.location="{tmp_path}/trust.jks" ssl.truststore.password="planted"'
    for more, message in (
        ("", "it is no JKS file"),
        (' ssl.truststore.type="PEM"', "it is PEM, but"),
        (' ssl.truststore.type="BKS"', "must be one of JKS, PKCS12, PEM"),
        (' ssl.cipher.suites="NONE"', "it is no JKS file"),
    ):
        with pytest.raises(ConfigException, match=message) as caught:
            settings({**URL, **CREDENTIALS, **jaas(given + more)})
        assert "planted" not in str(caught.value)
    with pytest.raises(ConfigException, match="'NONE' is no cipher suite"):
        settings({**URL, **CREDENTIALS, **jaas('ssl.cipher.suites="NONE" ssl.enabled.protocols="TLSv1.2, TLSv1.3"')})
