"""The admin client's calls for access control lists (KIP-140, KIP-290)."""

from __future__ import annotations

from collections.abc import Iterable

from aioproducer.acls import AclBinding, AclBindingFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from aioproducer.admin.calls.admin_requests import AdminRequests
from aioproducer.admin.calls.answers import outcome
from aioproducer.errors import KafkaError, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from aioproducer.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from aioproducer.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


class AclCalls:
    """Carries out the calls of KafkaAdmin that have these names."""

    def __init__(self, requests: AdminRequests) -> None:
        self._requests = requests

    async def describe_acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        request = DescribeAclsRequest(
            wanted.resource_type,
            wanted.name,
            wanted.pattern_type,
            wanted.principal,
            wanted.host,
            wanted.operation,
            wanted.permission,
        )

        async def attempt() -> list[AclBinding]:
            response = await self._requests.ask(request, DescribeAclsResponse)
            if response.error_code != ErrorCode.NONE:
                raise error_for(response.error_code, response.error_message or "describing ACLs")
            return [
                _binding(
                    of.resource_type,
                    of.resource_name,
                    of.pattern_type,
                    one.principal,
                    one.host,
                    one.operation,
                    one.permission_type,
                )
                for of in response.resources
                for one in of.acls
            ]

        return await self._requests.retry("describing ACLs", attempt)

    async def create_acls(self, acls: Iterable[AclBinding]) -> dict[AclBinding, KafkaError | None]:
        async def attempt(wanted: list[AclBinding]) -> dict[AclBinding, KafkaError | None]:
            creations = [
                AclCreation(
                    one.resource_type,
                    one.name,
                    one.pattern_type,
                    one.principal,
                    one.host,
                    one.operation,
                    one.permission,
                )
                for one in wanted
            ]
            response = await self._requests.ask_controller(CreateAclsRequest(creations), CreateAclsResponse)
            return {
                one: outcome(result.error_code, result.error_message, one)
                for one, result in zip(wanted, response.results, strict=False)
            }

        return await self._requests.change("creating ACLs", list(dict.fromkeys(acls)), attempt)

    async def delete_acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        matching = DeleteAclsFilter(
            wanted.resource_type,
            wanted.name,
            wanted.pattern_type,
            wanted.principal,
            wanted.host,
            wanted.operation,
            wanted.permission,
        )
        deleted: list[AclBinding] = []

        async def attempt() -> None:
            response = await self._requests.ask_controller(DeleteAclsRequest([matching]), DeleteAclsResponse)
            for result in response.filter_results:
                if result.error_code != ErrorCode.NONE:
                    raise error_for(result.error_code, result.error_message or "deleting ACLs")
                failed = next((one for one in result.matching_acls if one.error_code != ErrorCode.NONE), None)
                deleted.extend(
                    _binding(
                        one.resource_type,
                        one.resource_name,
                        one.pattern_type,
                        one.principal,
                        one.host,
                        one.operation,
                        one.permission_type,
                    )
                    for one in result.matching_acls
                    if one.error_code == ErrorCode.NONE
                )
                if failed is not None:
                    raise error_for(failed.error_code, failed.error_message or "deleting ACLs")

        await self._requests.retry("deleting ACLs", attempt)
        return deleted


def _binding(
    kind: int, name: str, pattern: int, principal: str, host: str, operation: int, permission: int
) -> AclBinding:
    """Numbers that this client does not know become UNKNOWN."""
    return AclBinding(
        resource_type=ResourceType(kind),
        name=name,
        pattern_type=PatternType(pattern),
        principal=principal,
        host=host,
        operation=AclOperation(operation),
        permission=AclPermissionType(permission),
    )
