from __future__ import annotations

import ssl
from random import Random
from typing import Any

import pytest

from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import NetworkException, SslAuthenticationException
from aioproducer.net.addresses import Address
from aioproducer.net.security.sasl_authenticator import reauthenticate_after
from aioproducer.net.security.security import ClientSecurity


def security(**config: Any) -> ClientSecurity:
    def launch(work: Any, name: str) -> None:
        raise AssertionError(f"no task is needed for {name}")

    return ClientSecurity(producer_config({"bootstrap.servers": "b:1", **config}), Random(0), launch)


async def test_the_certificate_has_to_be_that_of_the_name_and_not_of_the_address() -> None:
    context = ssl.create_default_context()
    made = security(security_protocol="ssl", ssl_context=context)
    assert await made.transport_options(Address("broker.example", 9093)) == {
        "ssl": context,
        "server_hostname": "broker.example",
    }
    assert await security().transport_options(Address("broker.example", 9092)) == {}


def lost(cause: BaseException) -> NetworkException:
    """The error of a connection: the lost request, the connection, and the transport's error."""
    inner, outer = NetworkException("the connection was lost"), NetworkException("a request was not answered")
    inner.__cause__, outer.__cause__ = cause, inner
    return outer


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] alert"), "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
        (ssl.SSLCertVerificationError(1, "certificate has expired"), "certificate has expired"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda error: error, lost])
def test_a_failed_handshake_is_named_as_such(error: Any, reason: str, wrap: Any) -> None:
    refusal = security().refusal("broker.example:9093", wrap(error))
    assert isinstance(refusal, SslAuthenticationException)
    assert str(refusal).startswith("TLS with broker.example:9093 failed: ")
    assert reason in str(refusal)


@pytest.mark.parametrize(
    "error", [OSError("refused"), ssl.SSLEOFError(8, "EOF"), ssl.SSLZeroReturnError(6, "closed"), NetworkException("x")]
)
@pytest.mark.parametrize("wrap", [lambda error: error, lost])
def test_another_end_of_a_connection_says_nothing_of_tls(error: Any, wrap: Any) -> None:
    assert security().refusal("broker.example:9093", wrap(error)) is None


def test_a_session_is_renewed_before_it_ends_and_not_everybodys_at_once() -> None:
    times = {reauthenticate_after(100, Random(seed)) for seed in range(100)}
    assert min(times) >= 85
    assert max(times) <= 95
    assert len(times) == 100
