"""AlterUserScramCredentials: version 0 (KIP-554). Any node changes them for all, at once.

Stricter than Kafka: neither salt nor salted password may be empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.security.scram_credentials import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 0)

_CHANGES_AT_ONCE = 32

MAX_CREDENTIALS = 20_000
"""Of all users. Kafka has no such limit, nor the next one."""

MAX_NAME = 1000
"""Characters of a user's name, and bytes of a salt and a salted password."""

_Change = ScramCredentialDeletion | ScramCredentialUpsertion
_Refusal = tuple[ErrorCode, str]


def handle(
    context: BrokerContext, request: Request, message: AlterUserScramCredentialsRequest
) -> Steps[AlterUserScramCredentialsResponse]:
    changes: list[_Change] = [*message.deletions, *message.upsertions]
    times = Counter(change.name for change in changes)
    refused: dict[str, _Refusal] = {}
    access = Access.of(context, request)
    for number, change in enumerate(changes, start=1):
        if number % _CHANGES_AT_ONCE == 0:
            yield
        found = _change(context, access, change)
        if times[change.name] > 1:
            found = ErrorCode.DUPLICATE_RESOURCE, "a user may be changed once in a request, by one mechanism"
        if isinstance(found, tuple):
            refused[change.name] = found
        else:
            found()
    results = []
    for name in dict.fromkeys(change.name for change in changes):
        code, text = refused.get(name, (ErrorCode.NONE, None))
        results.append(AlterUserScramCredentialsResult(name, code, text))
    return AlterUserScramCredentialsResponse(results=results)


def _change(context: BrokerContext, access: Access, change: _Change) -> _Refusal | Callable[[], object]:
    """The change to be made, or the reason for refusing it."""
    known = context.state.scram_credentials
    if not access.may_cluster(AclOperation.ALTER):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "to change credentials needs ALTER on the cluster"
    if not change.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "the username is empty"
    try:
        mechanism = ScramMechanism(change.mechanism)
    except ValueError:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"there is no SCRAM mechanism {change.mechanism}"
    if isinstance(change, ScramCredentialDeletion):
        if known.get(change.name, mechanism) is None:
            return ErrorCode.RESOURCE_NOT_FOUND, "the user has no such credential"
        return partial(known.remove, change.name, mechanism)
    if not MIN_ITERATIONS <= change.iterations <= MAX_ITERATIONS:
        allowed = f"{MIN_ITERATIONS} to {MAX_ITERATIONS}"
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, f"iterations are {change.iterations}, not {allowed}"
    if not change.salt or not change.salted_password:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "salt or salted password is empty"
    if max(map(len, (change.name, change.salt, change.salted_password))) > MAX_NAME:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, f"the username, the salt or the password is longer than {MAX_NAME}"
    if len(known) >= MAX_CREDENTIALS and known.get(change.name, mechanism) is None:
        return ErrorCode.POLICY_VIOLATION, f"the cluster has {MAX_CREDENTIALS} credentials, and can have no more"
    credential = ScramCredential.of_salted(mechanism, change.salted_password, change.iterations, change.salt)
    return partial(known.put, change.name, mechanism, credential)
