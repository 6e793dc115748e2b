"""The client's configs: what is refused, and that no secret is shown."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from aioproducer.errors import ConfigException
from aioproducer.schema_registry import SchemaRegistryClient
from aioproducer.schema_registry.client.registry_config import RegistryConfig, registry_config
from aioproducer.security.password import Password
from tests.support.security.certificates import make_certificates

URL = "http://127.0.0.1:8081"


def config(url: Any = URL, **more: Any) -> RegistryConfig:
    return registry_config({"schema.registry.url": url, **more})


def test_defaults_are_confluents() -> None:
    made = config()
    assert made.schema_registry_url == (URL,)
    assert (made.max_retries, made.retries_wait_ms, made.retries_max_wait_ms) == (3, 1000, 20000)


@pytest.mark.parametrize(
    "given",
    [
        {"max_retries": 5},
        {"max.retries": "5"},
    ],
)
def test_names_are_dotted_or_not(given: dict[str, Any]) -> None:
    assert config(**given).max_retries == 5


def test_several_urls_lose_their_last_slash() -> None:
    assert config("http://a:1/, https://b/apis/ccompat/v7/").schema_registry_url == (
        "http://a:1",
        "https://b/apis/ccompat/v7",
    )
    assert config(["http://a:1", "http://b:2"]).schema_registry_url == ("http://a:1", "http://b:2")


def test_a_user_in_the_url() -> None:
    made = config("http://al%40ice:plan%3Ated@a:1/x,http://b:2")
    assert made.schema_registry_url == ("http://a:1/x", "http://b:2")
    assert made.basic_auth_user_info == Password("al@ice:plan:ted")
    assert "plan" not in repr(made)


@pytest.mark.parametrize(
    ("given", "name", "said"),
    [
        ({"schema.registry.url": ""}, "schema.registry.url", "non-empty"),
        ({"schema.registry.url": "127.0.0.1:8081"}, "schema.registry.url", "not of the form https://host:port/path"),
        ({"schema.registry.url": "ftp://a"}, "schema.registry.url", "not of the form"),
        ({"schema.registry.url": "http://a:port"}, "schema.registry.url", "not of the form"),
        ({"schema.registry.url": "http://a?secret=planted"}, "schema.registry.url", "a query"),
        ({"schema.registry.url": "http://a:planted@b,http://c:planted@d"}, "schema.registry.url", "different users"),
        (
            {"schema.registry.url": "http://a:planted@b", "basic.auth.user.info": "a:planted"},
            "basic.auth.user.info",
            "",
        ),
        ({"schema.registry.url": "http://a:planted@b", "bearer.auth.token": "planted"}, "bearer.auth.token", ""),
        ({"basic.auth.user.info": "planted"}, "basic.auth.user.info", "user:password"),
        ({"basic.auth.user.info": "a:planted", "bearer.auth.token": "planted"}, "bearer.auth.token", "leave one"),
        ({"bearer.auth.token": "planted planted"}, "bearer.auth.token", "cannot be sent"),
        ({"bearer.auth.token": "planted\n"}, "bearer.auth.token", "cannot be sent"),
        ({"bearer.auth.client.id": "a"}, "bearer.auth.client.id", "without bearer.auth.issuer.endpoint.url"),
        ({"bearer.auth.client.secret": "planted"}, "bearer.auth.client.secret", "it is never sent"),
        ({"bearer.auth.issuer.endpoint.url": "http://a"}, "bearer.auth.client.id", "missing"),
        (
            {"bearer.auth.issuer.endpoint.url": "http://a", "bearer.auth.client.id": "a"},
            "bearer.auth.client.secret",
            "missing",
        ),
        (
            {
                "bearer.auth.issuer.endpoint.url": "planted",
                "bearer.auth.client.id": "a",
                "bearer.auth.client.secret": "planted",
            },
            "bearer.auth.issuer.endpoint.url",
            "not of the form",
        ),
        ({"bearer.auth.logical.cluster": "lsrc-1"}, "bearer.auth.logical.cluster", "without a bearer token"),
        ({"bearer.auth.token.provider": 5}, "bearer.auth.token.provider", ""),
        ({"bearer.auth.token.provider": "eyJh.planted.sig"}, "bearer.auth.token.provider", "is not shown"),
        ({"bearer.auth.token.provider": ["planted"]}, "bearer.auth.token.provider", "<class 'list'>"),
        ({"max.retries": -1}, "max.retries", "at least 0"),
        ({"http.read.timeout.ms": 0}, "http.read.timeout.ms", "at least 1"),
        ({"url": URL}, "url", "it is 'schema.registry.url' here"),
        ({"max_retries": 1, "max.retries": 1}, "schema.registry.url", "twice"),
        ({"retries.wait": 1}, "retries.wait", "did you mean 'retries.wait.ms'"),
        ({"ssl.ca.location": "ca.pem"}, "ssl.ca.location", "it is 'ssl.truststore.location' here"),
    ],
)
def test_a_wrong_config_is_refused_by_name(given: dict[str, Any], name: str, said: str) -> None:
    with pytest.raises(ConfigException) as refused:
        registry_config({"schema.registry.url": URL, **given})
    assert refused.value.name == name
    assert said in str(refused.value)
    assert "planted" not in f"{refused.value!r} {refused.value.value!r}"


async def test_tls_configs_have_confluents_prefix_or_none(tmp_path: Any) -> None:
    authority = str(make_certificates(tmp_path).authority)
    assert config(**{"schema.registry.ssl.truststore.location": authority}).ssl_truststore_location == authority
    assert (await config(ssl_truststore_location=authority).tls().context()).get_ca_certs()
    with pytest.raises(ConfigException, match=r"ssl\.truststore\.location.*No such file"):
        config(ssl_truststore_location=str(tmp_path / "none")).tls()


async def test_a_context_of_ones_own(tmp_path: Any) -> None:
    own = ssl.create_default_context()
    assert await config(ssl_context=own).tls().context() is own
    with pytest.raises(ConfigException, match=r"ssl\.context is there, too"):
        config(ssl_context=own, ssl_key_password="planted").tls()


async def test_host_names_may_be_left_unchecked() -> None:
    assert (await config().tls().context()).check_hostname
    assert not (await config(ssl_endpoint_identification_algorithm="").tls().context()).check_hostname


def test_no_repr_has_a_secret() -> None:
    made = SchemaRegistryClient("http://user:planted@127.0.0.1:8081")
    assert repr(made) == "SchemaRegistryClient('http://127.0.0.1:8081')"
