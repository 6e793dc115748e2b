"""DeleteAcls: delete the ACLs that match filters, and say which those were.

Versions 1 to 3. Simplification: any node does it, and all nodes know the result at once. An ACL that several filters
match is listed once; Kafka lists it with each of them. The filters of a request are compared with a limited number of
ACLs; further ones are refused.
"""

from __future__ import annotations

from aioproducer.acls import AclBinding, AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.acl_messages import filter_of
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException, PolicyViolationException
from aioproducer.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(1, 3)

MOST_COMPARED = 2_000_000
"""ACLs that the filters of a request are compared with; takes a second or so. A filter with a name or a principal is
compared with the ACLs that have it."""


def handle(context: BrokerContext, request: Request, message: DeleteAclsRequest) -> Steps[DeleteAclsResponse]:
    response = DeleteAclsResponse()
    access = Access.of(context, request)
    compared = 0
    for sent in message.filters:
        result = DeleteAclsFilterResult(error_message=None)
        try:
            access.check_cluster(AclOperation.ALTER)
            if compared > MOST_COMPARED:
                raise PolicyViolationException(f"the filters before were compared with {compared} ACLs")
            wanted = filter_of(sent)
            candidates = context.acls.candidates(wanted)
            compared += len(candidates)
            for deleted in context.acls.deleting(wanted, candidates):
                result.matching_acls += map(_deleted, deleted)
                yield
        except ApiException as error:
            result.error_code, result.error_message = error.code, str(error)
        response.filter_results.append(result)
        yield
    return response


def _deleted(acl: AclBinding) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
