"""DescribeUserScramCredentials: version 0 (KIP-554). Tells of no secret."""

from __future__ import annotations

from collections import Counter

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 0)

_USERS_AT_ONCE = 100


def handle(
    context: BrokerContext, request: Request, message: DescribeUserScramCredentialsRequest
) -> Steps[DescribeUserScramCredentialsResponse]:
    try:
        Access.of(context, request).check_cluster(AclOperation.DESCRIBE)
    except ApiException as error:
        return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=str(error))
    known = context.state.scram_credentials
    asked = Counter(user.name for user in message.users or ()) or Counter(known.users())
    response = DescribeUserScramCredentialsResponse(error_message=None)
    for user, times in asked.items():
        response.results.append(_described(context, user, times))
        if len(response.results) % _USERS_AT_ONCE == 0:
            yield
    return response


def _described(context: BrokerContext, user: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        text = "a user may be asked for once in a request"
        return DescribeUserScramCredentialsResult(user, ErrorCode.DUPLICATE_RESOURCE, text)
    infos = [
        CredentialInfo(mechanism, credential.iterations)
        for mechanism, credential in context.state.scram_credentials.of_user(user)
    ]
    if not infos:
        return DescribeUserScramCredentialsResult(user, ErrorCode.RESOURCE_NOT_FOUND, "the user has no credentials")
    return DescribeUserScramCredentialsResult(user, ErrorCode.NONE, None, infos)
