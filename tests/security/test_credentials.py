from __future__ import annotations

import ssl
import traceback
from typing import Any

import pytest

from aioproducer.configs.producer_config import ProducerConfig, producer_config
from aioproducer.errors import ConfigException
from aioproducer.security.jaas import PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE
from aioproducer.security.password import Password
from aioproducer.security.sasl import Credentials

SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
JAAS = f'{PLAIN_LOGIN_MODULE} required username="alice" password="planted";'
ALICE = {"sasl_plain_username": "alice", "sasl_plain_password": "planted"}


def config(given: dict[str, Any]) -> ProducerConfig:
    return producer_config({"bootstrap.servers": "b:1", **given})


@pytest.mark.parametrize(
    "given",
    [
        {**SASL, **ALICE},
        {**SASL, "sasl.jaas.config": JAAS},
        {**SASL, "security.protocol": "sasl_plaintext", "sasl_jaas_config": Password(JAAS)},
    ],
)
def test_either_way_of_saying_it(given: dict[str, Any]) -> None:
    made = config(given)
    assert made.credentials == Credentials("PLAIN", "alice", Password("planted"))
    assert "planted" not in repr(made) + repr(made.credentials)


def test_scram_has_a_login_module_of_its_own() -> None:
    pytest.importorskip("scramp", reason="scramp is not installed")
    jaas = JAAS.replace(PLAIN_LOGIN_MODULE, SCRAM_LOGIN_MODULE)
    made = config({**SASL, "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas})
    assert made.credentials == Credentials("SCRAM-SHA-512", "alice", Password("planted"))


def test_credentials_are_refused_without_sasl() -> None:
    assert config({}).credentials is None
    assert config({"sasl.mechanism": "GSSAPI"}).credentials is None


@pytest.mark.parametrize(
    ("given", "name", "message"),
    [
        (
            {"security.protocol": "SASL_SSL", **ALICE},
            "sasl.mechanism",
            "security.protocol=SASL_SSL needs it: set one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        (
            {**SASL, "sasl.mechanism": "DIGEST-MD5", **ALICE},
            "sasl.mechanism",
            "'DIGEST-MD5' is not supported: set one of",
        ),
        ({**SASL, "sasl.mechanism": "plain", **ALICE}, "sasl.mechanism", "'plain' is not supported: set one of"),
        (SASL, "sasl.plain.username", "it is missing: security.protocol=SASL_PLAINTEXT needs sasl.plain.username and"),
        ({**SASL, "sasl_plain_username": "alice"}, "sasl.plain.password", "it is missing"),
        ({**SASL, **ALICE, "sasl.jaas.config": JAAS}, "sasl.plain.username", "sasl.jaas.config is there, too"),
        (ALICE, "sasl.plain.username", "with security.protocol=PLAINTEXT they are never sent"),
        ({"sasl.jaas.config": JAAS}, "sasl.jaas.config", "with security.protocol=PLAINTEXT they are never sent"),
        (
            {**SASL, "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": JAAS},
            "sasl.jaas.config",
            "PlainLoginModule, and sasl.mechanism=SCRAM-SHA-256 has .*ScramLoginModule",
        ),
        ({**SASL, "sasl.jaas.config": JAAS.replace("username", "user")}, "sasl.jaas.config", "it has no username"),
        ({**SASL, "sasl.jaas.config": "planted"}, "sasl.jaas.config", "not of the form"),
        ({**SASL, **ALICE, "sasl_plain_password": 7}, "sasl.plain.password", "must be of type password"),
        (
            {**SASL, **ALICE, "ssl.keystore.key": "planted"},
            "ssl.keystore.key",
            "security.protocol is SASL_PLAINTEXT: set SSL or SASL_SSL",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.key": "planted"}, "ssl.keystore.key", "one of them is missing"),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": "planted"}, "ssl.truststore.certificates", "PEM"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/no.pem"}, "ssl.truststore.location", "No such file"),
        ({"security.protocol": "SSL", "ssl_context": 7}, "ssl.context", "an ssl.SSLContext"),
        (
            {"security.protocol": "SSL", "ssl_context": ssl.create_default_context(), "ssl.key.password": "planted"},
            "ssl.key.password",
            "ssl.context is there, too",
        ),
    ],
)
def test_wrong_credentials_are_refused_without_showing_a_secret(given: dict[str, Any], name: str, message: str) -> None:
    with pytest.raises(ConfigException, match=message) as refused:
        config(given)
    assert refused.value.name == name
    assert "planted" not in "".join(traceback.format_exception(refused.value)) + repr(vars(refused.value))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("name", ["sasl_plain_username", "sasl_plain_password"])
def test_characters_that_scram_forbids(mechanism: str, name: str) -> None:
    """As of a file of a secret that ends with a newline."""
    pytest.importorskip("scramp", reason="scramp is not installed")
    given = {**SASL, "sasl.mechanism": mechanism, **ALICE, name: "planted\x07\n"}
    with pytest.raises(ConfigException, match="has characters that SCRAM forbids") as refused:
        config(given)
    assert refused.value.name == name.replace("_", ".")
    assert "planted" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("name", ["sasl_plain_username", "sasl_plain_password"])
def test_a_secret_that_is_not_utf_8(name: str) -> None:
    """As of a variable of the environment: it would be in the UnicodeEncodeError of whoever encodes it."""
    value = b"planted\xfc".decode(errors="surrogateescape")
    with pytest.raises(ConfigException, match=r"has half of a surrogate pair: .* is not UTF-8") as refused:
        config({**SASL, **ALICE, name: value})
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None
    assert "planted" not in str(refused.value)
