"""Resources that have configs: their kinds, the node that answers for each, and changes to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.configs.cluster_configs import ALL_NODES
from aioproducer.broker.configs.config_changes import ConfigChange, OpType
from aioproducer.broker.configs.config_resource_type import ConfigResourceType
from aioproducer.broker.configs.topic_config import KIP_1269_CONFIGS
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.state.topic import validate_topic_name
from aioproducer.errors import InvalidConfigurationException, InvalidRequestException


class ConfigResource(Protocol):
    """A resource as any message names it."""

    resource_type: int
    resource_name: str


def resource_type(number: int) -> ConfigResourceType:
    """Raises :class:`InvalidRequestException` for a kind that has no configs here."""
    try:
        return ConfigResourceType(number)
    except ValueError:
        raise InvalidRequestException(f"there are no configs for resources of type {number}") from None


def check_node(context: BrokerContext, name: str) -> None:
    """Raises :class:`InvalidRequestException` unless ``name`` is this node's id: clients ask the node itself."""
    if name != str(context.node_id):
        raise InvalidRequestException(f"this is node {context.node_id}, which does not answer for node {name!r}")


def check_access(access: Access, operation: AclOperation, kind: ConfigResourceType, name: str) -> None:
    """Raises the :class:`AuthorizationException` of what has these configs."""
    if kind is ConfigResourceType.TOPIC:
        access.check(operation, ResourceType.TOPIC, name)
    elif kind is ConfigResourceType.GROUP:
        access.check(operation, ResourceType.GROUP, name)
    else:
        access.check_cluster(operation)


class Alteration:
    """The resources of one request, to be changed one by one. Raises the exceptions whose codes Kafka answers."""

    def __init__(
        self, context: BrokerContext, access: Access, resources: Sequence[ConfigResource], *, validate_only: bool
    ) -> None:
        self._context = context
        self._access = access
        self._validate_only = validate_only
        self._times = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    def apply(self, resource: ConfigResource, changes: Iterable[ConfigChange]) -> Steps[None]:
        """Makes all changes or none. Topics that inherit a broker's configs follow in steps."""
        kind, name = self._checked(resource)
        changes, state = list(changes), self._context.state
        if kind is ConfigResourceType.TOPIC:
            state.alter_topic_configs(name, changes, validate_only=self._validate_only)
            return
        if kind.owner is not None:
            state.resource_configs.alter(kind.owner, name, changes, validate_only=self._validate_only)
            return
        if kind is ConfigResourceType.BROKER_LOGGER:
            if changes:
                raise InvalidConfigurationException(f"clients may not change the level of logger {changes[0].name!r}")
            return
        unknown = [change.name for change in changes if change.name in KIP_1269_CONFIGS]
        if name != ALL_NODES and self._context.old and unknown:
            raise InvalidRequestException(f"this broker is one before KIP-1269, and has no {unknown[0]}")
        yield from state.altering_broker_configs(name, changes, validate_only=self._validate_only)

    def replace(self, resource: ConfigResource, changes: Iterable[ConfigChange]) -> Steps[None]:
        """Makes the changes, and takes back what else is set; all or nothing."""
        kind, name = self._checked(resource)
        state = self._context.state
        if kind is ConfigResourceType.TOPIC:
            current = state.topics[name].configs if name in state.topics else {}
        elif kind.owner is not None:
            current = state.resource_configs.of(kind.owner, name)
        else:
            current = state.configs.dynamic(name)
        changes = list(changes)
        kept = {change.name for change in changes}
        yield from self.apply(
            resource, [*changes, *(ConfigChange(old, OpType.DELETE, None) for old in current if old not in kept)]
        )

    def _checked(self, resource: ConfigResource) -> tuple[ConfigResourceType, str]:
        kind, name = resource_type(resource.resource_type), resource.resource_name
        if self._times[kind, name] > 1:
            raise InvalidRequestException("each resource may be there once")
        check_access(self._access, AclOperation.ALTER_CONFIGS, kind, name)
        if kind is ConfigResourceType.TOPIC:
            if not name:
                raise InvalidRequestException("all topics together have no configs: those are the brokers'")
            validate_topic_name(name)
        elif kind.owner is None and (name != ALL_NODES or kind is ConfigResourceType.BROKER_LOGGER):
            check_node(self._context, name)
        return kind, name
