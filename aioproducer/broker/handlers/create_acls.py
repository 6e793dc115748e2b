"""CreateAcls: new ACLs; one that is there already is no error.

Versions 1 to 3. Simplification: any node does it, and all nodes know the result at once.
"""

from __future__ import annotations

from aioproducer.acls import AclBinding, AclOperation, AclPermissionType, PatternType, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(1, 3)


def handle(context: BrokerContext, request: Request, message: CreateAclsRequest) -> Steps[CreateAclsResponse]:
    response = CreateAclsResponse()
    access = Access.of(context, request)
    for creation in message.creations:
        result = AclCreationResult(error_message=None)
        try:
            access.check_cluster(AclOperation.ALTER)
            context.acls.create(_binding(creation))
        except ApiException as error:
            result.error_code, result.error_message = error.code, str(error)
        response.results.append(result)
        yield
    return response


def _binding(creation: AclCreation) -> AclBinding:
    return AclBinding(
        resource_type=ResourceType(creation.resource_type),
        name=creation.resource_name,
        pattern_type=PatternType(creation.resource_pattern_type),
        principal=creation.principal,
        host=creation.host,
        operation=AclOperation(creation.operation),
        permission=AclPermissionType(creation.permission_type),
    )
