"""DescribeAcls: the ACLs that match a filter.

Versions 1 to 3.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.acl_messages import filter_of
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(1, 3)

_ACLS_AT_ONCE = 500


def handle(context: BrokerContext, request: Request, message: DescribeAclsRequest) -> Steps[DescribeAclsResponse]:
    try:
        Access.of(context, request).check_cluster(AclOperation.DESCRIBE)
        acls = context.acls
    except ApiException as error:
        return DescribeAclsResponse(error_code=error.code, error_message=str(error))
    wanted = filter_of(message)
    by_resource: dict[tuple[int, int, str], DescribeAclsResource] = {}
    for count, one in enumerate(tuple(acls), start=1):
        if wanted.matches(one):
            key = one.resource_type, one.pattern_type, one.name
            resource = by_resource.get(key)
            if resource is None:
                resource = by_resource[key] = DescribeAclsResource(one.resource_type, one.name, one.pattern_type)
            resource.acls.append(AclDescription(one.principal, one.host, one.operation, one.permission))
        if count % _ACLS_AT_ONCE == 0:
            yield
    return DescribeAclsResponse(error_message=None, resources=list(by_resource.values()))
