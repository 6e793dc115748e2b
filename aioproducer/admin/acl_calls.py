"""The admin client's calls for access control lists (KIP-140, KIP-290)."""

from __future__ import annotations

from collections.abc import Iterable

from aioproducer.acls import AclBinding, AclBindingFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from aioproducer.admin.admin_calls import AdminCalls
from aioproducer.admin.answers import only, outcome
from aioproducer.error_code import ErrorCode
from aioproducer.errors import KafkaError, error_for
from aioproducer.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from aioproducer.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from aioproducer.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

_ALL = AclBindingFilter()


class AclCalls(AdminCalls):
    """To allow and to deny. Brokers without an authorizer answer SecurityDisabledException."""

    async def describe_acls(self, wanted: AclBindingFilter = _ALL) -> list[AclBinding]:
        """The ACLs that match. Without a filter, all of them."""
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
            response = await self._client().client.request(request, DescribeAclsResponse)
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

        return await self._client().retry("describing ACLs", attempt)

    async def create_acl(self, acl: AclBinding) -> None:
        """Allows or denies something. That it is there already is no error."""
        only(await self.create_acls([acl]))

    async def create_acls(self, acls: Iterable[AclBinding]) -> dict[AclBinding, KafkaError | None]:
        """As :meth:`create_acl`; None for each ACL that is there now, or else its error."""

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
            node_id = await self._controller()
            response = await self._client().client.request(
                CreateAclsRequest(creations), CreateAclsResponse, node_id=node_id
            )
            told = zip(wanted, response.results, strict=False)
            return {one: outcome(result.error_code, result.error_message, one) for one, result in told}

        return await self._change("creating ACLs", list(dict.fromkeys(acls)), attempt)

    async def delete_acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        """Deletes the ACLs that match, and returns them. Those that an attempt without an answer has deleted are not
        among them."""
        of = DeleteAclsFilter(
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
            node_id = await self._controller()
            response = await self._client().client.request(DeleteAclsRequest([of]), DeleteAclsResponse, node_id=node_id)
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

        await self._client().retry("deleting ACLs", attempt)
        return deleted


def _binding(
    kind: int, name: str, pattern: int, principal: str, host: str, operation: int, permission: int
) -> AclBinding:
    """What only newer brokers know is UNKNOWN."""
    return AclBinding(
        resource_type=ResourceType(kind),
        name=name,
        pattern_type=PatternType(pattern),
        principal=principal,
        host=host,
        operation=AclOperation(operation),
        permission=AclPermissionType(permission),
    )
