"""Key stores and trust stores that Java's keytool made, each with the right and the wrong configs."""

from __future__ import annotations

import ssl
import traceback
from pathlib import Path
from typing import Any

import pytest

from aioproducer.configs.producer_config import ProducerConfig, producer_config
from aioproducer.errors import ConfigException
from aioproducer.security.tls import stores
from aioproducer.security.tls.stores import key_store, trusted_certificates
from tests.support.security.certificates import Certificates, make_certificates
from tests.support.security.stores import KEY_PASSWORD, PASSWORD, Stores, make_stores

pytestmark = pytest.mark.once  # keytool takes a second for each store


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Stores:
    return make_stores(tmp_path_factory.mktemp("stores"), certificates, certificates.client)


def config_of(**given: Any) -> ProducerConfig:
    configs = {name.replace("__", "."): value for name, value in given.items()}
    return producer_config({"bootstrap.servers": "b:1", "security.protocol": "SSL", **configs})


def refused(**given: Any) -> str:
    with pytest.raises(ConfigException) as caught:
        config_of(**given)
    told = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in told
    assert KEY_PASSWORD not in told
    return str(caught.value)


def ders(text: str | bytes | None) -> set[bytes]:
    """The certificates, in DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    assert text is not None
    context.load_verify_locations(cadata=text)
    return set(context.get_ca_certs(binary_form=True))


@pytest.mark.parametrize("kind", ["p12", "jks"])
@pytest.mark.parametrize("type", [None, "JKS", "PKCS12", "pkcs12"])
def test_javas_types_stand_for_each_other(
    made: Stores, certificates: Certificates, kind: str, type: str | None
) -> None:
    given = made.configs(kind)
    if type is not None:
        given |= {"ssl.keystore.type": type, "ssl.truststore.type": type}
    config = config_of(**{name.replace(".", "__"): value for name, value in given.items()})
    assert PASSWORD not in repr(config)
    store = key_store(config)
    assert store is not None
    own = certificates.client.read_text()
    first = store.pem.value.index("-----END CERTIFICATE-----")
    assert ssl.PEM_cert_to_DER_cert(store.pem.value[: first + 25]) == ssl.PEM_cert_to_DER_cert(
        own[own.index("-----BEGIN CERTIFICATE") :]
    )
    authority = certificates.authority.read_text()
    assert ders(trusted_certificates(config)) == ders(authority)


def test_a_key_with_a_password_of_its_own(made: Stores) -> None:
    given = {
        "ssl_keystore_location": str(made.jks_with_key_password),
        "ssl_keystore_password": PASSWORD,
    }
    assert key_store(config_of(**given, ssl_key_password=KEY_PASSWORD)) is not None
    for wrong in ({}, {"ssl_key_password": "wrong"}):
        assert "'ssl.key.password': it is not that of the key 'mykey' in" in refused(**given, **wrong)


def test_a_trust_store_of_java_needs_no_password(made: Stores, certificates: Certificates) -> None:
    """As in Java, the store then goes unverified. What is encrypted can be read with the password only."""
    config = config_of(ssl_truststore_location=str(made.trust_jks))
    assert ders(trusted_certificates(config)) == ders(certificates.authority.read_text())
    message = refused(ssl_truststore_location=str(made.trust_p12))
    assert "'ssl.truststore.password': it is missing" in message


@pytest.mark.parametrize("kind", ["p12", "jks"])
def test_a_key_store_as_a_trust_store(made: Stores, kind: str) -> None:
    """As in Java, the owner of the key is believed, and not who issued the certificate."""
    trusted = trusted_certificates(
        config_of(ssl_truststore_location=str(getattr(made, kind)), ssl_truststore_password=PASSWORD)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=trusted)
    assert context.cert_store_stats()["x509"] == 1


@pytest.mark.parametrize("kind", ["p12", "jks"])
class TestRefused:
    def test_a_wrong_password(self, made: Stores, kind: str) -> None:
        for store, location in (("keystore", getattr(made, kind)), ("truststore", getattr(made, f"trust_{kind}"))):
            given = {f"ssl_{store}_location": str(location), f"ssl_{store}_password": "wrong"}
            assert f"'ssl.{store}.password': it is not that of {location}" in refused(**given)

    def test_no_password(self, made: Stores, kind: str) -> None:
        message = refused(ssl_keystore_location=str(getattr(made, kind)))
        assert "'ssl.keystore.password': it is missing" in message

    def test_a_type_that_the_file_does_not_have(self, made: Stores, certificates: Certificates, kind: str) -> None:
        location = str(getattr(made, kind))
        message = refused(ssl_keystore_location=location, ssl_keystore_type="PEM", ssl_keystore_password=PASSWORD)
        assert "'ssl.keystore.type': it is PEM, but" in message
        type = {"p12": "PKCS12", "jks": "JKS"}[kind]
        message = refused(ssl_truststore_location=str(certificates.authority), ssl_truststore_type=type)
        assert f"'ssl.truststore.type': it is {type}, but" in message

    def test_without_a_key(self, made: Stores, kind: str) -> None:
        location = str(getattr(made, f"trust_{kind}"))
        message = refused(ssl_keystore_location=location, ssl_keystore_password=PASSWORD)
        assert "it has no private key with a certificate" in message

    def test_a_damaged_file(self, made: Stores, kind: str, tmp_path: Path) -> None:
        whole = getattr(made, kind).read_bytes()
        for size in (5, len(whole) // 2, len(whole) - 1):
            (tmp_path / "cut").write_bytes(whole[:size])
            message = refused(ssl_keystore_location=str(tmp_path / "cut"), ssl_keystore_password=PASSWORD)
            assert "config 'ssl.keystore." in message


def test_a_file_that_is_no_store_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    for data, message in (
        (b"", "it is neither PEM nor PKCS12 nor JKS"),
        (b"\xce\xce\xce\xce rest", "but JCEKS: convert it with keytool -importkeystore"),
        (b"-----BEGIN CERTIFICATE-----", "no PEM that can be used"),
    ):
        file.write_bytes(data)
        assert message in refused(ssl_truststore_location=str(file))
    assert "No such file" in refused(ssl_truststore_location=str(tmp_path / "none"))
    assert "Is a directory" in refused(ssl_truststore_location=str(tmp_path))
    monkeypatch.setattr(stores, "LARGEST_STORE", 100)
    file.write_bytes(bytes(101))
    assert "it is larger than 100 bytes" in refused(ssl_truststore_location=str(file))


def test_passwords_without_a_store(certificates: Certificates) -> None:
    assert "'ssl.keystore.password': there is no key store" in refused(ssl_keystore_password=PASSWORD)
    assert "'ssl.key.password': there is no key store" in refused(ssl_key_password=PASSWORD)
    assert "'ssl.truststore.password': there is no trust store" in refused(ssl_truststore_password=PASSWORD)
    authority = certificates.authority
    message = refused(ssl_truststore_location=str(authority), ssl_truststore_password=PASSWORD)
    assert "'ssl.truststore.password': a PEM file has none" in message
    message = refused(ssl_truststore_certificates=authority.read_text(), ssl_truststore_password=PASSWORD)
    assert "'ssl.truststore.password': ssl.truststore.certificates is PEM, which has none" in message
    message = refused(ssl_truststore_certificates=authority.read_text(), ssl_truststore_type="JKS")
    assert "'ssl.truststore.type': it is JKS, but ssl.truststore.certificates is PEM" in message


def test_pkcs12_has_one_password(made: Stores) -> None:
    given = {"ssl_keystore_location": str(made.p12), "ssl_keystore_password": PASSWORD}
    assert key_store(config_of(**given, ssl_key_password=PASSWORD)) is not None
    assert "'ssl.key.password': a PKCS12 store has one" in refused(**given, ssl_key_password=KEY_PASSWORD)


def test_an_encrypted_key_in_pem(certificates: Certificates, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    pem = certificates.client.read_bytes()
    key = serialization.load_pem_private_key(pem, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(KEY_PASSWORD.encode()),
    )
    chain = pem[pem.index(b"-----BEGIN CERTIFICATE") :]
    file = tmp_path / "encrypted.pem"
    file.write_bytes(key + chain)
    texts = {"ssl_keystore_key": key.decode(), "ssl_keystore_certificate_chain": chain.decode()}
    for given in ({"ssl_keystore_location": str(file)}, texts):
        config_of(**given, ssl_key_password=KEY_PASSWORD)
        assert "'ssl.key.password': it is missing: the key is encrypted" in refused(**given)
        assert "'ssl.key.password': it is not that of the key" in refused(**given, ssl_key_password="wrong")
    stranger = certificates.stranger.read_text()
    texts["ssl_keystore_certificate_chain"] = stranger[stranger.index("-----BEGIN CERTIFICATE") :]
    assert "KEY_VALUES_MISMATCH" in refused(**texts, ssl_key_password=KEY_PASSWORD)
