from __future__ import annotations

import shutil
import ssl
import subprocess
from typing import Any

import pytest

from aioproducer.errors import ConfigException
from aioproducer.security.oauth.settings import EndpointTls
from aioproducer.security.tls import suites
from aioproducer.security.tls.suites import openssl_name, restrict

TLS_1_2 = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
TLS_1_3 = "TLS_AES_256_GCM_SHA384"


def restricted(**given: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    restrict(context, EndpointTls(**given))
    return context


def versions(**given: Any) -> tuple[str, str]:
    context = restricted(**given)
    return context.minimum_version.name, context.maximum_version.name


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        (TLS_1_2, "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA256", "DHE-RSA-AES256-SHA256"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        (TLS_1_3, TLS_1_3),
    ],
)
def test_names(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl


def test_names_are_openssls() -> None:
    """Of every suite without pre-shared keys, which Python does not have."""
    if shutil.which("openssl") is None:
        pytest.skip("the names of suites are NOT compared with OpenSSL's: there is no command openssl")
    all = ["openssl", "ciphers", "-stdname", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"]
    lines = subprocess.run(all, capture_output=True, text=True, check=True).stdout.splitlines()
    pairs = [(line.split()[0], line.split()[2]) for line in lines]
    known = suites._known()
    of_java = [
        (standard, name)
        for standard, name in pairs
        if name in known and not any(part in standard for part in ("PSK", "SRP", "ARIA", "CAMELLIA", "anon", "NULL"))
    ]
    assert len(of_java) > 30
    assert [openssl_name(standard) for standard, _ in of_java] == [name for _, name in of_java]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("TLSv1_2", "TLSv1_3")),
        ({"ssl_enabled_protocols": ("TLSv1.3",)}, ("TLSv1_3", "TLSv1_3")),
        ({"ssl_enabled_protocols": ("TLSv1.2", "TLSv1.1", "TLSv1")}, ("TLSv1_2", "TLSv1_2")),
        ({"ssl_protocol": "TLSv1.2"}, ("TLSv1_2", "TLSv1_2")),
        ({"ssl_protocol": "TLS"}, ("TLSv1_2", "TLSv1_3")),
        ({"ssl_cipher_suites": (TLS_1_2,)}, ("TLSv1_2", "TLSv1_2")),
        ({"ssl_cipher_suites": (TLS_1_3,)}, ("TLSv1_3", "TLSv1_3")),
        ({"ssl_cipher_suites": (TLS_1_3, TLS_1_2)}, ("TLSv1_2", "TLSv1_3")),
    ],
)
def test_protocols(given: dict[str, Any], expected: tuple[str, str]) -> None:
    assert versions(**given) == expected


def test_suites_of_tls_1_2() -> None:
    context = restricted(ssl_cipher_suites=(TLS_1_2, "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256"))
    of_1_2 = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert of_1_2 == ["ECDHE-RSA-AES256-GCM-SHA384", "DHE-RSA-AES128-GCM-SHA256"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl_enabled_protocols": ("TLSv1.1",)}, "'ssl.enabled.protocols': it is TLSv1.1, and only TLSv1.2 and"),
        ({"ssl_enabled_protocols": ()}, "it is empty"),
        ({"ssl_enabled_protocols": ("TLSv1.3",), "ssl_protocol": "TLSv1.2"}, "'ssl.protocol': it is TLSv1.2, but"),
        ({"ssl_cipher_suites": ("TLS_RSA_WITH_RC4_128_MD5",)}, "'ssl.cipher.suites': 'TLS_RSA_WITH_RC4_128_MD5' is no"),
        ({"ssl_cipher_suites": ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA385",)}, "did you mean TLS_ECDHE_RSA_WITH_AES_256"),
        ({"ssl_cipher_suites": ("ALL:eNULL",)}, "is no cipher suite"),
        (
            {"ssl_cipher_suites": (TLS_1_2,), "ssl_enabled_protocols": ("TLSv1.3",)},
            "none of them is of a protocol in use, TLSv1.3",
        ),
    ],
)
def test_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        restricted(**given)
