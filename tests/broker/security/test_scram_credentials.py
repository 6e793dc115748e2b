from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from aioproducer.broker.security.scram_credentials import (
    MIN_ITERATIONS,
    ScramCredential,
    ScramCredentials,
    ScramMechanism,
)

SHA_256, SHA_512 = ScramMechanism


def test_the_keys_of_rfc_7677() -> None:
    """Its example: user "user", password "pencil". The keys are those that its proof and signature are made with."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = ScramCredential.of_password(SHA_256, "pencil", 4096, salt)
    assert credential.iterations == 4096
    # What both sides have said.
    said = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(credential.stored_key, said, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == credential.stored_key
    assert base64.b64encode(hmac.digest(credential.server_key, said, "sha256")) == (
        b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_salted_password_gives_the_same(mechanism: ScramMechanism) -> None:
    salted = hashlib.pbkdf2_hmac(mechanism.hash_name, b"secret", b"salt", 4096)
    assert ScramCredential.of_salted(mechanism, salted, 4096, b"salt") == ScramCredential.of_password(
        mechanism, "secret", 4096, b"salt"
    )


def test_nothing_of_it_is_in_its_repr() -> None:
    assert repr(ScramCredential.of_password(SHA_256, "secret")) == "ScramCredential(iterations=4096)"


def test_users_and_their_mechanisms() -> None:
    credentials = ScramCredentials()
    assert not credentials
    one = ScramCredential.of_password(SHA_512, "secret")
    credentials.put("bob", SHA_512, one)
    credentials.put("alice", SHA_256, one)
    credentials.put("bob", SHA_256, one)
    assert credentials.users() == ["alice", "bob"]
    assert [mechanism for mechanism, _ in credentials.of_user("bob")] == [SHA_256, SHA_512]
    assert credentials.get("alice", SHA_512) is None
    assert credentials.remove("alice", SHA_256)
    assert not credentials.remove("alice", SHA_256)
    assert credentials.users() == ["bob"]


def test_an_unknown_user_looks_like_any_user() -> None:
    credentials = ScramCredentials()
    credentials.put("alice", SHA_256, ScramCredential.of_password(SHA_256, "secret"))
    known, unknown = (credentials.proving(user, SHA_256) for user in ("alice", "mallory"))
    assert len(known.salt) == len(unknown.salt)
    assert known.iterations == unknown.iterations == MIN_ITERATIONS
    assert credentials.proving("mallory", SHA_256).salt == unknown.salt
    assert credentials.proving("mallory", SHA_256).stored_key != unknown.stored_key


def credential(iterations: int, salt: bytes) -> ScramCredential:
    return ScramCredential(salt, b"", b"", iterations)


def test_unknown_users_look_like_known_ones() -> None:
    """Iterations, and the size and the letters of salts, as often as known users have them."""
    credentials = ScramCredentials()
    for number in range(30):
        credentials.put(f"a{number}", SHA_256, credential(8192, b"3k9x2m4p1q0z"))
    for number in range(10):
        credentials.put(f"b{number}", SHA_256, credential(16384, bytes(range(16))))
    credentials.put("other", SHA_512, credential(5000, b"!"))
    unknown = [credentials.proving(f"u{number}", SHA_256) for number in range(1000)]
    of_tools = [one for one in unknown if one.iterations == 8192]
    assert {(one.iterations, len(one.salt)) for one in unknown} == {(8192, 12), (16384, 16)}
    assert all((one.salt.isalnum() and one.salt.islower()) or one.salt.isdigit() for one in of_tools)
    assert 650 < len(of_tools) < 850
    assert len({one.salt for one in unknown}) == 1000


def test_an_unknown_user_looks_the_same_when_users_change_and_after_a_restart() -> None:
    credentials = ScramCredentials()
    for number in range(20):
        credentials.put(f"a{number}", SHA_256, credential(8192, bytes(16)))
    before = [credentials.proving(f"u{number}", SHA_256) for number in range(200)]
    credentials.put("new", SHA_256, credential(4096, bytes(16)))
    after = [credentials.proving(f"u{number}", SHA_256) for number in range(200)]
    assert [one.salt for one in after] == [one.salt for one in before]
    assert sum(one.iterations != other.iterations for one, other in zip(before, after, strict=True)) < 40
    credentials.remove("new", SHA_256)
    again = ScramCredentials()
    again.pepper = credentials.pepper
    for number in range(20):
        again.restore(f"a{number}", SHA_256, credential(8192, bytes(16)))
    seen = [(one.salt, one.iterations) for one in before]
    for one in (credentials, again):
        found = [one.proving(f"u{number}", SHA_256) for number in range(200)]
        assert [(each.salt, each.iterations) for each in found] == seen
    assert ScramCredentials().proving("u0", SHA_256).salt != before[0].salt


@pytest.mark.parametrize("name", ["PLAIN", "SCRAM-SHA-1", "scram-sha-256", "SCRAM_SHA_256"])
def test_no_other_mechanism(name: str) -> None:
    with pytest.raises(ValueError, match="is none of SCRAM-SHA-256, SCRAM-SHA-512"):
        ScramMechanism.of(name)
