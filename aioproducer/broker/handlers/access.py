"""The permissions of a request's client, as the handlers check them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from aioproducer.acls import CLUSTER_NAME, AclOperation, ResourceType
from aioproducer.broker.authorization.authorizer import Authorizer, Client
from aioproducer.errors import error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.errors.printable import printable

if TYPE_CHECKING:
    from aioproducer.broker.handlers.context import BrokerContext
    from aioproducer.broker.requests.request import Request

log = logging.getLogger(__name__)

_O = AclOperation
_OPERATIONS = {
    ResourceType.TOPIC: (
        _O.READ,
        _O.WRITE,
        _O.CREATE,
        _O.DELETE,
        _O.ALTER,
        _O.DESCRIBE,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (_O.READ, _O.DELETE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ResourceType.CLUSTER: (
        _O.CREATE,
        _O.ALTER,
        _O.DESCRIBE,
        _O.CLUSTER_ACTION,
        _O.DESCRIBE_CONFIGS,
        _O.ALTER_CONFIGS,
        _O.IDEMPOTENT_WRITE,
    ),
}
"""The operations that each type of resource has."""

_FAILED = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class Access:
    """Calls the authorizer once for each resource, so that its answer is the same for the whole request."""

    __slots__ = ("_authorizer", "_client", "_decided")

    def __init__(self, authorizer: Authorizer | None, client: Client) -> None:
        self._authorizer = authorizer
        self._client = client
        self._decided: dict[tuple[AclOperation, ResourceType, str], bool] = {}

    @staticmethod
    def of(context: BrokerContext, request: Request) -> Access:
        if context.authorizer is None:
            return UNLIMITED
        connection = request.connection
        return Access(context.authorizer, Client(f"User:{connection.user}", connection.address))

    def may(self, operation: AclOperation, kind: ResourceType, name: str, *, asked_for: bool = True) -> bool:
        """``asked_for``: the client has named the resource, so a refusal is logged."""
        if self._authorizer is None:
            return True
        question = operation, kind, name
        allowed = self._decided.get(question)
        if allowed is None:
            allowed = self._decided[question] = self._authorizer.authorize(self._client, operation, kind, name)
            if asked_for and not allowed:
                self._log_denial(operation, kind, name)
        return allowed

    def may_topic(self, operation: AclOperation, name: str) -> bool:
        return self.may(operation, ResourceType.TOPIC, name)

    def may_group(self, operation: AclOperation, group: str) -> bool:
        return self.may(operation, ResourceType.GROUP, group)

    def may_cluster(self, operation: AclOperation, *, asked_for: bool = True) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME, asked_for=asked_for)

    def may_transactional_id(self, operation: AclOperation, transactional_id: str) -> bool:
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def may_some(self, operation: AclOperation, kind: ResourceType) -> bool:
        """Whether the client may perform the operation on any resource of this type."""
        return self._authorizer is None or self._authorizer.authorize_by_resource_type(self._client, operation, kind)

    def may_create(self, topic: str) -> bool:
        return self.may_cluster(_O.CREATE, asked_for=False) or self.may_topic(_O.CREATE, topic)

    def check(self, operation: AclOperation, kind: ResourceType, name: str) -> None:
        """Raises the :class:`AuthorizationException` of this type of resource."""
        if not self.may(operation, kind, name):
            what = "the cluster" if kind is ResourceType.CLUSTER else f"{kind.name.lower()} {printable(name)!r}"
            raise error_for(_FAILED[kind], f"{printable(self._client.principal)} may not {operation.name} {what}")

    def check_cluster(self, operation: AclOperation) -> None:
        self.check(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def operations(self, kind: ResourceType, name: str) -> int:
        """What it may do to a resource, as bits of ``AclOperation``."""
        return sum(1 << one for one in _OPERATIONS[kind] if self.may(one, kind, name, asked_for=False))

    def cluster_operations(self) -> int:
        """The operations allowed on the cluster; 0 without DESCRIBE."""
        sees = self.may_cluster(_O.DESCRIBE)
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME) if sees else 0

    def topics(self, operation: AclOperation, names: Iterable[str]) -> frozenset[str]:
        """Those topics to which it may do that."""
        return frozenset(name for name in names if self.may_topic(operation, name))

    def _log_denial(self, operation: AclOperation, kind: ResourceType, name: str) -> None:
        principal, host = self._client
        log.info("%s from %s may not %s %s %s", printable(principal), host, operation.name, kind.name, printable(name))


UNLIMITED = Access(None, Client("", ""))
"""Without an authorizer everybody may do everything."""
