"""Filters of ACLs as clients send them."""

from __future__ import annotations

from typing import Protocol

from aioproducer.acls import AclBindingFilter, AclOperation, AclPermissionType, PatternType, ResourceType


class SentFilter(Protocol):
    """As any message has it."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def filter_of(sent: SentFilter) -> AclBindingFilter:
    """What is not known here is UNKNOWN, and matches nothing."""
    return AclBindingFilter(
        resource_type=ResourceType(sent.resource_type_filter),
        name=sent.resource_name_filter,
        pattern_type=PatternType(sent.pattern_type_filter),
        principal=sent.principal_filter,
        host=sent.host_filter,
        operation=AclOperation(sent.operation),
        permission=AclPermissionType(sent.permission_type),
    )
