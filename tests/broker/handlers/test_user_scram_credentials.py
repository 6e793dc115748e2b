from __future__ import annotations

import hashlib
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.handlers import alter_user_scram_credentials
from aioproducer.broker.security.scram_credentials import ScramMechanism
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from aioproducer.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.broker.raw_clients.raw_client import RawClient

SHA_256, SHA_512 = ScramMechanism
SALTED = hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 4096)


def put(name: str, mechanism: int = SHA_256, iterations: int = 4096, salt: bytes = b"salt") -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(name, mechanism, iterations, salt, SALTED)


async def alter(client: RawClient, *changes: Any) -> dict[str, ErrorCode]:
    request = AlterUserScramCredentialsRequest(
        [change for change in changes if isinstance(change, ScramCredentialDeletion)],
        [change for change in changes if isinstance(change, ScramCredentialUpsertion)],
    )
    answer = await client.request(request, 0)
    assert all((result.error_message is None) == (result.error_code == 0) for result in answer.results)
    return {result.user: ErrorCode(result.error_code) for result in answer.results}


async def described(client: RawClient, *users: str) -> dict[str, Any]:
    request = DescribeUserScramCredentialsRequest([UserName(user) for user in users] if users else None)
    return {
        result.user: ErrorCode(result.error_code)
        if result.error_code
        else {info.mechanism: info.iterations for info in result.credential_infos}
        for result in (await client.request(request, 0)).results
    }


async def test_credentials_are_created_described_and_deleted(client: RawClient) -> None:
    assert await described(client) == {}
    assert await alter(client, put("bob"), put("alice")) == {"bob": 0, "alice": 0}
    assert await alter(client, put("bob", SHA_512, 8192)) == {"bob": 0}
    assert await described(client) == {"alice": {SHA_256: 4096}, "bob": {SHA_256: 4096, SHA_512: 8192}}
    assert await alter(client, ScramCredentialDeletion("bob", SHA_256)) == {"bob": 0}
    assert await described(client, "bob", "carol") == {"bob": {SHA_512: 8192}, "carol": ErrorCode.RESOURCE_NOT_FOUND}
    assert await described(client, "bob", "bob") == {"bob": ErrorCode.DUPLICATE_RESOURCE}


async def test_a_refused_alteration_leaves_others_alone(client: RawClient) -> None:
    answers = await alter(
        client,
        put("few", iterations=4095),
        put("many", iterations=16385),
        put("unknown", 3),
        put("unsalted", salt=b""),
        put("twice"),
        put("twice", iterations=5000),
        put("by both"),
        put("by both", SHA_512),
        put(""),
        ScramCredentialDeletion("nobody", SHA_256),
        put("fine"),
    )
    assert answers == {
        "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "unknown": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "unsalted": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "twice": ErrorCode.DUPLICATE_RESOURCE,
        "by both": ErrorCode.DUPLICATE_RESOURCE,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "fine": ErrorCode.NONE,
    }
    assert await described(client) == {"fine": {SHA_256: 4096}}


async def test_in_process(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.alter_user_scram_credentials("alice", "secret", mechanism="SCRAM-SHA-512", iterations=5000)
    assert await described(client) == {"alice": {SHA_512: 5000}}
    cluster.alter_user_scram_credentials("alice", None, mechanism="SCRAM-SHA-512")
    assert await described(client) == {}


def test_no_repr_has_a_secret() -> None:
    assert "salt=" not in repr(put("alice"))
    assert repr(SALTED) not in repr(AlterUserScramCredentialsRequest([], [put("alice")]))


async def test_credentials_and_what_they_hold_are_bounded(client: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alter_user_scram_credentials, "MAX_CREDENTIALS", 1)
    assert await alter(client, put("a"), put("b")) == {"a": ErrorCode.NONE, "b": ErrorCode.POLICY_VIOLATION}
    assert await alter(client, put("a", iterations=5000)) == {"a": ErrorCode.NONE}
    unacceptable = ErrorCode.UNACCEPTABLE_CREDENTIAL
    assert await alter(client, put("x" * 1001)) == {"x" * 1001: unacceptable}
    assert await alter(client, put("a", salt=bytes(1001))) == {"a": unacceptable}
