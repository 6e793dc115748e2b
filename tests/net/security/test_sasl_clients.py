from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer import OAuthBearerToken
from aioproducer.errors import SaslAuthenticationException
from aioproducer.net.security.sasl_clients import MAX_ITERATIONS, ScramSaslClient, sasl_client
from aioproducer.security.password import Password
from aioproducer.security.sasl import Credentials

scramp: Any = pytest.importorskip("scramp", reason="scramp is not installed")

SHA_256 = Credentials("SCRAM-SHA-256", "alice", Password("planted"))


def test_plain_says_it_all_at_once() -> None:
    client = sasl_client(Credentials("PLAIN", "älice", Password("planted\\")), "broker")
    assert client.initial_response() == "\0älice\0planted\\".encode()
    assert client.evaluate_challenge(b"") is None


def test_a_token_with_extensions() -> None:
    client = sasl_client(
        OAuthBearerToken("t.o.k=", 5, extensions={"logicalCluster": "lkc-1", "traceId": "7"}), "broker"
    )
    assert client.initial_response() == b"n,,\1auth=Bearer t.o.k=\1logicalCluster=lkc-1\1traceId=7\1\1"
    assert client.evaluate_challenge(b"") is None
    client = sasl_client(OAuthBearerToken("token"), "broker")
    assert client.initial_response() == b"n,,\1auth=Bearer token\1\1"
    assert client.evaluate_challenge(b'{"status":"invalid_token"}') == b"\1"


@pytest.mark.parametrize("more", [b"", b"more"])
def test_after_a_refusal_there_is_an_error_and_nothing_else(more: bytes) -> None:
    client = sasl_client(OAuthBearerToken("planted"), "broker")
    assert client.evaluate_challenge(b'{"status":"invalid_token"}\xff' + bytes(10_000)) == b"\1"
    with pytest.raises(SaslAuthenticationException, match=r"refused the token: .*invalid_token") as refused:
        client.evaluate_challenge(more)
    assert "planted" not in str(refused.value)
    assert len(str(refused.value)) < 10_000


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("user", ["alice", "a=b,c", "älice"])
def test_scram_with_a_server_that_knows_the_password(mechanism: str, user: str) -> None:
    library = scramp.ScramMechanism(mechanism)
    known = library.make_auth_info("planted", iteration_count=10_000 if "3" in mechanism else 4096)
    names = []

    def find(name: str) -> Any:
        names.append(name)
        return known

    server = library.make_server(find)
    client = sasl_client(Credentials(mechanism, user, Password("planted")), "broker")
    server.set_client_first(client.initial_response().decode())
    final = client.evaluate_challenge(server.get_server_first().encode())
    assert final is not None
    server.set_client_final(final.decode())
    assert client.evaluate_challenge(server.get_server_final().encode()) is None
    assert names == [user]


def begun() -> tuple[ScramSaslClient, str]:
    client = ScramSaslClient(SHA_256)
    return client, client.initial_response().decode().rpartition("r=")[2]


@pytest.mark.parametrize("iterations", ["0", "1", "4095", str(MAX_ITERATIONS + 1), "999999999", "99999999999", "x", ""])
def test_a_broker_that_would_have_the_password_given_away_or_us_kept_busy(iterations: str) -> None:
    client, nonce = begun()
    with pytest.raises(SaslAuthenticationException, match=r"4096 to 1000000 are accepted"):
        client.evaluate_challenge(f"r={nonce}abc,s=c2FsdHNhbHRzYWx0,i={iterations}".encode())


@pytest.mark.parametrize(
    "message",
    ["r={nonce}abc,i=4096", "r=abc,s=c2FsdHNhbHRzYWx0,i=4096", "r={nonce},s=!,i=4096", "i=4096", "e=no,i=4096"],
)
def test_a_first_message_that_is_none(message: str) -> None:
    client, nonce = begun()
    with pytest.raises(SaslAuthenticationException, match="SCRAM-SHA-256: the broker's first message cannot be read"):
        client.evaluate_challenge(message.format(nonce=nonce).encode())


@pytest.mark.parametrize("proof", [b"v=AAAA", b"e=other-error", b"", b"\xff"])
def test_a_broker_that_does_not_know_the_password(proof: bytes) -> None:
    client, nonce = begun()
    assert client.evaluate_challenge(f"r={nonce}abc,s=c2FsdHNhbHRzYWx0,i=4096".encode()) is not None
    with pytest.raises(SaslAuthenticationException, match="proof that it knows the password is wrong") as refused:
        client.evaluate_challenge(proof)
    assert "planted" not in str(refused.value)


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_as_a_broker_refuses(challenge: bytes) -> None:
    client, _ = begun()
    with pytest.raises(SaslAuthenticationException):
        client.evaluate_challenge(challenge)
