"""The authorizer: the interface that a node uses, and Kafka's ``StandardAuthorizer``."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from aioproducer.acls import WILDCARD, AclBinding, AclOperation, AclPermissionType, PatternType, ResourceType
from aioproducer.broker.authorization.acl_store import AclStore
from aioproducer.errors import ConfigException

log = logging.getLogger(__name__)

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""What ``authorizer.class.name`` may be."""


class Client(NamedTuple):
    """Who asks for something, and from which address."""

    principal: str
    host: str


class Authorizer(Protocol):
    """One for all nodes of a cluster."""

    def start(self, node_id: int, listeners: Collection[str]) -> Mapping[str, Awaitable[object]]:
        """A node starts. A listener lets clients in when what is returned for it is done, or at once if nothing is; if
        that raises, the node does not start."""

    def authorize(self, client: Client, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Whether the client may do that to the resource."""

    def authorize_by_resource_type(self, client: Client, operation: AclOperation, kind: ResourceType) -> bool:
        """Whether it may do that to any resource of this type."""


_IMPLIED = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}),
}
"""By operation, the operations whose permission implies it. Denying one of them denies nothing else."""


class StandardAuthorizer:
    """Decides by ACLs. Super users may do everything; else what is denied is denied, what is allowed is allowed, and
    nothing else is, unless there are no ACLs for the resource and ``allow.everyone.if.no.acl.found`` is set."""

    def __init__(self, acls: AclStore, super_users: Collection[str], *, allow_if_no_acl: bool) -> None:
        self.acls = acls
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl

    def start(self, node_id: int, listeners: Collection[str]) -> Mapping[str, Awaitable[object]]:
        """The ACLs are read before any node starts."""
        return {}

    def authorize(self, client: Client, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        if client.principal in self._super_users:
            return True
        found, is_guarded = self.acls.of_resource(kind, name, client.principal)
        permissions = {binding.permission for binding in found if _concerns(binding, client.host, operation)}
        if not permissions:
            return self._allow_if_no_acl and not is_guarded
        return AclPermissionType.DENY not in permissions

    def authorize_by_resource_type(self, client: Client, operation: AclOperation, kind: ResourceType) -> bool:
        # Kafka asks for a resource of this name first, so that super users are allowed whatever is denied.
        if self.authorize(client, operation, kind, "hardcode"):
            return True
        allowed: list[AclBinding] = []
        denied: set[tuple[PatternType, str]] = set()
        for binding in self.acls.of_principal(kind, client.principal):
            if binding.host in (WILDCARD, client.host) and binding.operation in (AclOperation.ALL, operation):
                if binding.permission is AclPermissionType.ALLOW:
                    allowed.append(binding)
                else:
                    denied.add((binding.pattern_type, binding.name))
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        prefixes = sorted(len(name) for pattern, name in denied if pattern is PatternType.PREFIXED)
        return any(not _is_dominated(binding, denied, prefixes) for binding in allowed)


def _concerns(binding: AclBinding, host: str, operation: AclOperation) -> bool:
    if binding.host not in (WILDCARD, host):
        return False
    if binding.operation in (AclOperation.ALL, operation):
        return True
    return binding.permission is AclPermissionType.ALLOW and binding.operation in _IMPLIED.get(operation, ())


def _is_dominated(allowed: AclBinding, denied: Collection[tuple[PatternType, str]], prefixes: Iterable[int]) -> bool:
    """Whether all that is allowed here is denied."""
    name = allowed.name
    if allowed.pattern_type is PatternType.LITERAL:
        if name == WILDCARD:
            return False
        if (PatternType.LITERAL, name) in denied:
            return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in prefixes if length <= len(name))


def authorizer_of(acls: AclStore, class_name: str, super_users: str, *, allow_if_no_acl: bool) -> Authorizer | None:
    """The authorizer that a cluster's configs ask for."""
    if not class_name:
        return None
    return StandardAuthorizer(acls, super_users_of(super_users), allow_if_no_acl=allow_if_no_acl)


def super_users_of(text: str) -> frozenset[str]:
    """``super.users``: principals between semicolons. Raises :class:`ConfigException`."""
    found = frozenset(filter(None, (part.strip() for part in text.split(";"))))
    for principal in found:
        if ":" not in principal:
            raise ConfigException(
                f"config 'super.users' is {text!r}: principals are User:NAME, separated by semicolons",
                name="super.users",
                value=text,
            )
    return found
